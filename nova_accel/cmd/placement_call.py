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


"""The questions of an administrator's command to Placement."""

from typing import Any

from keystoneauth1 import exceptions as ks_exceptions
from nova.scheduler.client import report

from nova_accel import exceptions

_VERSION = '1.22'


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


def call(method: str, path: str) -> Any:
    """The parsed answer, None if it is empty or there is no such thing.

    :raises Conflict: Placement does not delete it
    :raises ServiceUnavailable: Placement gave no usable answer
    """
    client = report.report_client_singleton()
    # Nova's client sends no microversion when it deletes, and needs none.
    version = {'version': _VERSION} if method == 'get' else {}
    try:
        answer = getattr(client, method)(path, **version)
    except ks_exceptions.ClientException as error:
        raise exceptions.ServiceUnavailable(
            f'Placement gave no usable answer: {error}'
        ) from error
    if answer.status_code == 404:
        return None
    if answer.status_code == 409:
        raise exceptions.Conflict(
            f'Placement does not delete {path}: {answer.text}'
        )
    if answer.status_code >= 400:
        raise exceptions.ServiceUnavailable(
            f'Placement answered {answer.status_code} to {path}'
        )
    return answer.json() if answer.content else None
