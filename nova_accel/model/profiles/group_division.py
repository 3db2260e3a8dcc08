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

"""Divide a group that asks for more units than any resource provider has.

One provider serves a request group. Where devices are pooled by NUMA node, a
group may be larger than each pool. nova-scheduler then asks Placement for
several smaller groups instead, the parts. No one tells the API which parts
these were. It divides the group by the same rule: the parts are nearly equal,
so the largest allocation leads to as many of them as the largest pool.
"""

from collections.abc import Sequence
import dataclasses

from nova_accel import exceptions
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import provider_allocation

#: The most parts of one group. Placement tries all combinations of a host's
#: providers for them, so each part multiplies its work.
MAX_PARTS = 4


def parts(
    group: device_profile.Group, largest: int
) -> tuple[device_profile.Group, ...]:
    """The fewest parts that have ``largest`` units at most, nearly equal.

    A group of several resource classes is never divided, because no provider
    of ours has two classes.
    """
    if len(group.resources) > 1 or largest < 1:
        return (group,)
    [(resource_class, amount)] = group.resources.items()
    count = -(-amount // largest)
    if count == 1:
        return (group,)
    least, larger = divmod(amount, count)
    return tuple(
        dataclasses.replace(
            group, resources={resource_class: least + (number < larger)}
        )
        for number in range(count)
    )


def placeable(
    index: int, group: device_profile.Group, largest: int
) -> tuple[device_profile.Group, ...]:
    """The parts that nova-scheduler asks Placement for.

    :param index: of the group in its profile
    :param largest: the most units that a provider has, of those that suit the
        group; on one NUMA node if the group wants that
    :raises NotFound: the group cannot be divided; the text names the cure
    """
    found = parts(group, largest)
    if len(found) == 1:
        return found
    if group.is_on_one_numa_node:
        raise _too_large(index, group, 'NUMA node', largest)
    # With a provider for each unit, Placement would try them in all orders.
    if largest == 1 or len(found) > MAX_PARTS:
        raise _too_large(
            index,
            group,
            'pool of devices',
            largest,
            'let devices share a larger pool ("pool": true in [nova_accel] '
            'device_spec), or ',
        )
    return found


def _too_large(
    index: int,
    group: device_profile.Group,
    place: str,
    largest: int,
    cure: str = '',
) -> exceptions.NotFound:
    [(resource_class, amount)] = group.resources.items()
    groups = parts(group, largest)
    most = max(part.resources[resource_class] for part in groups)
    fault = (
        f'no {place} has {resource_class}={amount}, which group {index} asks '
        f'for; the largest has {largest}: '
    )
    divide = (
        f'make it {len(groups)} groups of {resource_class}={most}'
        f'{" at most" if amount % len(groups) else ""} in the device profile'
    )
    return exceptions.NotFound(
        f'{fault}{cure}{divide}', public=f'{fault}{divide}'
    )


def placed(
    groups: Sequence[device_profile.Group],
    allocations: Sequence[provider_allocation.ProviderAllocation],
) -> list[device_profile.Group]:
    """The groups or their parts, as nova-scheduler has had them placed.

    The parts of a group are in the place of the group.

    :param allocations: all that was allocated for the groups
    """
    return [
        part
        for group in groups
        for part in parts(group, _largest(group, allocations))
    ]


def _largest(
    group: device_profile.Group,
    allocations: Sequence[provider_allocation.ProviderAllocation],
) -> int:
    """The most units that a provider gave, of those that suit the group."""
    return max(
        (
            allocation.resources.get(resource_class, 0)
            for allocation in allocations
            if allocation.suits(group)
            for resource_class in group.resources
        ),
        default=0,
    )
