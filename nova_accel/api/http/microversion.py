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

"""Microversions 2.0 to 2.5 of the service type ``accelerator``."""

from collections.abc import Callable
from collections.abc import Iterable
import functools
from typing import Any

import microversion_parse
from oslo_log import log as logging
import webob
import webob.exc

from nova_accel import reason
from nova_accel.api.http import errors

LOG = logging.getLogger(__name__)

WSGIApplication = Callable[[dict[str, Any], Any], Iterable[bytes]]

SERVICE_TYPE = 'accelerator'

#: ``doc/source/reference/microversions.rst`` says what each has added.
#: Cyborg's history ends with 2.3.
VERSIONS = tuple(f'2.{minor}' for minor in range(6))

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

    def wrapped(
        environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        # WebOb writes an error in HTML unless the client prefers JSON. The API
        # has JSON only.
        environ['HTTP_ACCEPT'] = 'application/json'
        text = environ.get(_HEADER)
        version = _served(text)
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
            _refusal(_requested(text)) if version is None else application
        )(environ, start)
        return answer

    return wrapped


# It would be found out again for each request.
@functools.lru_cache(_MOST_TEXTS)
def _served(text: str | None) -> microversion_parse.Version | None:
    """The version that a request asks for, if it is served.

    :param text: of the header ``OpenStack-API-Version``, None without it
    """
    asked = _requested(text)
    try:
        version = microversion_parse.parse_version_string(asked)
    except TypeError:
        return None
    if str(version) not in VERSIONS:
        return None
    if text is not None and _is_bare(text):
        LOG.warning(
            'A client sends OpenStack-API-Version: %s, without the service '
            'type. It should send %s %s.',
            reason.printable(text),
            SERVICE_TYPE,
            asked,
        )
    return version


def _requested(text: str | None) -> str:
    """The version that a request asks for, which may be no version at all.

    Like Cyborg, it takes a text without any service type for a version
    (``cyborg/api/controllers/base.py``).
    """
    if text is None:
        return VERSIONS[0]
    version = _named(text)
    if version is None:
        version = text.strip() if _is_bare(text) else VERSIONS[0]
    return VERSIONS[-1] if version.lower() == 'latest' else version


def _named(text: str) -> str | None:
    """The version after this service's type."""
    return microversion_parse.get_version(
        {microversion_parse.STANDARD_HEADER: text}, SERVICE_TYPE
    )


def _is_bare(text: str) -> bool:
    """Whether the text names no service, not even another one."""
    return all(len(part.split()) < 2 for part in text.split(','))


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


def _refusal(asked: str) -> webob.Response:
    """Cyborg's words for a version that is not served."""
    served = (
        f'The supported version range is: [{VERSIONS[0]}, {VERSIONS[-1]}].'
    )
    try:
        version = microversion_parse.parse_version_string(asked)
    except TypeError:
        described = f'Version {asked} is malformed. {served}'
    else:
        described = (
            f'Version {asked} was requested but the minor version is not '
            f'supported by this service. {served}'
            if version.major
            == microversion_parse.parse_version_string(VERSIONS[0]).major
            else f'Mutually exclusive versions requested. Version {asked} '
            f'requested but not supported by this service. {served}'
        )
    fault = webob.exc.HTTPNotAcceptable
    return errors.refused(fault.code, fault.title, described)
