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

"""One call at a time has a server changed by its host."""

from collections.abc import Iterator
import contextlib

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api.compute import programming
from nova_accel.api.compute import waiting
from nova_accel.db import lease
from nova_accel.db import server_arqs

CONF = conf.CONF


@contextlib.contextmanager
def alone(instance_uuid: str) -> Iterator[None]:
    """Keep all other calls from the server while the body waits for its host.

    :raises Conflict: another call changes the server.
    :raises TooBusy: as many calls of this process wait for hosts as may.
    """
    text = 'is being changed by another call: try again when that has ended'
    with (
        lease.alone(
            server_arqs.CHANGING + instance_uuid,
            CONF.long_rpc_timeout + programming.AROUND_S,
            exceptions.Conflict(
                f'server {instance_uuid} {text}', public=f'the server {text}'
            ),
        ),
        waiting.place(),
    ):
        yield
