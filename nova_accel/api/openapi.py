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

"""The OpenAPI 3.1 document of the API, made of its routes and schemas.

A test checks that each route is described here.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import re
from typing import Any

from nova_accel.api import errors
from nova_accel.api import microversion
from nova_accel.api import route
from nova_accel.api import routes
from nova_accel.api.schemas import accelerator_request
from nova_accel.api.schemas import answers
from nova_accel.api.schemas import attribute
from nova_accel.api.schemas import binding
from nova_accel.api.schemas import bitstream
from nova_accel.api.schemas import device_profile
from nova_accel.api.schemas import host
from nova_accel.api.schemas import programming
from nova_accel.api.schemas import scalars

Schema = scalars.Schema

#: The schemas that have a name of their own in the document.
_COMPONENTS: Mapping[str, Schema] = {
    'DeviceProfile': answers.DEVICE_PROFILE,
    'AcceleratorRequest': answers.ACCELERATOR_REQUEST,
    'Device': answers.DEVICE,
    'Deployable': answers.DEPLOYABLE,
    'Programming': answers.PROGRAMMING,
    'Attribute': answers.ATTRIBUTE,
    'Explanation': answers.EXPLANATION,
    'BoundAcceleratorRequest': answers.BOUND_ARQ,
    'Binding': answers.BINDING,
    'Error': answers.ERROR,
    'FpgaError': answers.FPGA_ERROR,
}


def _component(name: str) -> Schema:
    return {'$ref': f'#/components/schemas/{name}'}


@dataclasses.dataclass(frozen=True)
class Operation:
    """A method of a path, as the document describes it.

    :ivar answers: status -> body, None if there is none; only for success
    :ivar query: argument -> what it is
    :ivar since: the first microversion that has it
    """

    summary: str
    answers: Mapping[int, Schema | None]
    body: Schema | None = None
    query: Mapping[str, str] = dataclasses.field(default_factory=dict)
    since: str = microversion.VERSIONS[0]


_EMPTY: Mapping[int, Schema | None] = {204: None}
_ARQS = answers.page_of('arqs', _component('AcceleratorRequest'))
_BOUND_ARQS = answers.list_of('arqs', _component('BoundAcceleratorRequest'))


def _also_in(wrapper: str, schema: Schema) -> Schema:
    """A body that some clients send as the only item of an object."""
    return {
        'anyOf': [
            schema,
            {
                'type': 'object',
                'properties': {wrapper: schema},
                'required': [wrapper],
                'additionalProperties': False,
            },
        ]
    }


_PAGES = {
    'limit': 'How many at most, from 2.6 on',
    'marker': 'Uuid of the last one that is known, from 2.6 on',
    'sort': 'Keys and directions, as type:desc,uuid; from 2.6 on',
}

#: Path -> HTTP method -> what it does; as :data:`nova_accel.api.routes.API`.
OPERATIONS: Mapping[str, Mapping[str, Operation]] = {
    '/device_profiles': {
        'GET': Operation(
            'List device profiles',
            {
                200: answers.page_of(
                    'device_profiles', _component('DeviceProfile')
                )
            },
            query={'name': 'Names, separated by commas', **_PAGES},
        ),
        'POST': Operation(
            'Create a device profile',
            {201: _component('DeviceProfile')},
            {
                'type': 'array',
                'items': device_profile.PROFILE,
                'minItems': 1,
                'maxItems': 1,
            },
        ),
        'DELETE': Operation(
            'Delete device profiles',
            _EMPTY,
            query={'value': 'Names, separated by commas'},
        ),
    },
    '/device_profiles/{uuid}': {
        'GET': Operation(
            'Show a device profile, from 2.2 on also by its name',
            {200: answers.one('device_profile', _component('DeviceProfile'))},
        ),
        'PUT': Operation(
            'Replace all of a device profile but its name',
            {200: _component('DeviceProfile')},
            _also_in('device_profile', device_profile.UPDATE),
            since='2.6',
        ),
        'DELETE': Operation(
            'Delete a device profile; or several, by names with commas', _EMPTY
        ),
    },
    '/device_profiles/{uuid}/explain': {
        'GET': Operation(
            'Tell which hosts could serve a device profile, and why others '
            'cannot',
            {200: _component('Explanation')},
            since='2.6',
        ),
    },
    '/accelerator_requests': {
        'GET': Operation(
            'List accelerator requests',
            {200: _ARQS},
            query={
                'instance': 'Uuid of an instance',
                'bind_state': 'resolved',
                'hostname': 'Nodename, from 2.6 on',
                'state': 'Such as Bound, from 2.6 on',
                'project_id': 'Project of the owner, from 2.6 on',
                **_PAGES,
            },
        ),
        'POST': Operation(
            'Create the accelerator requests of a device profile',
            {201: _ARQS},
            accelerator_request.CREATE,
        ),
        'PATCH': Operation(
            'Bind accelerator requests, or unbind them',
            {202: None},
            accelerator_request.PATCH,
        ),
        'DELETE': Operation(
            'Delete accelerator requests, named or of an instance',
            _EMPTY,
            query={
                'arqs': 'Uuids, separated by commas',
                'instance': 'Uuid of an instance',
            },
        ),
    },
    '/accelerator_requests/{uuid}': {
        'GET': Operation(
            'Show an accelerator request',
            {200: _component('AcceleratorRequest')},
        ),
        'PATCH': Operation(
            'Bind an accelerator request, or unbind it',
            {202: None},
            accelerator_request.PATCH,
        ),
        'DELETE': Operation('Delete accelerator requests', _EMPTY),
    },
    '/devices': {
        'GET': Operation(
            'List devices',
            {200: answers.page_of('devices', _component('Device'))},
            query={
                'type': 'As FPGA',
                'vendor': 'PCI vendor id',
                'hostname': 'Nodename',
                **_PAGES,
            },
        ),
    },
    '/devices/{uuid}': {
        'GET': Operation('Show a device', {200: _component('Device')}),
    },
    '/devices/{uuid}/disable': {
        'POST': Operation('Give a device to no more servers', _EMPTY),
    },
    '/devices/{uuid}/enable': {
        'POST': Operation('Give a device to servers again', _EMPTY),
    },
    '/deployables': {
        'GET': Operation(
            'List deployables',
            {200: answers.page_of('deployables', _component('Deployable'))},
            query={
                'hostname': 'Nodename',
                'device_uuid': 'Uuid of a device',
                'bitstream_id': 'Uuid of an image in Glance',
                'filters.field': "Cyborg's, name",
                'filters.value': 'The name of a deployable',
                **_PAGES,
            },
        ),
    },
    '/deployables/{uuid}': {
        'GET': Operation('Show a deployable', {200: _component('Deployable')}),
    },
    '/deployables/{uuid}/program': {
        'PATCH': Operation(
            'Program the region of a deployable, and wait for that',
            {200: _component('Deployable')},
            programming.PATCH,
        ),
    },
    '/deployables/{uuid}/program/{same_uuid}': {
        'PATCH': Operation(
            'The same, as openstacksdk calls it',
            {200: _component('Deployable')},
            programming.PATCH,
        ),
    },
    '/attributes': {
        'GET': Operation(
            'List the attributes of deployables',
            {200: answers.list_of('attributes', _component('Attribute'))},
            query={
                'deployable_id': 'Number or uuid of a deployable',
                'key': 'Key of the attributes',
            },
        ),
        'POST': Operation(
            'Note something of a deployable',
            {201: _component('Attribute')},
            _also_in('attribute', attribute.CREATE),
        ),
    },
    '/attributes/{uuid}': {
        'GET': Operation('Show an attribute', {200: _component('Attribute')}),
        'DELETE': Operation('Forget what was noted', _EMPTY),
    },
    '/fpga/{deployable_uuid}': {
        'POST': Operation(
            'Program the region of a deployable, and wait for that',
            {200: answers.PROGRAMMED},
            programming.FPGA,
        ),
    },
    '/programmings': {
        'GET': Operation(
            'List the programmings of FPGA regions, newest first',
            {200: answers.page_of('programmings', _component('Programming'))},
            since='2.5',
            query={
                'hostname': 'Nodename',
                'device_uuid': 'Uuid of a device',
                'deployable_uuid': 'Uuid of a deployable in the region',
                'instance_uuid': 'Uuid of an instance',
                'bitstream_id': 'Uuid of an image in Glance',
                'project_id': 'Project that asked for it',
                **_PAGES,
                'limit': 'How many at most',
                'marker': 'Uuid of the last one that is known',
            },
        ),
    },
    '/bitstreams/{uuid}/prefetch': {
        'POST': Operation(
            'Have hosts fetch a bitstream',
            {202: answers.HOSTNAMES},
            bitstream.PREFETCH,
            since='2.5',
        ),
    },
    '/hosts/{hostname}': {
        'PUT': Operation(
            'Report the devices of a host',
            {200: answers.ORDERS, 204: None},
            host.REPORT,
        ),
    },
    '/hosts/{hostname}/cleaning': {
        'PUT': Operation(
            'Tell what of a host was cleaned', _EMPTY, host.CLEANING
        ),
    },
    '/hosts/{hostname}/provisioning': {
        'PUT': Operation(
            'Tell what devices a host makes again', _EMPTY, host.PROVISIONING
        ),
    },
    '/hosts/{hostname}/programmings/{uuid}': {
        'PUT': Operation(
            'Tell that a programming has begun, or how it has ended',
            _EMPTY,
            programming.RECORD,
        ),
    },
    '/hosts/{hostname}/instances': {
        'GET': Operation(
            'List what instances have of a host',
            {200: answers.list_of('bindings', _component('Binding'))},
        ),
    },
    '/hosts/{hostname}/instances/{instance_uuid}': {
        'DELETE': Operation(
            'Delete what Nova has bound and the host has not taken over',
            _EMPTY,
            query={'arqs': 'Uuids, separated by commas'},
        ),
    },
    '/hosts/{hostname}/instances/{instance_uuid}/{role}': {
        'GET': Operation(
            'Show what an instance has of a host', {200: _BOUND_ARQS}
        ),
        'PUT': Operation(
            'Acquire accelerators for an instance',
            {200: _BOUND_ARQS},
            binding.ACQUIRE,
        ),
        'DELETE': Operation(
            'Release what an instance has of a host',
            _EMPTY,
            query={'attempt': 'Number of the newest attempt to release'},
        ),
    },
    '/hosts/{hostname}/instances/{instance_uuid}/{role}/arqs': {
        'PUT': Operation(
            'Take over accelerator requests', {200: _BOUND_ARQS}, binding.ADOPT
        ),
    },
}

#: The paths of the version documents, which are public.
VERSION_ANSWERS: Mapping[str, tuple[str, Schema]] = {
    '': ('List the versions of the API', answers.VERSIONS),
    '/v2': ('Show version 2 of the API', answers.VERSION),
}


def document() -> dict[str, Any]:
    """The whole document, made of JSON's types alone.

    :raises KeyError: names a route that is not described
    """
    paths: dict[str, Any] = {
        f'/accelerator{path}': {
            'get': {
                'summary': summary,
                'security': [],
                'responses': {'200': _response(schema)},
            }
        }
        for path, (summary, schema) in VERSION_ANSWERS.items()
    }
    for path, methods in routes.API.items():
        paths[f'/accelerator/v2{path}'] = {
            'parameters': _path_parameters(path),
            **{
                method.lower(): _operation(
                    path, found.handler, OPERATIONS[path][method]
                )
                for method, found in methods.items()
            },
        }
    described: dict[str, Any] = _portable(
        {
            'openapi': '3.1.0',
            'info': {
                'title': 'OpenStack Accelerator API (nova_accel)',
                'version': microversion.VERSIONS[-1],
                'license': {'name': 'Apache-2.0', 'identifier': 'Apache-2.0'},
            },
            'security': [{'token': []}],
            'paths': paths,
            'components': {
                'schemas': dict(_COMPONENTS),
                'parameters': {
                    'microversion': {
                        'name': 'OpenStack-API-Version',
                        'in': 'header',
                        'description': (
                            '"accelerator 2.x" or "accelerator latest"'
                        ),
                        'schema': {
                            'type': 'string',
                            'default': (
                                f'accelerator {microversion.VERSIONS[0]}'
                            ),
                        },
                    }
                },
                'securitySchemes': {
                    'token': {
                        'type': 'apiKey',
                        'in': 'header',
                        'name': 'X-Auth-Token',
                    }
                },
            },
        }
    )
    return described


def _operation(
    path: str, handler: route.Handler, operation: Operation
) -> dict[str, Any]:
    error = 'FpgaError' if path.startswith(errors.FPGA_PATHS) else 'Error'
    described: dict[str, Any] = {
        'operationId': f'{_module(handler)}.{handler.__name__}',
        'summary': operation.summary,
        'tags': [_module(handler)],
        'x-openstack': {'min-ver': operation.since},
        'parameters': [
            {'$ref': '#/components/parameters/microversion'},
            *(
                {
                    'name': name,
                    'in': 'query',
                    'description': meaning,
                    'schema': {'type': 'string'},
                }
                for name, meaning in operation.query.items()
            ),
        ],
        'responses': {
            **{
                str(status): _response(schema)
                for status, schema in operation.answers.items()
            },
            'default': {
                **_response(_component(error)),
                'description': 'The call is refused, or has failed',
            },
        },
    }
    if operation.body is not None:
        described['requestBody'] = {
            'required': True,
            'content': _json(operation.body),
        }
    return described


def _module(handler: route.Handler) -> str:
    return handler.__module__.rpartition('.')[2]


def _path_parameters(path: str) -> list[dict[str, Any]]:
    """Each may be any text: the handler tells what is wrong with one."""
    return [
        {
            'name': name,
            'in': 'path',
            'required': True,
            'schema': {'type': 'string'},
        }
        for name in re.findall(r'{(\w+)}', path)
    ]


def _response(schema: Schema | None) -> dict[str, Any]:
    if schema is None:
        return {'description': 'Done; there is no body'}
    return {'description': 'Done', 'content': _json(schema)}


def _json(schema: Schema) -> dict[str, Any]:
    return {'application/json': {'schema': schema}}


def _portable(value: Any) -> Any:
    """The value, with patterns that other languages than Python know, too."""
    if isinstance(value, dict):
        return {
            key: _pattern(inner)
            if key == 'pattern' and isinstance(inner, str)
            else _portable(inner)
            for key, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_portable(inner) for inner in value]
    return value


def _pattern(pattern: str) -> str:
    return ''.join(_written(pattern.removesuffix(r'\Z'))) + (
        '$' if pattern.endswith(r'\Z') else ''
    )


def _written(pattern: str) -> Iterator[str]:
    """The characters; NUL and halves of surrogate pairs by their numbers."""
    for character in pattern:
        number = ord(character)
        is_plain = number and not 0xD800 <= number <= 0xDFFF
        yield character if is_plain else f'\\u{number:04x}'
