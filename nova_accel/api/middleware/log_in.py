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

"""The programming service's answer to a request without a token.

``authtoken`` refuses such a request before it reaches us. This filter puts the
body that the specification asks for into the refusal.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import webob

from nova_accel.api.http import errors
from nova_accel.api.http import microversion


class LogIn:
    """A filter that stands before ``authtoken``."""

    def __init__(self, application: microversion.WSGIApplication) -> None:
        self._application = application

    def __call__(
        self, environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        if not environ.get('PATH_INFO', '').startswith(errors.FPGA_PATHS):
            return self._application(environ, start_response)
        response = webob.Request(environ).get_response(self._application)
        if response.status_int == 401:
            response.json_body = {'error': 'Log in'}
            response.content_type = 'application/json'
        answer: Iterable[bytes] = response(environ, start_response)
        return answer


def factory(
    global_conf: Mapping[str, str],
    **local_conf: str,
) -> Callable[[microversion.WSGIApplication], LogIn]:
    """The ``paste.filter_factory`` of the filter."""
    return LogIn
