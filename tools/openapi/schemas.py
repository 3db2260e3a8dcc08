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

"""The schemas of the bodies of answers.

Clients must accept further fields, as a new microversion adds some.
"""

from collections.abc import Mapping

from nova_accel.api.schemas import scalars
from nova_accel.model import arq_types
from nova_accel.model.units import unit_health
from nova_accel.model.units import unit_state

Schema = scalars.Schema

_STRING: Schema = {'type': 'string'}
_STRING_OR_NULL: Schema = {'type': ['string', 'null']}
_INTEGER: Schema = {'type': 'integer'}
_OBJECT: Schema = {'type': 'object'}
_TIME: Schema = {**_STRING, 'description': 'ISO 8601, in UTC'}
_TIME_OR_NULL: Schema = {**_TIME, 'type': ['string', 'null']}
_UUIDS: Schema = {'type': 'array', 'items': scalars.UUID}

_STATE: Schema = {'enum': [str(state) for state in arq_types.State]}


def _fields(properties: Schema, *optional: str) -> Schema:
    """An object with these properties, and maybe with others."""
    return {
        'type': 'object',
        'properties': properties,
        'required': [name for name in properties if name not in optional],
    }


def component(name: str) -> Schema:
    """A reference to one of :data:`COMPONENTS`."""
    return {'$ref': f'#/components/schemas/{name}'}


def list_of(name: str, schema: Schema) -> Schema:
    return _fields({name: {'type': 'array', 'items': schema}})


def one(name: str, schema: Schema) -> Schema:
    return _fields({name: schema})


_LINKS: Schema = {
    'type': 'array',
    'items': _fields({'href': _STRING, 'rel': _STRING}),
}


def page_of(name: str, schema: Schema) -> Schema:
    """A list that, if it is a full page, has a link to the next."""
    links = f'{name}_links'
    return _fields(
        {name: {'type': 'array', 'items': schema}, links: _LINKS}, links
    )


_HEALTH = [str(each) for each in unit_health.Health]

_TIMES: Schema = {'created_at': _TIME, 'updated_at': _TIME_OR_NULL}

DEVICE_PROFILE = _fields(
    {
        'uuid': scalars.UUID,
        'name': _STRING,
        'description': _STRING_OR_NULL,
        'groups': {'type': 'array', 'items': _OBJECT},
        'links': _LINKS,
        **_TIMES,
    }
)

ACCELERATOR_REQUEST = _fields(
    {
        'uuid': scalars.UUID,
        'state': _STATE,
        'device_profile_name': _STRING,
        'device_profile_group_id': _INTEGER,
        'hostname': _STRING_OR_NULL,
        'device_rp_uuid': scalars.UUID_OR_NULL,
        'instance_uuid': scalars.UUID_OR_NULL,
        'project_id': _STRING_OR_NULL,
        'attach_handle_type': {'enum': ['', 'PCI', 'MDEV']},
        'attach_handle_uuid': scalars.UUID_OR_NULL,
        'attach_handle_info': _OBJECT,
        'links': _LINKS,
        **_TIMES,
        'reason': {
            **_STRING_OR_NULL,
            'description': 'Why it is BindFailed, from 2.4 on',
        },
        'chosen_because': {
            **_STRING_OR_NULL,
            'description': 'Why it has its device, from 2.4 on',
        },
        'health': {
            'enum': [*_HEALTH, None],
            'description': 'From 2.5 on; null if it has no device',
        },
        'health_reason': {
            **_STRING_OR_NULL,
            'description': 'Why the health is not healthy, from 2.5 on',
        },
        'health_since': {**_TIME_OR_NULL, 'description': 'From 2.5 on'},
    },
    'reason',
    'chosen_because',
    'health',
    'health_reason',
    'health_since',
)

DEVICE = _fields(
    {
        'uuid': scalars.UUID,
        'type': _STRING,
        'vendor': _STRING,
        'model': _STRING,
        'std_board_info': {**_STRING, 'contentMediaType': 'application/json'},
        'vendor_board_info': _STRING,
        'hostname': _STRING,
        'links': _LINKS,
        **_TIMES,
        'status': {
            'enum': ['enabled', 'maintaining'],
            'description': 'From microversion 2.3 on',
        },
        'fault': {**_STRING_OR_NULL, 'description': 'From 2.4 on'},
        'attributes': {**_OBJECT, 'description': 'From 2.4 on'},
        'unclean_attach_handles': {
            'type': 'array',
            'description': 'From 2.4 on',
            'items': _fields(
                {
                    'attach_handle_uuid': scalars.UUID,
                    'deployable_name': _STRING,
                    'reason': _STRING,
                }
            ),
        },
        'is_published': {
            'type': 'boolean',
            'description': (
                'Whether Placement counts the device by its status, as far '
                'as its host knows. From 2.5 on'
            ),
        },
    },
    'status',
    'fault',
    'attributes',
    'unclean_attach_handles',
    'is_published',
)

