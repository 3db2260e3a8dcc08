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

"""The devices that replace a guest's own when it is migrated live."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import itertools
import json

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle


@dataclasses.dataclass(frozen=True)
class Targets:
    """Device on the source -> device on the destination.

    ``mdevs`` maps the uuids of mediated devices, ``pci`` the addresses of PCI
    functions (``0000:81:00.1``).
    """

    mdevs: Mapping[str, str]
    pci: Mapping[str, str]


def targets(
    source: Iterable[arq_types.Arq], destination: Iterable[arq_types.Arq]
) -> Targets:
    """Pair the devices of a guest on two hosts, group by group.

    :raises NoAssignment: a group has more devices on one of the hosts, or
        devices of another type, so that the guest's devices would change.
    """
    mdevs: dict[str, str] = {}
    pci: dict[str, str] = {}
    for ours, theirs in itertools.zip_longest(
        sorted(source, key=_group), sorted(destination, key=_group)
    ):
        if ours is None or theirs is None or _group(ours) != _group(theirs):
            group = min(map(_group, filter(None, (ours, theirs))))
            raise exceptions.NoAssignment.for_all(
                f'group {group} has different numbers of devices on the '
                'source and the destination: has the device profile been '
                'changed?'
            )
        if _kind(ours) != _kind(theirs):
            raise exceptions.NoAssignment.for_all(
                f'group {_group(ours)} is {_kind(ours)} on the source and '
                f'{_kind(theirs)} on the destination'
            )
        if ours.handle.type is attach_handle.HandleType.MDEV:
            mdevs[ours.handle.uuid] = theirs.handle.uuid
        else:
            pci.update(
                zip(
                    map(str, ours.handle.functions),
                    map(str, theirs.handle.functions),
                    strict=True,
                )
            )
    return Targets(mdevs, pci)


def check_facts(
    pci: Mapping[str, str],
    source: Mapping[str, Mapping[str, str]],
    destination: Mapping[str, Mapping[str, str]],
) -> None:
    """Check that what the drivers demand is the same on both hosts.

    :param pci: PCI function on the source -> the one that replaces it
    :param source: PCI function -> its facts, by their names
    :raises NoAssignment: names the fact, and its value on both hosts.
    """
    for ours, theirs in pci.items():
        here, there = source.get(ours, {}), destination.get(theirs, {})
        for name in sorted({*here, *there}):
            if here.get(name) != there.get(name):
                must = 'they must be the same for a live migration'
                raise exceptions.NoAssignment(
                    f'{name} is {here.get(name)!r} at {ours} on the source '
                    f'and {there.get(name)!r} at {theirs} on the destination: '
                    f'{must}',
                    public=f'{name} is {here.get(name)!r} on the source and '
                    f'{there.get(name)!r} on the destination: {must}',
                )


def dump_facts(facts: Mapping[str, str]) -> str:
    """The facts of a function, as one host tells them to another."""
    return json.dumps(facts, sort_keys=True)


def load_facts(text: str) -> Mapping[str, str]:
    """The reverse of :func:`dump_facts`.

    :raises NoAssignment: the other host did not tell facts.
    """
    try:
        facts = json.loads(text)
    except ValueError:
        facts = None
    if not isinstance(facts, dict):
        raise exceptions.NoAssignment(
            f'the source tells no facts of a device, but {text[:100]!r}'
        )
    return facts


def _group(arq: arq_types.Arq) -> int:
    return arq.device_profile_group_id


def _kind(arq: arq_types.Arq) -> str:
    handle = arq.handle
    functions = len(handle.functions)
    return (
        handle.mdev_type
        or handle.vgpu_type
        or (
            'a PCI function'
            if functions == 1
            else f'{functions} PCI functions'
        )
    )
