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

"""The caller of a request, as ``authtoken`` describes it in the headers."""

from collections.abc import Mapping
import json
from typing import Any
from typing import TYPE_CHECKING

from oslo_context import context
import webob.exc

if TYPE_CHECKING:
    from nova import context as nova_context

#: The key of WSGI's environment that has the caller, once it is known.
ENVIRON_KEY = 'nova_accel.caller'


class Caller(context.RequestContext):
    """A caller, as policies and logs see it.

    Nova's own context also has what is needed to ask Nova. Few requests do, so
    it is made of this one for them. It is a quarter of the memory of a pool.

    :param request: the environment of WSGI
    :param fields: of the context
    """

    def __init__(self, request: Mapping[str, Any], **fields: Any) -> None:
        super().__init__(**fields)
        # An empty header says as little as none, also for Nova.
        self.user_id = self.user_id or None
        self.project_id = self.project_id or None
        self._request = request

    def to_policy_values(self) -> Any:
        """The values that rules see, beside those of all services.

        They are ``is_admin``, as in Nova's rules; and the names of the users,
        by which a rule can bind a user to a host.
        """
        return {
            **super().to_policy_values(),
            'is_admin': self.is_admin,
            'user_name': self.user_name,
            'service_user_name': self.service_user_name,
        }

    def for_nova(self) -> 'nova_context.RequestContext':
        """The same caller, as Nova's own filter describes it.

        :raises HTTPInternalServerError: the catalog of services is no JSON
        """
        from nova import context as nova_context

        environ = self._request
        try:
            catalog = json.loads(environ.get('HTTP_X_SERVICE_CATALOG', 'null'))
        except ValueError as error:
            raise webob.exc.HTTPInternalServerError(
                'Invalid service catalog json.'
            ) from error
        return nova_context.RequestContext.from_environ(
            environ,
            is_admin=self.is_admin,
            user_auth_plugin=environ.get('keystone.token_auth'),
            remote_address=environ.get('REMOTE_ADDR'),
            service_catalog=catalog,
            request_id=self.request_id,
        )


def of(environ: dict[str, Any]) -> Caller:
    """The caller of a request that ``authtoken`` has let through.

    ``is_admin`` is false, also for an administrator: our policy decides by
    roles (:mod:`nova_accel.api.http.policy`).
    """
    found: Caller | None = environ.get(ENVIRON_KEY)
    if found is None:
        # A copy, so that neither keeps the other in memory.
        found = environ[ENVIRON_KEY] = Caller.from_environ(
            environ, request={**environ}, is_admin=False
        )
    return found
