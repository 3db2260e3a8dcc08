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

"""Reads the body of a PATCH of accelerator requests (ARQs).

The body maps the uuid of each ARQ to a JSON patch (RFC 6902) of ``add`` or of
``remove`` operations on the fields that bind it.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from nova_accel import exceptions
from nova_accel.api.http import request
from nova_accel.api.schemas import accelerator_request as schemas

_FIELDS = schemas.BINDING['properties']

Operations = Sequence[Mapping[str, Any]]


def is_unbinding(patches: Mapping[str, Operations]) -> bool:
    """Whether all ARQs are to be unbound; otherwise all are to be bound.

    :param patches: a body that matches the schema
    :raises InvalidRequest: it is neither, or a path names none of the fields.
    """
    operations = [
        operation for patch in patches.values() for operation in patch
    ]
    kinds = {operation['op'] for operation in operations}
    if kinds != {'add'} and kinds != {'remove'}:
        raise exceptions.InvalidRequest('Every op must be add or remove')
    for operation in operations:
        if _field(operation) not in _FIELDS:
            raise exceptions.InvalidRequest(
                f'Invalid path in patch {operation["path"]}'
            )
    return kinds == {'remove'}


def bindings(patches: Mapping[str, Operations]) -> dict[str, dict[str, str]]:
    """ARQ uuid -> the fields that it is to get.

    :param patches: a binding, which :func:`is_unbinding` has let through
    :raises InvalidRequest: a field is absent, or its value is wrong.
    """
    return {uuid: _binding(patch) for uuid, patch in patches.items()}


def _binding(patch: Operations) -> dict[str, str]:
    fields = {
        _field(operation): operation['value']
        for operation in patch
        if operation.get('value') is not None
    }
    absent = [
        field for field in schemas.BINDING['required'] if field not in fields
    ]
    if absent:
        raise exceptions.InvalidRequest(
            f'Fields absent in patch {",".join(absent)}'
        )
    request.check(fields, schemas.BINDING)
    return fields


def _field(operation: Mapping[str, Any]) -> str:
    return str(operation['path']).removeprefix('/')
