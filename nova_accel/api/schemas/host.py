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

"""A host's report, see :mod:`nova_accel.model.devices.hardware`."""

from nova_accel.api.schemas import scalars
from nova_accel.model import attach_handle
from nova_accel.model import bounds
from nova_accel.model import finding
from nova_accel.model import host_contract
from nova_accel.model import naming
from nova_accel.model.cards import card_slice

_PCI_ADDRESS = {'type': 'string', 'pattern': bounds.PCI_ADDRESS}

_PCI_ID = {'type': 'string', 'pattern': bounds.PCI_ID}

#: The most attach handles that one list may name.
_MOST_HANDLES = 256 * 1024

_HANDLE = scalars.strict_object(
    {
        'uuid': scalars.UUID,
        'type': {'enum': [str(type_) for type_ in attach_handle.HandleType]},
        'info': scalars.strict_object(
            {
                'domain': scalars.hexadecimal(4, 8),
                'bus': scalars.hexadecimal(2, 2),
                'device': scalars.hexadecimal(2, 2),
                'function': scalars.hexadecimal(1, 1),
                'asked_type': scalars.PLAIN_NAME,
                'physical_network': scalars.PLAIN_NAME,
                'further_functions': {
                    'type': 'array',
                    'items': _PCI_ADDRESS,
                    'maxItems': bounds.MAX_FURTHER_FUNCTIONS,
                },
                'managed': {'const': 'no'},
                'slice': scalars.strict_object(
                    {
                        'shape': scalars.PLAIN_NAME,
                        'mode': scalars.PLAIN_NAME,
                        'start': {
                            'type': 'integer',
                            'minimum': 0,
                            'maximum': card_slice.WHOLE_CARD - 1,
                        },
                        'size': {
                            'type': 'integer',
                            'minimum': 1,
                            'maximum': card_slice.WHOLE_CARD,
                        },
                    }
                ),
            },
            'asked_type',
            'physical_network',
            'further_functions',
            'managed',
            'slice',
        ),
        # A device's own words, such as its serial number.
        'identity': scalars.NAME,
    },
    'identity',
)

_DEPLOYABLE = scalars.strict_object(
    {
        'uuid': scalars.UUID,
        'name': scalars.PLAIN_NAME,
        'rp_uuid': scalars.UUID,
        'resource_class': scalars.PLACEMENT_NAME,
        'traits': scalars.TRAITS,
        'is_cleaned': {'type': 'boolean'},
        'region': {'anyOf': [scalars.PLAIN_NAME, {'type': 'null'}]},
        'bitstream_id': scalars.UUID_OR_NULL,
        'attach_handles': {
            'type': 'array',
            'items': _HANDLE,
            'maxItems': bounds.MAX_HANDLES,
        },
    }
)

_DEVICE = scalars.strict_object(
    {
        'uuid': scalars.UUID,
        'name': scalars.PLAIN_NAME,
        'type': {'enum': sorted(naming.RESOURCE_CLASSES)},
        'vendor_id': _PCI_ID,
        'vendor': scalars.TEXT,
        'product_id': _PCI_ID,
        'product': scalars.TEXT,
        'address': _PCI_ADDRESS,
        'driver': scalars.PLAIN_NAME,
        'numa_node': {'anyOf': [scalars.NUMA_NODE, {'type': 'null'}]},
        'fault': {'anyOf': [scalars.REASON, {'type': 'null'}]},
        'attributes': {
            'type': 'object',
            'propertyNames': scalars.PLAIN_NAME,
            'additionalProperties': scalars.TEXT,
            'maxProperties': bounds.MAX_ATTRIBUTES,
        },
        'link_sets': {
            'type': 'array',
            'items': scalars.PLAIN_NAME | {'maxLength': bounds.MAX_LINK_SET},
            'uniqueItems': True,
            'maxItems': bounds.MAX_LINK_SETS,
        },
        'deployables': {
            'type': 'array',
            'items': _DEPLOYABLE,
            'maxItems': bounds.MAX_DEPLOYABLES,
        },
    }
)

#: A number of a 32-bit column.
_FINDING = scalars.strict_object(
    {
        'kind': {'type': 'string', 'pattern': finding.KIND},
        'words': scalars.TEXT | {'maxLength': finding.MAX_WORDS},
        'is_repaired': {'type': 'boolean'},
        'instance_uuid': scalars.UUID_OR_NULL,
        'device': {'anyOf': [scalars.TEXT, {'type': 'null'}]},
    }
)

_REVISION = {'type': 'integer', 'minimum': 0, 'maximum': 2**31 - 1}

#: The devices are left out where nothing is new.
REPORT = scalars.strict_object(
    {
        'node_uuid': scalars.UUID,
        'service_host': scalars.SERVICE_HOST,
        'digest': scalars.PLAIN_NAME,
        'devices': {
            'type': 'array',
            'items': _DEVICE,
            'maxItems': bounds.MAX_DEVICES_OF_PART,
        },
        'orders_seen': {'anyOf': [_REVISION, {'type': 'null'}]},
        # The revision that Placement has.
        'orders_published': {'anyOf': [_REVISION, {'type': 'null'}]},
        host_contract.KEY: {
            'type': 'integer',
            'minimum': host_contract.FIRST,
            'maximum': host_contract.NEWEST,
        },
        # The last part, or the whole report, has all of them.
        'findings': {
            'type': 'array',
            'items': _FINDING,
            'maxItems': finding.MAX_FINDINGS,
        },
        # A part of a report says which one it is. The last part also has the
        # uuids of the devices of the parts before.
        'part': {
            'type': 'integer',
            'minimum': 0,
            'maximum': bounds.MAX_DEVICES,
        },
        'others': {
            'type': 'array',
            'items': scalars.UUID,
            'uniqueItems': True,
            'maxItems': bounds.MAX_DEVICES,
        },
    },
    'devices',
    'orders_seen',
    'orders_published',
    'findings',
    'part',
    'others',
)

CLEANING = scalars.strict_object(
    {
        'revision': _REVISION,
        'cleaned': {
            'type': 'array',
            'items': scalars.UUID,
            'uniqueItems': True,
            'maxItems': _MOST_HANDLES,
        },
        'failed': {
            'type': 'object',
            'propertyNames': scalars.UUID,
            'additionalProperties': scalars.REASON,
            'maxProperties': _MOST_HANDLES,
        },
    }
)

PROVISIONING = scalars.strict_object(
    {
        name: {
            'type': 'array',
            'items': scalars.UUID,
            'uniqueItems': True,
            'maxItems': _MOST_HANDLES,
        }
        for name in ('arqs', 'failed')
    },
    'failed',
)
