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

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import enum
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
from nova_accel.model.devices import subsystem as subsystems
from nova_accel.model.devices import vgpu_parameters

# jsonschema uses Python's re, whose $ accepts a newline at the end.
_UUID = r'^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z'
_HEX_ID = {
    'type': 'string',
    'pattern': r'^([0-9a-fA-F]{4}|[*])\Z',
    'description': 'four hexadecimal digits, or "*" for any',
}


class UnitKind(enum.StrEnum):
    """The unit in which a device is handed out: the value of ``unit``."""

    FUNCTION = 'function'
    SLOT = 'slot'
    IOMMU_GROUP = 'iommu_group'


# The value of ``pool`` for pools that have one NUMA node each.
_BY_NUMA_NODE = 'numa'

# The value of ``pool`` for pools below the providers of joined devices.
_BY_LINKS = 'link'

_ADDRESS = {
    'type': 'string',
    'pattern': (r'^[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7]\Z'),
}

# Kind -> sets of joined devices.
_LINKS = {
    'description': (
        'an object with lists of PCI addresses for nvlink, numa or pcie, such '
        'as {"nvlink": [["0000:1b:00.0", "0000:1c:00.0"]]}, with 2 to '
        f'{link_sets.MAX_SIZE} addresses in each list'
    ),
    'type': 'object',
    'minProperties': 1,
    'propertyNames': {'enum': ['nvlink', 'numa', 'pcie']},
    'additionalProperties': {
        'type': 'array',
        'maxItems': 64,
        'items': {
            'type': 'array',
            'items': _ADDRESS,
            'minItems': 2,
            'maxItems': link_sets.MAX_SIZE,
        },
    },
}

# Address -> number on its NVSwitch board, null without one.
_MODULE_IDS = {
    'description': (
        'an object with a number for each PCI address, such as '
        f'{{"0000:1b:00.0": 1}}, from 0 to {link_sets.MAX_MODULE_ID}, or null'
    ),
    'type': 'object',
    'minProperties': 1,
    'maxProperties': link_sets.MAX_SIZE,
    'propertyNames': _ADDRESS,
    'additionalProperties': {
        'anyOf': [
            {
                'type': 'integer',
                'minimum': 0,
                'maximum': link_sets.MAX_MODULE_ID,
            },
            {'type': 'null'},
        ]
    },
}

# Type -> number of units, in the order of the JSON text.
_UNITS = {
    'description': (
        'an object with 1 to 1024 units of each type, such as '
        '{"nvidia-592": 2}'
    ),
    'type': 'object',
    'minProperties': 1,
    'additionalProperties': {'type': 'integer', 'minimum': 1, 'maximum': 1024},
}

_NAME = {
    'type': 'string',
    'pattern': r'^CUSTOM_[A-Z0-9_]{1,248}\Z',
    'description': (
        'CUSTOM_ and upper-case letters, digits or _, with 255 characters at '
        'most'
    ),
}

