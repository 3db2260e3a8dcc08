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

"""Whether units are near a guest: on the NUMA nodes that have its cells.

Only a compute host knows these nodes, once Nova has claimed its processors
and memory for the guest. nova-scheduler has chosen the pool by then.
"""

from collections.abc import Collection
from collections.abc import Iterable

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units

#: For the owner of a server that gets no accelerators near its cells.
PUBLIC = (
    'the accelerators that were chosen are not on the NUMA nodes of the '
    'server: try again later'
)

#: Why units were chosen that are not near.
FAR = "too few units were free on the NUMA nodes of the guest's cells"


def is_far(
    group: device_profile.Group,
    units: free_units.FreeUnits,
    near: frozenset[str],
) -> bool:
    """Whether units are away from cells that the group wants them near.

    :param near: the nodes that have the cells, by their names in
        :mod:`nova_accel.model.units.free_units`; none if they are unknown
    """
    return (
        group.numa_affinity is not None
        and bool(near)
        and units.numa_node not in near
    )


def may_serve(
    group: device_profile.Group,
    units: free_units.FreeUnits,
    near: frozenset[str],
) -> bool:
    """Whether units are as near as the group requires."""
    return (
        group.numa_affinity is not device_profile.NumaAffinity.REQUIRED
        or not is_far(group, units, near)
    )


def excludes(
    group: device_profile.Group,
    pool: Iterable[free_units.FreeUnits],
    near: frozenset[str],
) -> bool:
    """Whether too few units of the pool are near, and enough are free."""
    admitted = [each for each in pool if may_serve(group, each, near)]
    return any(
        sum(
            each.free
            for each in admitted
            if each.resource_class == resource_class
        )
        < amount
        for resource_class, amount in group.resources.items()
    )


def why_none(
    pool: Iterable[free_units.FreeUnits], near: frozenset[str]
) -> str:
    """Tell that a pool has too few units near the cells, and the cure.

    :param pool: of which enough units are free
    """
    free = [each for each in pool if each.free]
    amount = sum(each.free for each in free if each.numa_node in near)
    others = {each.numa_node for each in free} - near
    return (
        f"on {_named(near)}, where the guest's cells are, and {amount} "
        f'free there; the others are on {_named(others)}. Let devices of '
        'all NUMA nodes share a pool ("pool": true in [nova_accel] '
        'device_spec), give the guest cells on all nodes (hw:numa_nodes), or '
        'let the device profile say accel:'
        f'{device_profile.NUMA_AFFINITY}='
        f'{device_profile.NumaAffinity.PREFERRED}'
    )


def _named(nodes: Collection[str | None]) -> str:
    known = sorted(free_units.number_of(node) for node in nodes if node)
    names = [f'NUMA node {number}' for number in known]
    if None in nodes:
        names.append('an unknown NUMA node')
    return ' and '.join(names) or 'no other'
