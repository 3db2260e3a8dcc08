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

"""The caller of a request, by the headers of ``authtoken``."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import json
from typing import Any

from nova import context as nova_context
import webob.exc

from nova_accel.api import microversion


class Context:
    """Puts ``nova.context`` into the environment, as Nova's own filter does.

    Nova's filter asks its policy whether the caller is an administrator, which
    takes as long as all the rest of it. Here ``is_admin`` is always false: our
    policy decides by roles (:mod:`nova_accel.api.policy`).
    """

    def __init__(self, application: microversion.WSGIApplication) -> None:
        self._application = application

    def __call__(
        self, environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        answer = self._application
        try:
            catalog = json.loads(environ.get('HTTP_X_SERVICE_CATALOG', 'null'))
        except ValueError:
            answer = webob.exc.HTTPInternalServerError(
                'Invalid service catalog json.'
            )
        else:
            caller = nova_context.RequestContext.from_environ(
                environ,
                is_admin=False,
                user_auth_plugin=environ.get('keystone.token_auth'),
                remote_address=environ.get('REMOTE_ADDR'),
                service_catalog=catalog,
            )
            if caller.user_id is None:
                answer = webob.exc.HTTPUnauthorized()
            else:
                environ['nova.context'] = caller
        return answer(environ, start_response)


def factory(
    global_conf: Mapping[str, str], **local_conf: str
) -> Callable[[microversion.WSGIApplication], Context]:
    """The ``paste.filter_factory`` of the filter."""
    return Context
