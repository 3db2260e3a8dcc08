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
"""Groups of a flavor for accelerators, without a device profile.

Only devices of Nova's own serve them. Where our hosts report the same resource
class, the flavor may have been meant for ours.
"""

from collections.abc import Iterable
import functools

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler.client import report

from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.scheduler import candidates
from nova_accel.scheduler import known_stock
from nova_accel.scheduler import timed_cache


@functools.lru_cache(1)
def _served(
    client: report.SchedulerReportClient,
) -> timed_cache.ShortMemory[bool]:
    """The amounts that are there, or that no host of ours could give."""
    return timed_cache.ShortMemory[bool]()


def check(
    ctxt: nova_context.RequestContext,
    groups: 'Iterable[objects.RequestGroup]',
) -> None:
    """Refuse a request for our classes that no device of Nova's own serves.

    Placement is asked only about classes that our hosts report, and seldom
    again once it has found a device.

    :param groups: of the flavor; all of them are kept away from our providers
    :raises RequestFilterFailed: the reason names the resource class
    """
    stock = known_stock.current()
    if stock is None:
        return
    served = _served(report.report_client_singleton())
    for group in groups:
        # Several providers may serve a group of a flavor, but not one class.
        for name, amount in group.resources.items():
            wanted = f'{name}={amount}'
            if served.get(wanted):
                continue
            if (
                stock.inventories({name})
                and candidates.ask(ctxt, [_alone(name, amount)], limit=1) == []
            ):
                raise exception.RequestFilterFailed(
                    reason=(
                        f'the flavor asks for {wanted} without a device '
                        "profile, and no device of Nova's own has that free: "
                        'a flavor asks for accelerators by '
                        f'{device_profile.FLAVOR_KEY}'
                    )
                )
            served.put(wanted, True)


def _alone(resource_class: str, amount: int) -> 'objects.RequestGroup':
    return objects.RequestGroup(
        requester_id='flavor',
        use_same_provider=True,
        resources={resource_class: amount},
        forbidden_traits={naming.OWNERSHIP_TRAIT},
    )