DEPLOYABLE = _fields(
    {
        'uuid': scalars.UUID,
        'parent_id': {'type': 'null'},
        'root_id': {'type': 'null'},
        'name': _STRING,
        'num_accelerators': _INTEGER,
        'device_id': {'type': ['integer', 'null']},
        'attributes_list': {**_STRING, 'contentMediaType': 'application/json'},
        'rp_uuid': scalars.UUID_OR_NULL,
        'driver_name': _STRING_OR_NULL,
        'bitstream_id': scalars.UUID_OR_NULL,
        'links': _LINKS,
        **_TIMES,
        'hostname': {
            **_STRING_OR_NULL,
            'description': 'From microversion 2.4 on',
        },
        'device_uuid': {**scalars.UUID_OR_NULL, 'description': 'From 2.4 on'},
        'region': {**_STRING_OR_NULL, 'description': 'From 2.4 on'},
        'num_accelerators_in_use': {**_INTEGER, 'description': 'From 2.4 on'},
    },
    'hostname',
    'device_uuid',
    'region',
    'num_accelerators_in_use',
)

PROGRAMMING = _fields(
    {
        'uuid': scalars.UUID,
        'hostname': _STRING,
        'device_uuid': scalars.UUID,
        'region': _STRING,
        'bitstream_id': scalars.UUID,
        'project_id': _STRING_OR_NULL,
        'user_id': _STRING_OR_NULL,
        'instance_uuid': scalars.UUID_OR_NULL,
        'failure': _STRING_OR_NULL,
        'state': {'enum': ['running', 'succeeded', 'failed']},
        'started_at': _TIME,
        'finished_at': _TIME_OR_NULL,
        'duration_s': {'type': ['integer', 'null']},
    }
)

ATTRIBUTE = _fields(
    {
        'uuid': scalars.UUID,
        'deployable_id': _INTEGER,
        'key': _STRING,
        'value': _STRING,
        'links': _LINKS,
        **_TIMES,
    }
)

_EXPLAINED = _fields(
    {
        'device_profile_uuid': scalars.UUID,
        'device_profile_name': _STRING,
        'groups': {
            'type': 'array',
            'items': _fields(
                {
                    'device_profile_group_id': _INTEGER,
                    'group': _OBJECT,
                    'hostnames': {'type': 'array', 'items': _STRING},
                    'resource_providers': {
                        'type': 'array',
                        'items': _fields(
                            {
                                'uuid': scalars.UUID,
                                'hostname': _STRING,
                                'resource_class': _STRING,
                                'device_uuids': _UUIDS,
                                'device_addresses': {
                                    'type': 'array',
                                    'items': _STRING,
                                },
                                'total': _INTEGER,
                                'free': _INTEGER,
                                'reasons': {
                                    'type': 'array',
                                    'items': _STRING,
                                },
                            }
                        ),
                    },
                }
            ),
        },
    }
)

EXPLANATION = _fields(
    {'explain': _EXPLAINED, 'explain_links': _LINKS}, 'explain_links'
)

AVAILABILITY = one(
    'availability',
    _fields(
        {
            'device_profile_uuid': {
                **scalars.UUID_OR_NULL,
                'description': 'Null for several device profiles',
            },
            'device_profile_name': _STRING,
            'min_servers': _INTEGER,
            'max_servers': {'type': ['integer', 'null']},
            'is_limited_by_quota': {'type': 'boolean'},
            'obstacle': {
                **_STRING_OR_NULL,
                'description': 'Which group is larger than every pool',
            },
            'drain_ends_at': {
                **_STRING_OR_NULL,
                'description': 'When the first drain is planned to end of a '
                'host with units of the classes',
            },
            'hosts': {
                'type': 'array',
                'items': _fields({'hostname': _STRING, 'servers': _INTEGER}),
            },
            'not_free': {
                'type': 'array',
                'items': _fields(
                    {
                        'resource_class': _STRING,
                        'reason': _STRING,
                        'units': _INTEGER,
                    }
                ),
            },
        },
        'hosts',
        'not_free',
    ),
)

