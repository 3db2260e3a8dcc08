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

"""The host's own user, for requests to other services."""

from nova import context as nova_context

from nova_accel.client import accelerator_api


def context() -> nova_context.RequestContext:
    """A context of the host's own user, which keeps its token.

    It does not depend on what a server's owner may see by now.

    :raises ConfigurationError: the host has no credentials.
    """
    return nova_context.RequestContext(
        user_auth_plugin=accelerator_api.auth_from_conf(),
        # is_admin holds only in this process; other services see the host's
        # user.
        is_admin=True,
        overwrite=False,
    )
