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

"""Reads the parts of a request, and refuses what is malformed.

The route of the request says what is well-formed, and who may make it.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import json
import re
from typing import Any
import uuid

from oslo_utils import uuidutils
import webob
import webob.exc

from nova_accel import exceptions
from nova_accel.api.http import caller
from nova_accel.api.http import full_check
from nova_accel.api.http import microversion
from nova_accel.api.http import policy
from nova_accel.api.http import quick_check
from nova_accel.api.http import route
from nova_accel.api.schemas import scalars

#: The largest number of a 32-bit column.
MAX_NUMBER = 2**31 - 1

_NUMBER = re.compile('[0-9]{1,10}')

#: How many characters of a refused value the answer repeats.
_MAX_TOLD = 300


def authorize(
    request: webob.Request, refusal: str | None = None
) -> caller.Caller:
    """Make sure that the caller may make this call.

    If the path names a host, the rule knows for which one the call is. All
    that such a call changes is checked to be of this host.

    :param refusal: what to say instead of the rule's name
    :returns: the caller
    :raises InvalidRequest: the path names what cannot be a host.
    :raises HTTPForbidden: the policy says no.
    """
    asker = caller.of(request.environ)
    matched = route.of(request)
    if matched.rule is None:
        raise TypeError(
            f'{matched.summary}: anyone may, so no policy is asked'
        )
    policy.authorize(
        asker,
        matched.rule,
        matched.or_rule,
        refusal,
        path_hostname(request) if 'hostname' in request.urlvars else None,
    )
    return asker


def json_body(request: webob.Request) -> Any:
    """The body, which matches the schema of the route.

    :raises InvalidRequest: it is no JSON or does not match.
    :raises HTTPRequestEntityTooLarge: it is longer than the route allows.
    """
    value = unchecked_json_body(request)
    schema = route.of(request).body
    if schema is None:
        raise TypeError(f'{route.of(request).summary}: the route has no body')
    check(value, schema)
    return value


def unchecked_json_body(request: webob.Request) -> Any:
    """The body; the handler compares it with the schema in words of its own.

    :raises InvalidRequest: it is no JSON.
    :raises HTTPRequestEntityTooLarge: it is longer than the route allows.
    """
    max_bytes = route.of(request).max_body_bytes
    wrapper = route.of(request).wrapper
    try:
        text = request.body_file.read(max_bytes + 1)
    except OSError as error:
        raise exceptions.InvalidRequest(
            'The body is shorter than its Content-Length'
        ) from error
    if len(text) > max_bytes:
        raise webob.exc.HTTPRequestEntityTooLarge(
            f'The body is longer than {max_bytes} bytes'
        )
    try:
        value = json.loads(text, parse_constant=_no_constant)
    # Brackets that are nested too deep end in a RecursionError.
    except (ValueError, RecursionError) as error:
        raise exceptions.InvalidRequest(
            'Request is not in valid JSON format'
        ) from error
    if (
        wrapper is not None
        and isinstance(value, dict)
        and [*value] == [wrapper]
    ):
        value = value[wrapper]
    return value


def check(value: Any, schema: Mapping[str, Any]) -> None:
    """Check that a value matches a schema, which is a constant.

    :raises InvalidRequest: names the place and what is wrong there.
    """
    if quick_check.matches(value, schema):
        return
    try:
        error = full_check.fault(value, schema)
    except RecursionError as deep:
        raise exceptions.InvalidRequest(
            'The body is nested too deep'
        ) from deep
    if error is not None:
        place = '/'.join(str(part) for part in error.absolute_path)
        raise exceptions.InvalidRequest(
            (f'{place}: ' if place else '')[:_MAX_TOLD]
            + error.message[:_MAX_TOLD]
        ) from error


def _no_constant(name: str) -> None:
    raise ValueError(f'{name} is not JSON')


def query(request: webob.Request) -> dict[str, str]:
    """The query's arguments, which the route has.

    :raises InvalidRequest: one is unknown in the request's microversion, given
        twice or has a NUL in it.
    """
    known = route.of(request).query
    arguments: dict[str, str] = {}
    for name, value in request.GET.items():
        if name not in known or not microversion.is_at_least(
            request, known[name].since
        ):
            raise exceptions.InvalidRequest(
                f'Unknown argument: "{name[:_MAX_TOLD]}"'
            )
        if name in arguments:
            raise exceptions.InvalidRequest(
                f'Argument given more than once: "{name}"'
            )
        # PostgreSQL takes no NUL in a text.
        if '\0' in value:
            raise exceptions.InvalidRequest(
                f'Invalid input for field/attribute {name}'
            )
        arguments[name] = value
    return arguments


def number_or_uuid(name: str, value: int | str) -> int | str:
    """The number of a row, which may come as a text, or the row's uuid.

    :raises InvalidRequest: it is neither
    """
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return uuids(name, [value])[0]
    if not 0 <= int(value) <= MAX_NUMBER:
        raise exceptions.InvalidRequest(
            f'Invalid input for field/attribute {name}. Value: {value}'
        )
    return int(value)


def path_uuid(request: webob.Request, name: str) -> str:
    """The item of the path, as a canonical uuid.

    :raises InvalidRequest: it is no uuid.
    """
    return uuids(name, [request.urlvars[name]])[0]


def path_hostname(request: webob.Request) -> str:
    """The hostname in the path.

    :raises InvalidRequest: it cannot be the name of a host.
    """
    hostname: str = request.urlvars['hostname']
    check(hostname, scalars.HOSTNAME)
    return hostname


def uuids(name: str, values: Iterable[str]) -> list[str]:
    """The values as canonical uuids.

    :raises InvalidRequest: one is no uuid; says so in Cyborg's words.
    """
    canonical = []
    for value in values:
        if not uuidutils.is_uuid_like(value):
            told = value[:_MAX_TOLD]
            raise exceptions.InvalidRequest(
                f'Invalid input for field/attribute {name}. Value: '
                f"'{told}'. unable to convert to uuid. Error: Expected a "
                f'uuid but received {told}.'
            )
        canonical.append(str(uuid.UUID(value)))
    return canonical