_MOVE = _fields(
    {
        'server_uuid': scalars.UUID,
        'from': _STRING,
        'to': _STRING,
        'devices': {
            'type': 'array',
            'items': _fields({'device_uuid': scalars.UUID, 'units': _INTEGER}),
            'description': 'Those that it is expected to get',
        },
    }
)

ROOM = one(
    'room',
    _fields(
        {
            'device_profile_uuid': scalars.UUID,
            'device_profile_name': _STRING,
            'count': _INTEGER,
            'is_proven': {
                'type': 'boolean',
                'description': (
                    'Whether no plan is better, or there surely is none'
                ),
            },
            'moves': {
                'type': ['array', 'null'],
                'items': _MOVE,
                'description': 'In their order; null if no plan was found',
            },
        }
    ),
)

_HOLDER = _fields(
    {
        'uuid': scalars.UUID,
        'state': _STATE,
        'role': _STRING_OR_NULL,
        'hostname': _STRING_OR_NULL,
        'instance_uuid': scalars.UUID_OR_NULL,
        'resource_class': _STRING,
        'project_id': _STRING_OR_NULL,
    }
)

_UNIT = _fields(
    {
        'uuid': {**scalars.UUID, 'description': 'Of the attach handle'},
        'part': {
            **_STRING,
            'description': 'Its region, or the name of its deployable',
        },
        'resource_class': _STRING,
        'rp_uuid': scalars.UUID,
        'address': _STRING,
        'state': {
            'enum': sorted(
                {means.shown for means in unit_state.MEANINGS.values()}
            )
        },
        'why': _STRING,
        'is_present': {'type': 'boolean'},
        'is_clean': {'type': 'boolean'},
        'unclean_reason': _STRING_OR_NULL,
        'arq': {'anyOf': [_HOLDER, {'type': 'null'}]},
    }
)

#: A host with all that it has.
TOPOLOGY_HOST = _fields(
    {
        'hostname': _STRING,
        'service_host': _STRING_OR_NULL,
        'is_silent': {'type': 'boolean'},
        'drain': {
            'anyOf': [
                _fields(
                    {
                        'reason': _STRING,
                        'until': _TIME_OR_NULL,
                        'is_overdue': {'type': 'boolean'},
                    }
                ),
                {'type': 'null'},
            ],
        },
        'devices': {
            'type': 'array',
            'items': _fields(
                {
                    'uuid': scalars.UUID,
                    'name': _STRING,
                    'address': _STRING,
                    'product': _STRING,
                    'numa_node': {'type': ['integer', 'null']},
                    'status': {'enum': ['enabled', 'maintaining']},
                    'fault': _STRING_OR_NULL,
                    'link_sets': {'type': 'array', 'items': _STRING},
                    'units': {'type': 'array', 'items': _UNIT},
                }
            ),
        },
        'unheld': {
            'type': 'array',
            'items': _HOLDER,
            'description': 'Bound to the host, without a unit',
        },
    }
)

#: An ARQ as compute hosts see it.
BOUND_ARQ = _fields(
    {
        'uuid': scalars.UUID,
        'state': _STATE,
        'device_profile_name': _STRING,
        'device_profile_group_id': _INTEGER,
        'group': _OBJECT,
        'device_rp_uuid': scalars.UUID_OR_NULL,
        'attach_handle': _fields(
            {
                'uuid': scalars.UUID_OR_NULL,
                'type': _STRING_OR_NULL,
                'info': {'type': ['object', 'null']},
                'identity': _STRING,
            },
            'identity',
        ),
    }
)

BINDING = _fields(
    {
        'instance_uuid': scalars.UUID,
        'role': _STRING_OR_NULL,
        'attempt': {'type': ['integer', 'null']},
        'arqs': {
            'type': 'array',
            'items': component('BoundAcceleratorRequest'),
        },
    }
)

BINDINGS = _fields(
    {
        'bindings': {'type': 'array', 'items': component('Binding')},
        'left_mdevs': {
            **_UUIDS,
            'description': (
                'Of a host that was imported from a Cyborg and has not '
                'reported yet: the mediated devices that no one has'
            ),
        },
    }
)

DRAIN = _fields(
    {
        'hostname': _STRING,
        'reason': _STRING,
        'from': {
            **_TIME_OR_NULL,
            'description': 'The announced beginning; since microversion 2.5',
        },
        'until': _TIME_OR_NULL,
        'is_overdue': {'type': 'boolean'},
        'requested_at': {
            **_TIME_OR_NULL,
            'description': 'When it began, null if it has not yet',
        },
        'requested_by': _STRING_OR_NULL,
        'devices': {
            **_INTEGER,
            'description': 'How many devices are disabled for it',
        },
    },
    'from',
)

