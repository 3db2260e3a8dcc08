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

"""What the host asks of Nova's other services, as its own user."""

from nova import context as nova_context

from nova_accel.client import accelerator_api


def context() -> nova_context.RequestContext:
    """Whatever a server's owner may see by now; it keeps its token.

    :raises ConfigurationError: the host has no credentials.
    """
    return nova_context.RequestContext(
        user_auth_plugin=accelerator_api.auth_from_conf(),
        # Of this process alone: others see the host's own user.
        is_admin=True, overwrite=False)
