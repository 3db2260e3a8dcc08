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

"""The answers that clients get for faults, made only here.

As with Cyborg, an answer is ``{"error_message": "<JSON in a string>"}``. The
inner JSON has ``faultstring`` where a handler gives a reason, and ``title``
where HTTP itself does. The answers to compute hosts also have ``error_code``,
the name of the exception, so that the client raises the same one. The answers
of the programming service are ``{"error": "<text>"}``, as its specification
has it.

Only administrators and compute hosts read the whole text of a fault. Nova
copies an answer into the faults of servers, which their owners read.
"""

import json
from typing import Any

from oslo_db import exception as db_exceptions
from oslo_log import log as logging
import webob
import webob.exc

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.api.http import caller
from nova_accel.api.http import policy
from nova_accel.api.policies import host as policies

LOG = logging.getLogger(__name__)

#: The paths that only compute hosts call start with it.
OWN_PATHS = '/hosts/'

#: The paths of the programming service start with it.
FPGA_PATHS = '/fpga/'

_STATUSES: tuple[tuple[type[exceptions.AcceleratorError], int], ...] = (
    (exceptions.InvalidRequest, 400),
    (exceptions.NotAllowed, 403),
    (exceptions.NotFound, 404),
    (exceptions.Conflict, 409),
    (exceptions.DeviceError, 502),
    (exceptions.NoAnswerInTime, 504),
    (exceptions.ServiceUnavailable, 503),
)

#: Faults whose own text is for the log only.
_CONCEALED: tuple[tuple[type[Exception], int, str], ...] = (
    (UnicodeDecodeError, 400, 'The URL is not valid UTF-8'),
    (db_exceptions.DBDataError, 400, 'A value cannot be stored'),
    (db_exceptions.DBDuplicateEntry, 409, 'Something of it exists already'),
)


#: Faults that tell a host from which number to count on.
_COUNTED = (exceptions.StaleAttempt, exceptions.FarAttempt)


def answer(request: webob.Request, fault: Exception) -> webob.Response:
    """The response for a fault, which tells nothing of the service itself."""
    # WebOb's own attributes would fail where the path is not valid UTF-8.
    path = request.environ.get('PATH_INFO', '')
    asked = reason.printable(f'{request.method} {path}')
    if isinstance(fault, webob.exc.WSGIHTTPException):
        return _http_answer(path, fault)
    for kind, status in _STATUSES:
        if isinstance(fault, kind):
            body = _fault(
                path,
                status,
                fault_text(request.environ.get(caller.ENVIRON_KEY), fault),
            )
            if path.startswith(OWN_PATHS):
                body['error_code'] = type(fault).__name__
                if isinstance(fault, _COUNTED):
                    body['newest_attempt'] = fault.newest
            response = webob.Response(status=status, json_body=body)
            if isinstance(fault, exceptions.TooBusy):
                response.headers['Retry-After'] = str(fault.RETRY_AFTER_S)
            return response
    for concealed, status, text in _CONCEALED:
        if isinstance(fault, concealed):
            LOG.warning('%s failed: %s', asked, reason.printable(str(fault)))
            return webob.Response(
                status=status, json_body=_fault(path, status, text)
            )
    LOG.exception('%s failed', asked)
    context = request.environ.get(caller.ENVIRON_KEY)
    identity = getattr(context, 'request_id', 'unknown')
    return webob.Response(
        status=500,
        json_body=_fault(
            path, 500, f'Unexpected error, the service logged it as {identity}'
        ),
    )


def fault_text(
    context: caller.Caller | None,
    fault: exceptions.AcceleratorError,
) -> str:
    """The text of a fault that the caller may read."""
    # Nova asks for a user, and tells the user.
    if context is None or context.service_roles:
        return fault.public
    return (
        str(fault) if policy.allows(context, policies.SHOW) else fault.public
    )


def refusal(code: int, title: str, description: str) -> dict[str, str]:
    """The body of an answer that HTTP itself gives, not a handler."""
    return {
        'error_message': json.dumps(
            {'code': code, 'title': title, 'description': description}
        )
    }


def refused(code: int, title: str, description: str) -> webob.Response:
    """An answer that HTTP itself gives, before any handler."""
    return webob.Response(
        status=code, json_body=refusal(code, title, description)
    )


def _http_answer(
    path: str, fault: webob.exc.WSGIHTTPException
) -> webob.Response:
    """The answer for an error of HTTP; only a handler's has a ``detail``."""
    body = (
        _fault(path, fault.code, fault.detail)
        if fault.detail
        else refusal(fault.code, fault.title, '')
    )
    response = webob.Response(status=fault.status, json_body=body)
    if 'Allow' in fault.headers:
        response.headers['Allow'] = fault.headers['Allow']
    return response


def _fault(path: str, status: int, text: str) -> dict[str, Any]:
    # Clients log it, as Nova does.
    text = reason.printable(text)
    if path.startswith(FPGA_PATHS):
        return {'error': text}
    return {
        'error_message': json.dumps(
            {
                'faultcode': 'Client' if status < 500 else 'Server',
                'faultstring': text,
                'debuginfo': None,
            }
        )
    }
