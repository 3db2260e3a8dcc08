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
from collections.abc import Mapping
from typing import Any

from nova import context as nova_context
from nova.api import auth


class Context(auth.NovaKeystoneContext):
    """Nova's filter, which puts ``nova.context`` into the environment.

    Nova's own filter asks its policy whether the caller is an administrator,
    which takes as long as all the rest of the filter. Here ``is_admin`` is
    always false: our policy decides by roles (:mod:`nova_accel.api.policy`).
    """

    @staticmethod
    def _create_context(
        env: dict[str, Any], **kwargs: Any
    ) -> nova_context.RequestContext:
        return nova_context.RequestContext.from_environ(
            env, is_admin=False, **kwargs
        )


def factory(
    global_conf: Mapping[str, str], **local_conf: str
) -> Callable[[Any], Context]:
    """The ``paste.filter_factory`` of the filter."""
    return Context
