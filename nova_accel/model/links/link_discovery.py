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

"""The link sets of a host, found from facts about its devices.

Each function turns one kind of facts into sets. Devices are named as libvirt
names them, see :class:`nova_accel.model.devices.hardware.Device`.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set
import dataclasses
import hashlib
import re
from typing import NamedTuple

from nova_accel.model import link_sets
from nova_accel.model.devices import pci_path

Kind = link_sets.Kind

#: A host has no more partitions of NVSwitches. NVIDIA's boards have 15.
MAX_PARTITIONS = 256


class KnownPartition(NamedTuple):
    """Modules that Fabric Manager can join, and whether it can do it now."""

    module_ids: frozenset[int]
    is_supported: bool = True


def by_path(
    paths: Mapping[str, pci_path.PciPath],
) -> Iterator[link_sets.LinkSet]:
    """The devices below each switch, and below each root complex."""
    of_switches: dict[str, set[str]] = {}
    of_roots: dict[str, set[str]] = {}
    for device, path in paths.items():
        of_roots.setdefault(path.root, set()).add(device)
        for switch in path.switches():
            of_switches.setdefault(str(switch), set()).add(device)
    yield from _named(Kind.PCIE, of_switches)
    yield from _named(Kind.ROOT, of_roots)


def by_numa_node(
    nodes: Mapping[str, int | None],
) -> Iterator[link_sets.LinkSet]:
    """The devices of each NUMA node; an unknown node makes no set."""
    found: dict[str, set[str]] = {}
    for device, node in nodes.items():
        if node is not None:
            found.setdefault(str(node), set()).add(device)
    yield from _named(Kind.NUMA, found)


def _named(
    kind: Kind, found: Mapping[str, Set[str]]
) -> Iterator[link_sets.LinkSet]:
    for place, devices in sorted(found.items()):
        if len(devices) > 1:
            name = re.sub('[:.]', '_', place.removeprefix('pci'))
            yield link_sets.LinkSet(
                kind, frozenset(devices), name=f'{kind}_{name}'
            )


def meshes(pairs: Iterable[frozenset[str]]) -> Iterator[link_sets.LinkSet]:
    """Disjoint sets of devices of which each two are joined by NVLink.

    A pair with a bridge is one, and so is a board on which each device has
    links to all others. A board with fewer links is divided: each device is
    in one set, and no guest gets two devices that are joined by a third one
    alone. A set with a pair that is down keeps its
    place, and no one is promised it.

    :param down: the pairs whose links have failed
    """
    peers: dict[str, set[str]] = {}
    for pair in pairs:
        if len(pair) == 2:
            one, other = sorted(pair)
            peers.setdefault(one, set()).add(other)
            peers.setdefault(other, set()).add(one)
    left = set(peers)
    while left:
        mesh = max(
            (_mesh(start, peers, left) for start in sorted(left)),
            key=len,
        )
        left -= mesh
        if len(mesh) > 1:
            yield link_sets.LinkSet(
                Kind.NVLINK,
                mesh,
                name=name_of(Kind.NVLINK, mesh),
            )


def _mesh(
    start: str, peers: Mapping[str, Set[str]], left: Set[str]
) -> frozenset[str]:
    """A device with peers that are each other's peers, too."""
    mesh = {start}
    near = peers[start] & left
    for device in sorted(
        near, key=lambda each: (-len(peers[each] & near), each)
    ):
        if mesh <= peers[device]:
            mesh.add(device)
    return frozenset(mesh)


def name_of(kind: Kind, members: Iterable[str]) -> str:
    """The name of a set that nothing but its members tells from others."""
    digest = hashlib.sha256(','.join(sorted(members)).encode())
    return f'{kind}_{digest.hexdigest()[:16]}'


def of_partitions(
    partitions: Iterable[KnownPartition],
    modules: Mapping[int, str],
    single: Set[str],
) -> Iterator[link_sets.LinkSet]:
    """An exact set for each partition.

    A partition that Fabric Manager does not support keeps its place, and so
    does one of which a device is missing. No one is promised them.

    :param modules: module id -> device
    :param single: the devices of which a guest gets all or nothing
    """
    for partition in partitions:
        numbers = sorted(partition.module_ids)
        members = frozenset(
            modules[number] for number in numbers if number in modules
        )
        if members:
            name = '_'.join(map(str, numbers))
            yield link_sets.LinkSet(
                Kind.NVLINK,
                members,
                is_exact=True,
                is_able=(
                    partition.is_supported
                    and len(members) == len(numbers)
                    and members <= single
                ),
                name=(
                    f'modules_{name}'
                    if len(name) < link_sets.MAX_NAME // 2
                    else name_of(Kind.NVLINK, map(str, numbers))
                ),
            )


def overridden(
    sets: Iterable[link_sets.LinkSet],
    given: Mapping[Kind, Collection[frozenset[str]]],
    devices: Set[str],
) -> Iterator[link_sets.LinkSet]:
    """The sets with those that an operator gives in the place of some.

    A partition is a fact of the hardware. So the operator only chooses which
    ones are offered, and joins no other devices of the board by NVLink.

    :param given: the sets for each kind that the operator rules
    :param devices: those that the operator speaks of
    """
    partitioned: set[str] = set()
    for each in sets:
        if each.is_exact:
            partitioned |= each.members
            if (
                each.kind in given
                and len(each.members) > 1
                and each.members & devices
                and each.members not in given[each.kind]
            ):
                continue
        elif each.kind in given:
            rest = each.members - devices
            if len(rest) > 1:
                yield dataclasses.replace(each, members=rest)
            continue
        yield each
    for kind, some in given.items():
        for members in some:
            if kind is Kind.NVLINK and members & partitioned:
                continue
            if len(members) > 1:
                yield link_sets.LinkSet(
                    kind, members, name=name_of(kind, members)
                )
