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

"""The traits that Placement knows; it answers 400 to any other trait.

A trait that it has said it has is remembered for a while. An administrator may
delete a trait that no provider has, and Placement tells no one. Until it is
forgotten here, a request that requires or forbids it is refused without an
explanation.
"""

from collections.abc import Callable
from collections.abc import Collection
import functools
from typing import Any

from keystoneauth1 import exceptions as ks_exc
from nova import context as nova_context
from nova import exception
from nova.scheduler.client import report
from oslo_log import log as logging

from nova_accel.model import naming
from nova_accel.scheduler import timed_cache

LOG = logging.getLogger(__name__)

#: The first microversion of Placement that has traits.
_VERSION = '1.6'

#: The traits that no one else creates.
_OURS = frozenset({naming.OWNERSHIP_TRAIT, naming.FABRIC_TRAIT})


class _Known:
    """The traits that a Placement has said it has."""

    def __init__(self) -> None:
        self.names = timed_cache.ShortMemory[bool]()
        self.of_regions = timed_cache.ShortMemory[frozenset[str]]()


@functools.lru_cache(1)
def _known(client: report.SchedulerReportClient) -> _Known:
    """The knowledge that came through a client; a process has one."""
    return _Known()


def find_or_create(
    context: nova_context.RequestContext, names: Collection[str]
) -> frozenset[str]:
    """The existing ones of the traits; our own ones are created.

    Placement is asked only about traits that it has not said it has.

    :raises RequestFilterFailed: Placement gave no usable answer
    """
    client = report.report_client_singleton()
    remembered = _known(client).names
    others = remembered.missing(names)
    for name in _OURS.intersection(others):
        ensure(context, name)
        others.remove(name)
    if not others:
        return frozenset(names)
    url = '/traits?name=in:' + ','.join(sorted(others))
    answer = _ask(
        client.get, url, version=_VERSION, global_request_id=context.global_id
    )
    found = frozenset(answer.json()['traits'])
    for name in found:
        remembered.put(name, True)
    return frozenset(
        name for name in names if name in found or name not in others
    )


def forget() -> None:
    """Ask Placement again, which refused a request as if one was gone."""
    _known.cache_clear()


def of_region(
    context: nova_context.RequestContext, region_uuid: str
) -> frozenset[str]:
    """The traits of regions of a type.

    If there are any, Placement is not asked again for a while.

    :param region_uuid: the type, a uuid in canonical form
    :raises RequestFilterFailed: Placement gave no usable answer
    """
    end = naming.region_trait('FPGA', 'ANY', region_uuid).removeprefix(
        'CUSTOM_FPGA_ANY'
    )
    client = report.report_client_singleton()
    remembered = _known(client).of_regions
    known_ones = remembered.get(region_uuid)
    if known_ones is not None:
        return known_ones
    # An operator's line may give a card another type than FPGA.
    for beginning in ('CUSTOM_FPGA_', 'CUSTOM_'):
        answer = _ask(
            client.get,
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
            remembered.put(region_uuid, found)
            return found
    return frozenset()


def ensure(context: nova_context.RequestContext, trait: str) -> None:
    """Create a trait of ours, even before any of our providers exists.

    :raises RequestFilterFailed: Placement gave no usable answer
    """
    client = report.report_client_singleton()
    remembered = _known(client).names
    if not remembered.get(trait):
        _ask(
            client.put,
            f'/traits/{trait}',
            None,
            version=_VERSION,
            global_request_id=context.global_id,
        )
        remembered.put(trait, True)


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