SERVER = list_of(
    'accelerators',
    _fields(
        {
            'arq': scalars.UUID,
            'device_profile_name': _STRING,
            'device_profile_group_id': _INTEGER,
            'resource_class': _STRING,
            'state': _STATE,
            'is_leaving': {
                'type': 'boolean',
                'description': (
                    'Whether the guest is to give it back, and keeps it until '
                    'it is stopped'
                ),
            },
            'health': {'enum': _HEALTH},
            'reason': {
                **_STRING_OR_NULL,
                'description': 'Why the health is not healthy',
            },
            'since': {
                **_TIME_OR_NULL,
                'description': (
                    'The first report of the fault, or the last report of a '
                    'silent host'
                ),
            },
            'drain': {
                'anyOf': [
                    _fields(
                        {
                            'from': _TIME,
                            'until': _TIME_OR_NULL,
                            'reason': _STRING,
                        }
                    ),
                    {'type': 'null'},
                ]
            },
        }
    ),
)

USAGE = one(
    'usage',
    _fields(
        {
            'start': _TIME,
            'end': _TIME,
            'held': {
                'type': 'array',
                'items': _fields(
                    {
                        'project_id': _STRING_OR_NULL,
                        'product': _STRING,
                        'resource_class': _STRING,
                        'shape': {
                            **_STRING,
                            'description': (
                                'Empty unless the device is handed out in '
                                'parts'
                            ),
                        },
                        'units': {
                            **_INTEGER,
                            'description': (
                                'How many were held, at once or one after '
                                'the other'
                            ),
                        },
                        'unit_seconds': _INTEGER,
                    }
                ),
            },
        }
    ),
)

#: Empty if there is nothing to tell.
VENDORDATA: Schema = {
    'anyOf': [SERVER, {'type': 'object', 'maxProperties': 0}]
}

ORDERS = one(
    'orders',
    _fields(
        {
            'revision': _INTEGER,
            'disabled': _UUIDS,
            'uncleaned': _UUIDS,
            'stock': {
                'type': 'object',
                'propertyNames': scalars.UUID,
                'additionalProperties': scalars.UUID,
                'description': (
                    'Unclean attach handle -> the bitstream by which its '
                    'region may be cleaned'
                ),
            },
            'has_unadopted': {
                'type': 'boolean',
                'description': (
                    'Whether clients have bound requests to the host that it '
                    'has not taken over'
                ),
            },
        },
        'stock',
        'has_unadopted',
    ),
)

PROGRAMMED = one('msg', _STRING)

HOSTNAMES = list_of('hostnames', _STRING)

#: The version documents.
VERSION = _fields(
    {
        'id': _STRING,
        'status': _STRING,
        'min_version': _STRING,
        'max_version': _STRING,
        'links': _LINKS,
    }
)

VERSIONS = _fields(
    {
        'name': _STRING,
        'description': _STRING,
        'default_version': VERSION,
        'versions': {'type': 'array', 'items': VERSION},
    }
)

ERROR = _fields(
    {
        'error_message': {
            **_STRING,
            'contentMediaType': 'application/json',
            'description': (
                'JSON in a string, with faultstring, or with title '
                'and description where HTTP itself refuses'
            ),
        },
        'error_code': {
            **_STRING,
            'description': 'The name of the exception, for hosts',
        },
        'newest_attempt': {
            'type': ['integer', 'null'],
            'description': (
                'From which a host counts on, if its attempt is older '
                'or out of reach'
            ),
        },
    },
    'error_code',
    'newest_attempt',
)

FPGA_ERROR = one('error', _STRING)

#: The schemas that have a name of their own in the document.
COMPONENTS: Mapping[str, Schema] = {
    'DeviceProfile': DEVICE_PROFILE,
    'AcceleratorRequest': ACCELERATOR_REQUEST,
    'Device': DEVICE,
    'Deployable': DEPLOYABLE,
    'Programming': PROGRAMMING,
    'Attribute': ATTRIBUTE,
    'Availability': AVAILABILITY,
    'Room': ROOM,
    'Explanation': EXPLANATION,
    'TopologyHost': TOPOLOGY_HOST,
    'BoundAcceleratorRequest': BOUND_ARQ,
    'Binding': BINDING,
    'Drain': DRAIN,
    'Error': ERROR,
    'FpgaError': FPGA_ERROR,
}
