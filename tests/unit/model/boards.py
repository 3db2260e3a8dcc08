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

"""Boards of eight GPUs as the free units that nova-scheduler knows of."""

from collections.abc import Collection

from nova_accel.model.units import free_units
from nova_accel.model.units import host_links
from nova_accel.model.units import unit_changes

BOARD = 'board nvlink=8'


def sets(number: int) -> tuple[str, ...]:
    """The sets of a GPU, which has a number from 0 to 7."""
    return (
        BOARD,
        f'half_{number // 4} nvlink=4 numa=2-4',
        f'pair_{number // 2} nvlink=2',
    )


def deployables(
    hostname: str = 'host', used: Collection[int] = ()
) -> list[unit_changes.ChangedDeployable]:
    """The GPUs; each pair is a pool."""
    return [
        unit_changes.ChangedDeployable(
            hostname=hostname,
            uuid=f'{hostname}-{number}',
            rp_uuid=f'{hostname}-pair-{number // 2}',
            resource_class='PGPU',
            traits=frozenset({'CUSTOM_H200'}),
            device_uuid=f'{hostname}-device-{number}',
            numa_node=number // 4,
            region=None,
            bitstream_id=None,
            total=1,
            free=int(number not in used),
            in_use=int(number in used),
            link_sets=sets(number),
        )
        for number in range(8)
    ]


def pools(
    used: Collection[int] = (),
) -> dict[str, list[free_units.FreeUnits]]:
    found: dict[str, list[free_units.FreeUnits]] = {}
    for each in deployables(used=used):
        found.setdefault(each.rp_uuid, []).append(each.units())
    return found


def links(used: Collection[int] = ()) -> host_links.HostLinks:
    """The links of a host with a board, of which some GPUs are not free."""
    return host_links.HostLinks(pools(used))
