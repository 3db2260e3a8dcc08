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

"""The OpenAPI 3.1 document of the API, made of its tables of routes.

The tables have all but the answers, which the API does not check.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import re
from typing import Any

from nova_accel.api import routes
from nova_accel.api.http import errors
from nova_accel.api.http import microversion
from nova_accel.api.http import route
from openapi import answers
from openapi import schemas

_INFO: Mapping[str, Any] = {
    'title': 'OpenStack Accelerator API (nova_accel)',
    'version': microversion.VERSIONS[-1],
    'license': {'name': 'Apache-2.0', 'identifier': 'Apache-2.0'},
}

_MICROVERSION: Mapping[str, Any] = {
    'name': 'OpenStack-API-Version',
    'in': 'header',
    'description': '"accelerator 2.x" or "accelerator latest"',
    'schema': {
        'type': 'string',
        'default': f'accelerator {microversion.VERSIONS[0]}',
    },
}

_TOKEN: Mapping[str, Any] = {
    'type': 'apiKey',
    'in': 'header',
    'name': 'X-Auth-Token',
}


def document() -> dict[str, Any]:
    """The whole document, made of JSON's types alone.

    :raises KeyError: names a handler whose answers are not described
    """
    described: dict[str, Any] = _portable(
        {
            'openapi': '3.1.0',
            'info': dict(_INFO),
            'security': [{'token': []}],
            'paths': _paths(),
            'components': {
                'schemas': dict(schemas.COMPONENTS),
                'parameters': {'microversion': dict(_MICROVERSION)},
                'securitySchemes': {'token': dict(_TOKEN)},
            },
        }
    )
    return described


def request_body(described: route.Route) -> schemas.Schema | None:
    """The body as clients may send it, None if there is none."""
    schema, wrapper = described.body, described.wrapper
    if schema is None or wrapper is None:
        return schema
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


def _paths() -> dict[str, Any]:
    paths: dict[str, Any] = {
        f'/accelerator{path}': {
            method.lower(): _public(found) for method, found in methods.items()
        }
        for path, methods in routes.VERSIONS.items()
    }
    for path, methods in routes.API.items():
        paths[f'/accelerator/v2{path}'] = {
            'parameters': _path_parameters(path),
            **{
                method.lower(): _operation(path, found)
                for method, found in methods.items()
            },
        }
    return paths


def _public(found: route.Route) -> dict[str, Any]:
    return {
        'summary': found.summary,
        'security': [],
        'responses': _responses(found.handler),
    }


def _operation(path: str, found: route.Route) -> dict[str, Any]:
    handler = found.handler
    error = 'FpgaError' if path.startswith(errors.FPGA_PATHS) else 'Error'
    described: dict[str, Any] = {
        'operationId': f'{_module(handler)}.{handler.__name__}',
        'summary': found.summary,
        'tags': [_module(handler)],
        'x-openstack': {'min-ver': found.since},
        'parameters': [
            {'$ref': '#/components/parameters/microversion'},
            *(
                {
                    'name': name,
                    'in': 'query',
                    'description': _meaning(argument, found),
                    'schema': {'type': 'string'},
                }
                for name, argument in found.query.items()
            ),
        ],
        'responses': {
            **_responses(handler),
            'default': {
                **_response(schemas.component(error)),
                'description': 'The call is refused, or has failed',
            },
        },
    }
    body = request_body(found)
    if body is not None:
        described['requestBody'] = {'required': True, 'content': _json(body)}
    return described


def _meaning(argument: route.Argument, found: route.Route) -> str:
    """What an argument means and, if it is newer than the call, since when."""
    if argument.since in (microversion.VERSIONS[0], found.since):
        return argument.meaning
    separator = ';' if ',' in argument.meaning else ','
    return f'{argument.meaning}{separator} from {argument.since} on'


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


def _responses(handler: route.Handler) -> dict[str, Any]:
    return {
        str(status): _response(schema)
        for status, schema in answers.OF_HANDLERS[handler].items()
    }


def _response(schema: schemas.Schema | None) -> dict[str, Any]:
    if schema is None:
        return {'description': 'Done; there is no body'}
    return {'description': 'Done', 'content': _json(schema)}


def _json(schema: schemas.Schema) -> dict[str, Any]:
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
