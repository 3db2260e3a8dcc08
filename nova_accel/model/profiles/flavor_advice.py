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

"""Flavors whose servers would not get the accelerators that they ask for."""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import difflib
import re
from typing import NamedTuple

import os_resource_classes

from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import extra_specs

#: The flavor extra spec of Nova's that says how wide the addresses of the
#: guest's CPU are.
ADDRESS_WIDTH_KEY = 'hw:maxphysaddr_mode'

#: The CPU of a guest has addresses of 40 bits by default, as of QEMU.
_USUAL_MIB = 1 << (40 - 20)

#: The largest base address registers of a whole GPU. They are a power of two,
#: and those of a GPU with 141 to 192 GB of memory map all of it.
_REGISTERS_MIB = 256 << 10

_RESOURCES = re.compile('resources(?:[a-zA-Z0-9_-]{1,64})?:(.+)')

#: The parts of our keys, each with the key.
_NAMES = {
    key.partition(':')[2]: key
    for key in (device_profile.FLAVOR_KEY, extra_specs.PCI_TOPOLOGY)
}

_OUR_KEYS = frozenset({*_NAMES.values(), device_profile.CYBORG_FLAVOR_KEY})

_NAMESPACE = 'nova_accel'

#: The words that people write for it.
_NAMESPACES = (_NAMESPACE, 'nova_accelerator')

#: The first letters of all keys that are looked at.
_BEGINNINGS = frozenset({_NAMESPACE[:4], device_profile.CYBORG_FLAVOR_KEY[:4]})

#: How alike two words are of which one is the other misspelt.
_ALIKE = 0.9

#: Groups of device profiles, as they are stored, by the profiles' names.
Profiles = Mapping[str, Sequence[Mapping[str, str]]]


class Flavor(NamedTuple):
    """A flavor of Nova's."""

    name: str
    memory_mib: int
    extra_specs: Mapping[str, str]


def lacks_addresses(
    flavor: Flavor, profiles: Profiles, gpu_classes: Collection[str]
) -> bool:
    """Whether its GPUs and memory may need more addresses than a CPU has.

    A vGPU has small registers, so that only the memory counts. A flavor that
    asks for the PCI tree of the host lacks none: its guests get wide addresses
    where their GPUs need them.

    :param gpu_classes: further resource classes of whole GPUs
    """
    specs = flavor.extra_specs
    if (
        specs.get(ADDRESS_WIDTH_KEY)
        or specs.get(extra_specs.PCI_TOPOLOGY) == extra_specs.PciTopology.HOST
    ):
        return False
    return any(
        _lacks_addresses(
            flavor.memory_mib, [specs, *profiles.get(name, ())], gpu_classes
        )
        for name in extra_specs.profiles(specs) or ('',)
    )


def _lacks_addresses(
    memory_mib: int,
    asked: Sequence[Mapping[str, str]],
    gpu_classes: Collection[str],
) -> bool:
    vgpu = os_resource_classes.VGPU
    whole = {os_resource_classes.PGPU, *gpu_classes}.difference([vgpu])
    gpus = _amount(asked, whole)
    return bool(gpus or _amount(asked, {vgpu})) and (
        memory_mib + gpus * _REGISTERS_MIB >= _USUAL_MIB
    )


def _amount(
    asked: Sequence[Mapping[str, str]], classes: Collection[str]
) -> int:
    """How many units of the classes are asked for."""
    amount = 0
    for keys in asked:
        for key, value in keys.items():
            found = _RESOURCES.fullmatch(key)
            if found and found[1] in classes:
                # Placement refuses a flavor whose amount is no number.
                with contextlib.suppress(ValueError):
                    amount += int(value)
    return amount


def misspelt(specs: Mapping[str, str]) -> Iterator[str]:
    """The extra specs that are nearly ours, and how each is to be.

    Nova accepts extra specs that it does not know, and ignores them: the
    server would have no accelerators. A key that begins otherwise costs one
    comparison.
    """
    suspects = [key for key in specs if key[:4].lower() in _BEGINNINGS]
    for key in sorted(suspects):
        value = specs[key]
        if key == extra_specs.PCI_TOPOLOGY:
            if value and value not in set(extra_specs.PciTopology):
                yield (
                    f'{key}={value:.64}, which can be '
                    f'{" or ".join(extra_specs.PciTopology)}'
                )
        elif key not in _OUR_KEYS:
            right = _meant(key)
            if right is not None:
                yield f'{key:.64}, which {right}'


def _meant(key: str) -> str | None:
    """How a key that is none of ours is to be, None if it is no one's near."""
    namespace, _colon, name = key.lower().replace('-', '_').partition(':')
    if namespace == 'accel':
        found = difflib.get_close_matches(name, ['device_profile'], 1, _ALIKE)
        return (
            f'is to be {device_profile.CYBORG_FLAVOR_KEY}' if found else None
        )
    if not (
        namespace.startswith(_NAMESPACE)
        or difflib.get_close_matches(namespace, _NAMESPACES, 1, _ALIKE)
    ):
        return None
    found = difflib.get_close_matches(
        name or namespace.removeprefix(f'{_NAMESPACE}_'), _NAMES
    )
    if found:
        return f'is to be {_NAMES[found[0]]}'
    return f'is none of {", ".join(_NAMES.values())}'