# The words of each description follow "must be".
SCHEMA: dict[str, Any] = {
    'type': 'object',
    'properties': {
        'vendor_id': _HEX_ID,
        'product_id': _HEX_ID,
        'subsystem_vendor_id': _HEX_ID,
        'subsystem_product_id': _HEX_ID,
        'address': {
            'type': 'string',
            'pattern': (
                r'^(([0-9a-fA-F]{4,8}|[*]):)?([0-9a-fA-F]{2}|[*]):'
                r'([01][0-9a-fA-F]|[*])\.([0-7]|[*])\Z'
            ),
            'description': (
                'a PCI address, such as "0000:3d:00.0", with "*" for any '
                'domain, bus, slot or function'
            ),
        },
        'driver': {
            'type': 'string',
            'minLength': 1,
            'description': 'the name of a driver',
        },
        'type': {'enum': sorted(naming.RESOURCE_CLASSES)},
        'resource_class': _NAME
        | {
            'description': (
                f'{_NAME["description"]}; leave it out for the standard class '
                'of the "type"'
            )
        },
        'traits': {
            'type': 'array',
            'uniqueItems': True,
            'items': _NAME,
            'description': (
                'a list of different traits, each of them '
                f'{_NAME["description"]}'
            ),
        },
        'pool': {'enum': [False, True, _BY_NUMA_NODE, _BY_LINKS]},
        'links': _LINKS,
        'module_ids': _MODULE_IDS,
        'mdev_type': {
            'type': 'string',
            'minLength': 1,
            'description': (
                'the name of a type of mediated devices, such as "nvidia-592"'
            ),
        },
        'mdev_types': _UNITS,
        'vgpu_types': _UNITS
        | {
            'propertyNames': {'pattern': r'^[0-9]+\Z'},
            'description': (
                'an object with 1 to 1024 units of each type, which is a '
                'number, such as {"558": 4}'
            ),
        },
        'vgpu_params': {
            'type': 'string',
            'pattern': rf'^{vgpu_parameters.PATTERN}\Z',
            'description': (
                'parameters with their values, such as '
                '"enable_uvm=1,frame_rate_limiter=0", with 960 characters at '
                'most and without vgpu_type_id'
            ),
        },
        'whole': {'type': 'boolean', 'description': 'true or false'},
        # A relative path without "..".
        'contents_attribute': {
            'type': 'string',
            'pattern': r'^(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,199}\Z',
            'description': (
                "the path of an attribute, relative to the device's directory "
                'in sysfs and without ".."'
            ),
        },
        'clean': {
            'enum': [
                'command',
                'format',
                'none',
                'program',
                'reset',
                'sanitize',
            ]
        },
        'clean_command': {
            'type': 'array',
            'items': {'type': 'string'},
            'prefixItems': [{'type': 'string', 'pattern': '^/'}],
            'minItems': 1,
            'description': (
                'a list of a program, with its full path, and its arguments'
            ),
        },
        'clean_bitstream': {
            'type': 'string',
            'pattern': _UUID,
            'description': 'the uuid of an image, in lower-case letters',
        },
        'physical_network': {
            'type': 'string',
            'pattern': r'^(?=.*[a-zA-Z0-9])[ -~]{1,200}\Z',
            'description': 'the name of a physical network, in ASCII',
        },
        'unit': {'enum': sorted(UnitKind)},
        # As in Nova's own [pci] device_spec.
        'live_migratable': {'enum': [False, True, 'no', 'yes']},
        # The kernel counts them in 16 bits.
        'sriov_numvfs': {
            'type': 'integer',
            'minimum': 1,
            'maximum': 65535,
            'description': 'a number from 1 to 65535',
        },
    },
    'required': ['driver'],
    'additionalProperties': False,
}


#: The keys that only some drivers read.
OF_SOME_DRIVERS = frozenset(
    {
        'contents_attribute',
        'live_migratable',
        'mdev_type',
        'mdev_types',
        'unit',
        'vgpu_params',
        'vgpu_types',
        'whole',
    }
)

_VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

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
    whole: bool = False
    contents_attribute: str | None = None
    clean: str | None = None
    clean_command: tuple[str, ...] = ()
    clean_bitstream: str | None = None
    physical_network: str | None = None
    unit: UnitKind = UnitKind.FUNCTION
    sriov_numvfs: int | None = None
    live_migratable: bool | None = None

    @property
    def keys_of_some_drivers(self) -> frozenset[str]:
        """Which of :data:`OF_SOME_DRIVERS` have no default value."""
        return frozenset(
            field.name
            for field in dataclasses.fields(self)
            if field.name in OF_SOME_DRIVERS
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

    try:
        value = json.loads(line)
    except ValueError as error:
        raise refuse(f'not JSON: {error}') from error
    faults = {
        device_spec_faults.describe(error, SCHEMA['properties'])
        for error in _VALIDATOR.iter_errors(value)
    }
    if faults:
        raise refuse('; '.join(sorted(faults)))
    if not value.keys() & {'vendor_id', 'address'}:
        raise refuse('"vendor_id" or "address" is needed')
    for method, key in (
        ('command', 'clean_command'),
        ('program', 'clean_bitstream'),
    ):
        if (value.get('clean') == method) != (key in value):
            raise refuse(f'"clean": "{method}" and "{key}" need each other')
    if 'links' in value and value.get('pool') != _BY_LINKS:
        raise refuse(f'"links" needs "pool": "{_BY_LINKS}"')
    numbers = [
        number
        for number in value.get('module_ids', {}).values()
        if number is not None
    ]
    if len(set(numbers)) < len(numbers):
        raise refuse('two devices of "module_ids" have the same number')
    if drivers is not None and value['driver'] not in drivers:
        raise refuse(
            f'unknown driver {value["driver"]!r}, the installed '
            f'drivers are {", ".join(drivers)}'
        )
    return DeviceSpec(text=line, **_normalised(value))


_IDS = frozenset(
    {
        'vendor_id',
        'product_id',
        'subsystem_vendor_id',
        'subsystem_product_id',
    }
)

_PARSED: Mapping[str, Callable[[Any], Any]] = {
    'unit': UnitKind,
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
    if result.get('pool') == _BY_NUMA_NODE:
        result |= {'pool': True, 'pool_by_numa_node': True}
    if result.get('pool') == _BY_LINKS:
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
