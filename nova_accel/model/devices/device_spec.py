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

"""``[nova_accel] device_spec``: which devices of the host are accelerators.

Each value of the option is a JSON object, in the form of ``[pci]
device_spec``::

    {"vendor_id": "8086", "product_id": "37c9", "address": "0000:3d:*.*",
     "driver": "pci", "type": "QAT", "traits": ["CUSTOM_RACK_7"]}
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import functools
import json
import re
from typing import Any
from typing import Protocol

import jsonschema
import os_traits

from nova_accel import exceptions
from nova_accel.model import link_sets
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec_faults
from nova_accel.model.devices import device_spec_keys
from nova_accel.model.devices import subsystem as subsystems
from nova_accel.model.devices import vgpu_parameters

_VALIDATOR = jsonschema.Draft202012Validator(device_spec_keys.SCHEMA)

#: The addresses of joined devices.
Members = frozenset[pci_address.PciAddress]


class SpecFunction(Protocol):
    """The facts about a PCI function that a line may match."""

    @property
    def address(self) -> pci_address.PciAddress: ...

    @property
    def vendor_id(self) -> str: ...

    @property
    def product_id(self) -> str: ...

    @property
    def subsystem(self) -> subsystems.Subsystem | None: ...


@dataclasses.dataclass(frozen=True)
class DeviceSpec:
    """One line of the option; ``text`` is the line as the operator wrote it.

    ``address`` may have ``*`` for any of its parts. ``pool`` None lets the
    driver decide whether its devices are interchangeable.
    ``pool_by_numa_node`` says that those of a pool share a NUMA node, and
    ``pool_by_links`` that providers of joined devices are above the pools.
    ``links`` are the sets of joined devices that the operator names, for each
    kind, and ``module_ids`` the numbers of devices on their NVSwitch board,
    None for one that is on no such board.
    ``traits`` include the trait of the physical network. ``unit`` is what is
    handed over together with a function. ``sriov_numvfs`` is how many virtual
    functions each physical one is to have, None to leave them as they are.
    ``mdev_types`` and ``vgpu_types`` say how many of each type a card is to
    make, and ``vgpu_params`` how a vGPU behaves, None to leave that as it is.
    ``shapes`` are those that a card may take, some with ``*`` for all of a
    kind, none for a card whose units do not exclude each other.
    ``whole`` says that an FPGA is handed out as it is, and
    ``contents_attribute`` names the attribute in sysfs that tells what is
    loaded. ``clean`` is how a unit is cleaned after a guest, None for the
    driver's own way; ``clean_command`` is the command for it, and
    ``clean_bitstream`` the image in Glance for programming.
    ``live_migratable`` says that the devices can, or cannot, be migrated live;
    None lets their driver decide.
    """

    text: str
    driver: str
    vendor_id: str = '*'
    product_id: str = '*'
    subsystem_vendor_id: str = '*'
    subsystem_product_id: str = '*'
    address: str = '*:*:*.*'
    type: str | None = None
    resource_class: str | None = None
    traits: frozenset[str] = frozenset()
    pool: bool | None = None
    pool_by_numa_node: bool = False
    pool_by_links: bool = False
    links: tuple[tuple[link_sets.Kind, tuple[Members, ...]], ...] = ()
    module_ids: tuple[tuple[pci_address.PciAddress, int | None], ...] = ()
    mdev_type: str | None = None
    mdev_types: tuple[tuple[str, int], ...] = ()
    vgpu_types: tuple[tuple[str, int], ...] = ()
    vgpu_params: str | None = None
    shapes: tuple[str, ...] = ()
    whole: bool = False
    contents_attribute: str | None = None
    clean: str | None = None
    clean_command: tuple[str, ...] = ()
    clean_bitstream: str | None = None
    physical_network: str | None = None
    unit: device_spec_keys.UnitKind = device_spec_keys.UnitKind.FUNCTION
    sriov_numvfs: int | None = None
    live_migratable: bool | None = None

    @property
    def keys_of_some_drivers(self) -> frozenset[str]:
        """The keys of some drivers alone that have no default value."""
        return frozenset(
            field.name
            for field in dataclasses.fields(self)
            if field.name in device_spec_keys.OF_SOME_DRIVERS
            and getattr(self, field.name) != field.default
        )

    @property
    def cleaning(self) -> tuple[str, ...]:
        """The method by which a unit is cleaned, and with what.

        Nothing if it is not.
        """
        if self.clean in (None, 'none'):
            return ()
        return (
            self.clean,
            *self.clean_command,
            *filter(None, [self.clean_bitstream]),
        )

    def matches(self, function: SpecFunction) -> bool:
        """Whether this line applies to the PCI function.

        If the board is not known, no line that names one applies.
        """
        board = function.subsystem
        return (
            self.vendor_id in ('*', function.vendor_id)
            and self.product_id in ('*', function.product_id)
            and self.subsystem_vendor_id in ('*', board and board.vendor_id)
            and self.subsystem_product_id in ('*', board and board.product_id)
            and _address_pattern(self.address).fullmatch(str(function.address))
            is not None
        )


def _address_pattern(glob: str) -> re.Pattern[str]:
    *domains, bus, rest = glob.lower().split(':')
    # Without a domain any domain matches, as in Nova's own option.
    domain = domains[0] if domains else '*'
    if domain != '*':
        domain = f'{int(domain, 16):04x}'
    return re.compile(
        re.escape(f'{domain}:{bus}:{rest}').replace(r'\*', '[0-9a-f]+')
    )


def parse(
    lines: Iterable[str], drivers: Iterable[str] | None
) -> tuple[DeviceSpec, ...]:
    """The lines of the option, in their order.

    :param drivers: the names of the drivers that are installed; None for all
        names, where they cannot be known
    :raises InvalidDeviceSpec: a line is wrong; the text names the line and its
        fault.
    """
    known = None if drivers is None else sorted(drivers)
    return tuple(_parse_line(line, known) for line in lines)


def first_match(
    specs: Iterable[DeviceSpec], function: SpecFunction
) -> DeviceSpec | None:
    """The first line that applies to a PCI function, None if none does."""
    return next((spec for spec in specs if spec.matches(function)), None)


def _parse_line(line: str, drivers: list[str] | None) -> DeviceSpec:
    def refuse(reason: str) -> exceptions.InvalidDeviceSpec:
        return exceptions.InvalidDeviceSpec(
            f'[nova_accel] device_spec = {line}: {reason}'
        )

    repeated: list[str] = []
    try:
        value = json.loads(
            line, object_pairs_hook=functools.partial(_object, repeated)
        )
    except ValueError as error:
        raise refuse(f'not JSON: {error}') from error
    if repeated:
        raise refuse(
            f'it has {", ".join(repeated)} twice, and each key has one value: '
            'remove one'
        )
    faults = {
        device_spec_faults.describe(
            error, device_spec_keys.SCHEMA['properties']
        )
        for error in _VALIDATOR.iter_errors(value)
    }
    if faults:
        raise refuse('; '.join(sorted(faults)))
    for reason in _contradictions(value):
        raise refuse(reason)
    if drivers is not None and value['driver'] not in drivers:
        raise refuse(
            f'unknown driver {value["driver"]!r}, the installed '
            f'drivers are {", ".join(drivers)}'
        )
    return DeviceSpec(text=line, **_normalised(value))


def _object(
    repeated: list[str], pairs: list[tuple[str, Any]]
) -> dict[str, Any]:
    """An object of JSON, of which Python would take the last of two values.

    :param repeated: gets the keys that are there more than once
    """
    counts = collections.Counter(key for key, _value in pairs)
    repeated += [json.dumps(key) for key in counts if counts[key] > 1]
    return dict(pairs)


def _contradictions(value: Mapping[str, Any]) -> Iterator[str]:
    """Why the keys of a line, each of which is right, are wrong together."""
    if not value.keys() & {'vendor_id', 'address'}:
        yield '"vendor_id" or "address" is needed'
    for method, key in (
        ('command', 'clean_command'),
        ('program', 'clean_bitstream'),
    ):
        if (value.get('clean') == method) != (key in value):
            yield f'"clean": "{method}" and "{key}" need each other'
    if 'links' in value and value.get('pool') != device_spec_keys.BY_LINKS:
        yield f'"links" needs "pool": "{device_spec_keys.BY_LINKS}"'
    if 'shapes' in value:
        for key in sorted(value.keys() & device_spec_keys.NOT_WITH_SHAPES):
            yield f'"shapes" does not go with "{key}"'
        for shape in value['shapes']:
            kind, _colon, name = shape.partition(':')
            every = f'{kind}:{device_spec_keys.ALL}'
            if name != device_spec_keys.ALL and every in value['shapes']:
                yield (
                    f'"shapes" has "{shape}", which "{every}" has, too: '
                    'remove one'
                )
    numbers = [
        number
        for number in value.get('module_ids', {}).values()
        if number is not None
    ]
    if len(set(numbers)) < len(numbers):
        yield 'two devices of "module_ids" have the same number'


_IDS = frozenset(
    {
        'vendor_id',
        'product_id',
        'subsystem_vendor_id',
        'subsystem_product_id',
    }
)

_PARSED: Mapping[str, Callable[[Any], Any]] = {
    'unit': device_spec_keys.UnitKind,
    # JSON's 8.0 is an integer, too.
    'sriov_numvfs': int,
    'live_migratable': (True, 'yes').__contains__,
    'vgpu_params': vgpu_parameters.normalised,
}


def _normalised(value: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(value)
    for key in result.keys() & _IDS:
        result[key] = result[key].lower()
    for key in ('mdev_types', 'vgpu_types'):
        # JSON's 8.0 is an integer, too.
        result[key] = tuple(
            (type_, int(units)) for type_, units in result.get(key, {}).items()
        )
    if result.get('pool') == device_spec_keys.BY_NUMA_NODE:
        result |= {'pool': True, 'pool_by_numa_node': True}
    if result.get('pool') == device_spec_keys.BY_LINKS:
        result |= {'pool': True, 'pool_by_links': True}
    result['links'] = tuple(
        (
            link_sets.Kind(kind),
            tuple(frozenset(map(_address, members)) for members in sets),
        )
        for kind, sets in result.get('links', {}).items()
    )
    result['module_ids'] = tuple(
        (_address(address), None if number is None else int(number))
        for address, number in result.get('module_ids', {}).items()
    )
    result['shapes'] = tuple(result.get('shapes', ()))
    result['clean_command'] = tuple(result.get('clean_command', ()))
    result['traits'] = frozenset(result.get('traits', ()))
    for key in _PARSED.keys() & result.keys():
        result[key] = _PARSED[key](result[key])
    if 'physical_network' in result:
        # Functions of two networks are not interchangeable.
        result['traits'] |= {naming.network_trait(result['physical_network'])}
    if result.get('live_migratable'):
        result['traits'] |= {os_traits.HW_PCI_LIVE_MIGRATABLE}
    return result


def _address(text: str) -> pci_address.PciAddress:
    return pci_address.PciAddress.parse(text)
