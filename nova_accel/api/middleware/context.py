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

"""The filter that finds out who the caller of a request is."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import webob.exc

from nova_accel.api.http import caller
from nova_accel.api.http import microversion


class Context:
    """Puts the caller into the environment, as Nova's ``keystonecontext``.

    Nova's filter asks its policy whether the caller is an administrator, which
    takes as long as all the rest of it.
    """

    def __init__(self, application: microversion.WSGIApplication) -> None:
        self._application = application

    def __call__(
        self, environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        if caller.of(environ).user_id is None:
            return webob.exc.HTTPUnauthorized()(environ, start_response)
        return self._application(environ, start_response)


def factory(
    global_conf: Mapping[str, str], **local_conf: str
) -> Callable[[microversion.WSGIApplication], Context]:
    """The ``paste.filter_factory`` of the filter."""
    return Context
