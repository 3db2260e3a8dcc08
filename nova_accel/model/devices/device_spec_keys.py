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

"""The keys of a line of ``[nova_accel] device_spec``, and their values."""

import enum
from typing import Any

from nova_accel.model import link_sets
from nova_accel.model import naming
from nova_accel.model.cards import card_slice
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


#: The value of ``pool`` for pools that have one NUMA node each.
BY_NUMA_NODE = 'numa'

#: The value of ``pool`` for pools below the providers of joined devices.
BY_LINKS = 'link'

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

#: The words of each description follow "must be".
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
        'pool': {'enum': [False, True, BY_NUMA_NODE, BY_LINKS]},
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
        'shapes': {
            'type': 'array',
            'minItems': 1,
            'maxItems': 64,
            'uniqueItems': True,
            'items': {
                'type': 'string',
                'pattern': (
                    rf'^({card_slice.SHAPE_PATTERN}|(mig|vgpu):[*])\Z'
                ),
            },
            'description': (
                'a list of different shapes: "whole", "mig:" or "vgpu:" with '
                'a name, such as "mig:3g.40gb", or with "*" for all'
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


#: The name of all shapes of a kind, behind the colon.
ALL = '*'

#: The keys that a line with "shapes" cannot have: the card has a provider of
#: its own, and a resource class for each shape.
NOT_WITH_SHAPES = frozenset(
    {'mdev_type', 'mdev_types', 'pool', 'resource_class', 'vgpu_types'}
)

#: The keys that only some drivers read.
OF_SOME_DRIVERS = frozenset(
    {
        'contents_attribute',
        'live_migratable',
        'mdev_type',
        'mdev_types',
        'shapes',
        'unit',
        'vgpu_params',
        'vgpu_types',
        'whole',
    }
)
