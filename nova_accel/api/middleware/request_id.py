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

"""Gives each request an identity, as Nova's filter ``compute_req_id`` does.

Logs and notifications name it. A caller may give the identity of the request
that it serves, too. Nova's filter makes objects of the request and the answer,
which takes ten times as long.

In uWSGI its own log of requests can have both, as ``%(request_id)`` and
``%(global_request_id)`` of ``log-format``.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import functools
import re
import sys
from typing import Any

from nova.api import compute_req_id
from oslo_context import context
from oslo_middleware import request_id

from nova_accel.api.http import microversion

_GIVEN = 'HTTP_' + request_id.INBOUND_HEADER.upper().replace('-', '_')

_HEADERS = (
    request_id.HTTP_RESP_HEADER_REQUEST_ID,
    compute_req_id.HTTP_RESP_HEADER_REQUEST_ID,
)


@functools.cache
def _nobody() -> context.RequestContext:
    """No caller. Logs add the caller that the thread has had last."""
    return context.RequestContext(request_id='-')


class RequestId:
    """A filter that stands before all filters that log."""

    def __init__(self, application: microversion.WSGIApplication) -> None:
        self._application = application

    def __call__(
        self, environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        given = environ.get(_GIVEN, '')
        if re.match(request_id.ID_FORMAT, given):
            environ[request_id.GLOBAL_REQ_ID] = given
        own = environ[request_id.ENV_REQUEST_ID] = (
            context.generate_request_id()
        )
        _tell_uwsgi(own, environ.get(request_id.GLOBAL_REQ_ID))

        def start(
            status: str, headers: list[tuple[str, str]], *more: Any
        ) -> Any:
            present = {name.lower() for name, _value in headers}
            return start_response(
                status,
                headers
                + [(name, own) for name in _HEADERS if name not in present],
                *more,
            )

        _nobody().update_store()
        try:
            return self._application(environ, start)
        finally:
            _nobody().update_store()


def _tell_uwsgi(own: str, given: str | None) -> None:
    # Its processes have this module, which is in no file; others do not.
    uwsgi = sys.modules.get('uwsgi')
    if uwsgi is None:
        return
    uwsgi.set_logvar('request_id', own)
    if given is not None:
        uwsgi.set_logvar('global_request_id', given)


def factory(
    global_conf: Mapping[str, str], **local_conf: str
) -> Callable[[microversion.WSGIApplication], RequestId]:
    """The ``paste.filter_factory`` of the filter."""
    return RequestId
