# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.


"""The calls of an administrator's command to Placement."""

from collections.abc import Callable
from typing import Any

from keystoneauth1 import exceptions as ks_exceptions
from nova.scheduler.client import report
import tenacity

from nova_accel import exceptions

_VERSION = '1.22'

#: With the generation of a consumer; its type stays as it is.
_CONSUMER_VERSION = '1.28'

_CHANGED = 'placement.concurrent_update'

_TRIES = 10

#: Method -> the statuses that mean that Placement does not do it. A provider
#: of an allocation that does not exist is a bad request to it.
_REFUSALS = {'put': (400, 409)}


class _ChangedMeanwhile(exceptions.Conflict):
    """Somebody else changed it since it was read."""


def allocations(rp_uuid: str) -> dict[str, dict[str, int]]:
    """The allocations of a provider: consumer -> class -> amount.

    A provider that does not exist has none.

    :raises ServiceUnavailable: as of :func:`call`
    """
    answer = call('get', f'/resource_providers/{rp_uuid}/allocations')
    return {
        consumer: held['resources']
        for consumer, held in (answer or {}).get('allocations', {}).items()
    }


def change(path: str, changed: Callable[[Any], Any]) -> bool:
    """Change what Placement has, unless somebody else does so meanwhile.

    Then it is read and changed again.

    :param changed: makes what is to be there, with the generation, of what is
        there; None if it is right already
    :returns: whether there was anything to change. False, too, if there is no
        such thing
    :raises Conflict: Placement refuses it, with its reason; or others changed
        it again and again
    :raises ServiceUnavailable: as of :func:`call`
    """
    for attempt in tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(_ChangedMeanwhile),
        wait=tenacity.wait_random_exponential(0.05, 1),
        stop=tenacity.stop_after_attempt(_TRIES),
        reraise=True,
    ):
        with attempt:
            present = call('get', path, version=_CONSUMER_VERSION)
            wanted = None if present is None else changed(present)
            if wanted is None:
                return False
            call('put', path, data=wanted, version=_CONSUMER_VERSION)
    return True


def call(method: str, path: str, version: str = _VERSION, **data: Any) -> Any:
    """The parsed answer, None if it is empty or there is no such thing.

    :param data: with a ``put``, ``data`` that is to be there
    :raises Conflict: Placement does not do it
    :raises ServiceUnavailable: Placement gave no usable answer
    """
    client = report.report_client_singleton()
    # Nova's client sends no microversion when it deletes, and needs none.
    if method != 'delete':
        data['version'] = version
    try:
        answer = getattr(client, method)(path, **data)
    except ks_exceptions.Unauthorized as error:
        raise exceptions.ServiceUnavailable(
            'Keystone refuses the user of [placement] (401): correct its '
            'username, password, project and domains there'
        ) from error
    except ks_exceptions.ClientException as error:
        raise exceptions.ServiceUnavailable(
            f'Placement gave no usable answer: {error}'
        ) from error
    if answer.status_code == 404:
        return None
    if answer.status_code in _REFUSALS.get(method, (409,)):
        fault = _ChangedMeanwhile if _CHANGED in answer.text else None
        raise (fault or exceptions.Conflict)(
            f'Placement does not {method} {path}: {answer.text}'
        )
    if answer.status_code >= 400:
        cure = (
            ': the user of [placement] needs the role admin or service'
            if answer.status_code in (401, 403)
            else ''
        )
        raise exceptions.ServiceUnavailable(
            f'Placement answered {answer.status_code} to {path}{cure}'
        )
    return answer.json() if answer.content else None
