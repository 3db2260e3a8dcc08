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

"""The traits that Placement knows; it answers 400 to any other trait."""

from collections.abc import Callable
from collections.abc import Iterable
from typing import Any
import weakref

from keystoneauth1 import exceptions as ks_exc
from nova import context as nova_context
from nova import exception
from nova.scheduler.client import report
from oslo_log import log as logging

from nova_accel.model import naming

LOG = logging.getLogger(__name__)

#: The first microversion of Placement that has traits.
_VERSION = '1.6'

#: The clients through which Placement has got our trait.
_given: 'weakref.WeakSet[Any]' = weakref.WeakSet()


def known(
    context: nova_context.RequestContext, names: Iterable[str]
) -> frozenset[str]:
    """The existing ones of the traits.

    :raises RequestFilterFailed: Placement gave no usable answer
    """
    client = report.report_client_singleton()
    url = '/traits?name=in:' + ','.join(sorted(names))
    answer = _ask(
        client.get, url, version=_VERSION, global_request_id=context.global_id
    )
    return frozenset(answer.json()['traits'])


def of_region(
    context: nova_context.RequestContext, region_uuid: str
) -> frozenset[str]:
    """The traits of regions of a type.

    :param region_uuid: the type, a uuid in canonical form
    :raises RequestFilterFailed: Placement gave no usable answer
    """
    end = naming.region_trait('FPGA', 'ANY', region_uuid).removeprefix(
        'CUSTOM_FPGA_ANY'
    )
    # An operator's line may give a card another type than FPGA.
    for beginning in ('CUSTOM_FPGA_', 'CUSTOM_'):
        answer = _ask(
            report.report_client_singleton().get,
            f'/traits?name=startswith:{beginning}',
            version=_VERSION,
            global_request_id=context.global_id,
        )
        found = frozenset(
            trait
            for trait in answer.json()['traits']
            if trait.endswith(end) and naming.is_region_trait(trait)
        )
        if found:
            return found
    return frozenset()


def ensure_ownership(context: nova_context.RequestContext) -> None:
    """Create our trait, even before any of our providers exists.

    :raises RequestFilterFailed: Placement gave no usable answer
    """
    client = report.report_client_singleton()
    if client not in _given:
        _ask(
            client.put,
            f'/traits/{naming.OWNERSHIP_TRAIT}',
            None,
            version=_VERSION,
            global_request_id=context.global_id,
        )
        _given.add(client)


def _ask(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        answer = method(*args, **kwargs)
    except ks_exc.ClientException as error:
        LOG.error('Placement could not be asked for traits: %s', error)
        raise exception.RequestFilterFailed(
            reason=(
                'Placement could not be asked for the traits of accelerators'
            )
        ) from error
    if answer.status_code >= 400:
        raise exception.RequestFilterFailed(
            reason=(
                'Placement could not be asked for the traits of '
                f'accelerators: it answered {answer.status_code}'
            )
        )
    return answer
