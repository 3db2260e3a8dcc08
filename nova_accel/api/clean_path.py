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

"""Refuses paths that could forge lines in a log, before anything logs them.

Nova's ``request_log`` writes the decoded path, where ``%0A`` is a new line.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import webob

from nova_accel.api import errors
from nova_accel.api import microversion


class CleanPath:
    """A filter that stands before all filters that log."""

    def __init__(self, application: microversion.WSGIApplication) -> None:
        self._application = application

    def __call__(
        self, environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        # WSGI gives the bytes of the path as characters of Latin 1.
        path = (
            environ.get('PATH_INFO', '')
            .encode('latin-1')
            .decode('utf-8', 'replace')
        )
        if path.isprintable():
            return self._application(environ, start_response)
        refusal: Iterable[bytes] = webob.Response(
            status=400,
            json_body=errors.refusal(
                400, 'Bad Request', 'The path has a control character'
            ),
        )(environ, start_response)
        return refusal


def factory(
    global_conf: Mapping[str, str],
    **local_conf: str,
) -> Callable[[microversion.WSGIApplication], CleanPath]:
    """The ``paste.filter_factory`` of the filter."""
    return CleanPath
