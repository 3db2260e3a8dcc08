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

"""Devices with the sets that join them.

From facts about the devices of a host follow its tree of link sets, the traits
of its pools, and which devices no guest can have, because a fabric cannot join
them.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

from nova_accel.model import link_places
from nova_accel.model import link_sets
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware
from nova_accel.model.devices import pci_path
from nova_accel.model.links import link_discovery
from nova_accel.model.links import link_faults
from nova_accel.model.links import link_tree
from nova_accel.model.providers import link_homes
from nova_accel.model.providers import provider_layout

_NVIDIA = '10de'
_TYPES = frozenset({'GPU', 'VGPU'})

_CURE = (
    'let NVIDIA\'s driver have it when nova-compute starts, or name it in '
    '"module_ids" of [nova_accel] device_spec'
)


class Fabric(NamedTuple):
    """The answer of Fabric Manager.

    ``fault`` is why it does not answer; then the partitions are those of its
    last answer.
    """

    partitions: tuple[link_discovery.KnownPartition, ...] = ()
    fault: str | None = None


class LinkFacts(NamedTuple):
    """The facts about devices; each is named by its name.

    ``module_ids`` has None for a device that is on no NVSwitch board, and
    lacks those of which nothing is known. ``pairs`` are joined by NVLink, and
    those of them that are ``down`` are not joined now. ``fabric`` is None on a
    host without a Fabric Manager.
    """

    paths: Mapping[str, pci_path.PciPath]
    lines: Mapping[str, device_spec.DeviceSpec]
    module_ids: Mapping[str, int | None]
    pairs: frozenset[frozenset[str]] = frozenset()
    down: frozenset[frozenset[str]] = frozenset()
    fabric: Fabric | None = None


class JoinedDevices(NamedTuple):
    """The devices, the tree of their sets, and the sets that have no place."""

    devices: tuple[hardware.Device, ...]
    tree: link_sets.SetTree
    left_out: tuple[str, ...] = ()


def is_gpu_of_nvidia(device: hardware.Device) -> bool:
    return device.vendor_id == _NVIDIA and device.type in _TYPES


def joined(
    devices: Sequence[hardware.Device], facts: LinkFacts
) -> JoinedDevices:
    """The devices with their sets, traits, module ids and faults."""
    on_board = _on_board(devices, facts)
    tree, left_out = link_tree.build(
        _sets(devices, facts, on_board),
        {
            device.name: device.deployables[0].resource_class
            for device in devices
            if device.deployables
        },
    )
    tree = dataclasses.replace(tree, partitioned=frozenset(on_board))
    pools = link_homes.pools(provider_layout.owners(devices), tree)
    faults = dict(_faults(on_board, facts))
    return JoinedDevices(
        tuple(
            _joined(
                device,
                tree,
                pools.get(device.name, frozenset({device.name})),
                facts.module_ids.get(device.name),
                faults.get(device.name),
            )
            for device in devices
        ),
        tree,
        left_out,
    )


def _on_board(
    devices: Sequence[hardware.Device], facts: LinkFacts
) -> dict[str, int | None]:
    """Device that needs the fabric -> its module id, None if not known."""
    if facts.fabric is None:
        return {}
    elsewhere = {
        name for name, number in facts.module_ids.items() if number is None
    }
    return {
        device.name: facts.module_ids.get(device.name)
        for device in devices
        if is_gpu_of_nvidia(device) and device.name not in elsewhere
    }


def _joined(
    device: hardware.Device,
    tree: link_sets.SetTree,
    pool: frozenset[str],
    module_id: int | None,
    fault: str | None,
) -> hardware.Device:
    """The device with what is known of its links."""
    nodes = tree.path(device.name)
    traits = tree.pool_traits(pool)
    attributes = dict(device.attributes)
    if nodes:
        attributes['link_sets'] = ' > '.join(node.name for node in nodes)
    if module_id is not None:
        attributes['module_id'] = str(module_id)
    return dataclasses.replace(
        device,
        deployables=tuple(
            dataclasses.replace(deployable, traits=deployable.traits | traits)
            for deployable in device.deployables
        ),
        link_sets=tuple(
            link_places.to_text(
                node.name, {each.kind: each.sizes for each in node.sets}
            )
            for node in nodes
        ),
        module_id=module_id,
        fault=device.fault or fault,
        attributes=attributes,
    )


def _sets(
    devices: Sequence[hardware.Device],
    facts: LinkFacts,
    on_board: Mapping[str, int | None],
) -> list[link_sets.LinkSet]:
    """The sets of the devices that are pooled by their links."""
    linked = {
        device.name: device for device in devices if device.pooled_by_links
    }
    paths = {
        name: path for name, path in facts.paths.items() if name in linked
    }
    sets = [
        *link_discovery.by_path(paths),
        *link_discovery.by_numa_node(
            {name: device.numa_node for name, device in linked.items()}
        ),
        *link_discovery.meshes(
            pair
            for pair in facts.pairs
            if pair <= linked.keys() - on_board.keys()
        ),
    ]
    if facts.fabric is not None:
        sets += link_discovery.of_partitions(
            facts.fabric.partitions,
            {
                number: name
                for name, number in on_board.items()
                if number is not None and name in linked
            },
            {
                name
                for name, device in linked.items()
                if len(list(device.handles)) == 1
            },
        )
    return list(
        link_faults.marked(_overridden(sets, linked, facts.lines), facts.down)
    )


def _overridden(
    sets: list[link_sets.LinkSet],
    linked: Mapping[str, hardware.Device],
    lines: Mapping[str, device_spec.DeviceSpec],
) -> list[link_sets.LinkSet]:
    """The sets with those of the operator's lines."""
    names = {device.address: name for name, device in linked.items()}
    for line in _distinct(
        lines[name] for name in linked if name in lines and lines[name].links
    ):
        sets = list(
            link_discovery.overridden(
                sets,
                {
                    kind: [
                        frozenset(
                            names[address]
                            for address in members
                            if address in names
                        )
                        for members in some
                    ]
                    for kind, some in line.links
                },
                frozenset(name for name in linked if lines.get(name) is line),
            )
        )
    return sets


def _distinct(
    lines: Iterable[device_spec.DeviceSpec],
) -> list[device_spec.DeviceSpec]:
    return list({id(line): line for line in lines}.values())


def _faults(
    on_board: Mapping[str, int | None], facts: LinkFacts
) -> Iterator[tuple[str, str]]:
    """Device on an NVSwitch board -> why no guest can have it."""
    fabric = facts.fabric
    if fabric is None:
        return
    for name, number in on_board.items():
        if number is None:
            yield (
                name,
                'its module id on the NVSwitch board is not known, so no '
                f'partition can be activated for it: {_CURE}',
            )
            continue
        others = [
            other
            for other, theirs in on_board.items()
            if theirs == number and other != name
        ]
        mine = [
            each for each in fabric.partitions if number in each.module_ids
        ]
        if others:
            yield (
                name,
                f'its module id {number} is also that of '
                f'{", ".join(sorted(others)[:8])}: correct "module_ids" of '
                '[nova_accel] device_spec',
            )
        elif fabric.fault is not None:
            yield name, fabric.fault
        elif not mine:
            yield (
                name,
                f'Fabric Manager has no partition with module {number}',
            )
        elif not any(each.is_supported for each in mine):
            yield (
                name,
                'Fabric Manager supports none of the partitions with module '
                f'{number} at present',
            )
