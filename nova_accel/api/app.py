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

"""The WSGI applications, as ``api-paste.ini`` names them."""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import webob

from nova_accel import guru_report
from nova_accel.api import report_section
from nova_accel.api import router
from nova_accel.api import routes
from nova_accel.api.http import errors
from nova_accel.api.http import microversion
from nova_accel.api.http import route
from nova_accel.db.migrations import schema_version
from nova_accel.db.sql import engine
from nova_accel.model import host_contract

_CONTRACT = str(host_contract.NEWEST)


class Application:
    """Serves one table of routes; a fault of a handler becomes an answer."""

    def __init__(self, table: route.Table) -> None:
        self._router = router.Router(table)

    def __call__(
        self, environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        request = webob.Request(environ)
        answer: Iterable[bytes] = self._answer(request)(
            environ, start_response
        )
        return answer

    def _answer(self, request: webob.Request) -> webob.Response:
        try:
            answer = self._router.match(request).handler(request)
        except Exception as fault:
            answer = errors.answer(request, fault)
        if request.environ.get('PATH_INFO', '').startswith(errors.OWN_PATHS):
            answer.headers[host_contract.HEADER] = _CONTRACT
        return answer


def factory(
    global_conf: Mapping[str, str], **local_conf: str
) -> microversion.WSGIApplication:
    """``paste.app_factory`` of the API; needs the caller in environ.

    :raises ConfigurationError: the database is not configured, or its schema
        is older than this release.
    """
    engine.check_configured()
    schema_version.check_not_older()
    guru_report.add_section(guru_report.TITLE, report_section.facts)
    return microversion.negotiate(Application(routes.API))


def versions_factory(
    global_conf: Mapping[str, str], **local_conf: str
) -> Application:
    """``paste.app_factory`` of the version documents, which are public."""
    return Application(routes.VERSIONS)
