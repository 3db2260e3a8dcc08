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

"""Bodies in the pool, where a router of uWSGI collects them first.

The router gives a worker the whole body at once, so no client keeps a worker
waiting. Two things are left to do for that:

* uWSGI's processes do not agree on a length that is not plain digits. Some
  such lengths would let a worker wait for what never comes. They are refused.
* A worker that answers before it has read the body, such as with 401, must
  read the rest. The router passes no answer on before it is rid of the body.
"""

from collections.abc import Callable
from collections.abc import Iterable
import contextlib
import re
import sys
from typing import Any

from nova_accel.api.http import errors

_Application = Callable[[dict[str, Any], Any], Iterable[bytes]]

#: More digits than any body has, and fewer than overflow.
_LENGTH = re.compile(r'[0-9]{0,15}')

#: Bytes. No call takes a longer body.
_LONGEST = 16 * 1024 * 1024

_CHUNK = 65536


def wrapped(application: _Application) -> _Application:
    """The application for a web server that collects bodies, or as it is."""
    # Its processes have this module, which is in no file; others do not.
    uwsgi = sys.modules.get('uwsgi')
    is_collected = uwsgi is not None and (
        'fastrouter-post-buffering' in uwsgi.opt
    )
    return WholeBody(application) if is_collected else application


class WholeBody:
    """An application whose callers have sent their bodies already."""

    def __init__(self, application: _Application) -> None:
        self._application = application

    def __call__(
        self, environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        length = environ.get('CONTENT_LENGTH', '')
        if not _LENGTH.fullmatch(length):
            refusal: Iterable[bytes] = errors.refused(
                400, 'Bad Request', 'The Content-Length is no number'
            )(environ, start_response)
            return refusal
        # The application may put something else in its place.
        body = environ['wsgi.input']
        answer = self._application(environ, start_response)
        if length and int(length) <= _LONGEST:
            _read_rest(body)
        return answer


def _read_rest(body: Any) -> None:
    # A client that has gone cannot read the answer either.
    with contextlib.suppress(OSError):
        while body.read(_CHUNK):
            pass
