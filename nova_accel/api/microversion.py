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

"""Microversions 2.0 to 2.9 of the service type ``accelerator``."""

from collections.abc import Callable
from collections.abc import Iterable
import functools
from typing import Any

import microversion_parse
from microversion_parse import middleware
import webob
import webob.exc

from nova_accel.api import errors

WSGIApplication = Callable[[dict[str, Any], Any], Iterable[bytes]]

SERVICE_TYPE = 'accelerator'

#: ``doc/source/reference/microversions.rst`` says what each has added.
#: Cyborg's history ends with 2.3.
VERSIONS = tuple(f'2.{minor}' for minor in range(10))

#: How many texts of clients are kept with the version that they ask for.
_MOST_TEXTS = 64

_HEADER = 'HTTP_' + microversion_parse.STANDARD_HEADER.upper().replace(
    '-', '_'
)

_ENVIRON_KEY = f'{SERVICE_TYPE}.microversion'

_RANGE = [
    ('OpenStack-API-Minimum-Version', VERSIONS[0]),
    ('OpenStack-API-Maximum-Version', VERSIONS[-1]),
]


def negotiate(application: WSGIApplication) -> WSGIApplication:
    """Let only requests for a version that is served reach the application.

    All answers say which versions are served, as Cyborg's do. The answers of
    the application also have ``OpenStack-API-Version`` and ``Vary``.
    """
    refusing = middleware.MicroversionMiddleware(
        application, SERVICE_TYPE, VERSIONS, json_error_formatter=_refusal
    )

    def wrapped(
        environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        # WebOb writes a refusal in HTML unless the client prefers JSON. The
        # API has JSON only.
        environ['HTTP_ACCEPT'] = 'application/json'
        version = _served(environ.get(_HEADER, ''))
        more_headers = _RANGE
        if version is not None:
            environ[_ENVIRON_KEY] = version
            more_headers = [
                (
                    microversion_parse.STANDARD_HEADER,
                    f'{SERVICE_TYPE} {version}',
                ),
                ('vary', microversion_parse.STANDARD_HEADER),
                *_RANGE,
            ]

        def start(
            status: str, headers: list[tuple[str, str]], *more: Any
        ) -> Any:
            return start_response(status, [*headers, *more_headers], *more)

        answer: Iterable[bytes] = (
            refusing if version is None else application
        )(environ, start)
        return answer

    return wrapped


# The middleware would make objects of each request and answer to find it out.
@functools.lru_cache(_MOST_TEXTS)
def _served(text: str) -> Any | None:
    """The version that a request asks for, if it is served.

    :param text: of the header ``OpenStack-API-Version``; it may be empty
    """
    try:
        return microversion_parse.extract_version(
            {microversion_parse.STANDARD_HEADER: text}, SERVICE_TYPE, VERSIONS
        )
    except (TypeError, ValueError):
        return None


def is_at_least(request: webob.Request, least: str) -> bool:
    """Whether the request's version is this one or newer."""
    wanted = request.environ[_ENVIRON_KEY]
    return bool(wanted >= microversion_parse.parse_version_string(least))


def require(request: webob.Request, least: str) -> None:
    """:raises HTTPNotAcceptable: the request's version is older."""
    if not is_at_least(request, least):
        raise webob.exc.HTTPNotAcceptable(
            'Request not acceptable. The minimal required API version should '
            f'be {least}'
        )


def _refusal(
    body: str, status: str, title: str, environ: dict[str, Any]
) -> dict[str, str]:
    """Cyborg's words for a version that is not served."""
    version = (
        microversion_parse.get_version(
            webob.Request(environ).headers, SERVICE_TYPE
        )
        or ''
    )
    code = int(status.split()[0])
    served = (
        f'The supported version range is: [{VERSIONS[0]}, {VERSIONS[-1]}].'
    )
    if code == webob.exc.HTTPBadRequest.code:
        reason = f'Version {version} is malformed. {served}'
    elif version.split('.')[0] == VERSIONS[0].split('.')[0]:
        reason = (
            f'Version {version} was requested but the minor version is '
            f'not supported by this service. {served}'
        )
    else:
        reason = (
            f'Mutually exclusive versions requested. Version {version} '
            f'requested but not supported by this service. {served}'
        )
    return errors.refusal(code, title, reason)
