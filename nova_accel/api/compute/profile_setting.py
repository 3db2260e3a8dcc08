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

"""Gives a server another device profile, or none, for an administrator.

The host of the server finds the devices, and changes the guest.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
from typing import Any

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api.compute import changing
from nova_accel.api.compute import programming
from nova_accel.api.http import caller
from nova_accel.api.http import policy
from nova_accel.api.policies import accelerator_request as arq_policies
from nova_accel.api.policies import server as policies
from nova_accel.db import device_profile as profile_db
from nova_accel.db import host as host_db
from nova_accel.db.rows import profile_rows
from nova_accel.model import host_rpc
from nova_accel.model.profiles import flavor_key

CONF = conf.CONF


def set_profile(
    context: caller.Caller, instance_uuid: str, name: str | None
) -> None:
    """Have a server get the accelerators of a device profile, and wait.

    The same again completes what a call before has left half done.

    :param name: the device profile's, None to take away what the server has
    :raises HTTPForbidden: this caller may not.
    :raises NotFound: there is no such device profile, or no such server for
        this caller.
    :raises NotAllowed: the project would have more than it may.
    :raises Conflict: the server is on no host with accelerators, its flavor
        forbids it, the host is silent, another call changes the server, or the
        host refuses.
    :raises DeviceError: a device has failed.
    :raises ServiceUnavailable: something that is needed is away.
    :raises TooBusy: as many calls of this process wait for hosts as may.
    :raises NoAnswerInTime: the host has not answered in time, so the end is
        not known.
    """
    from nova_accel.api.compute import rpc
    from nova_accel.api.compute import server_flavor

    policy.authorize(context, policies.SET)
    groups = [] if name is None else _groups(name)
    instance = server_flavor.read(instance_uuid)
    if instance.project_id != context.project_id and not policy.allows(
        context, arq_policies.ALL_PROJECTS
    ):
        raise server_flavor.not_found(instance_uuid)
    callee = _callee(instance)
    with changing.alone(instance_uuid):
        try:
            rpc.set_profile(
                context.for_nova(), callee, instance_uuid, name, groups
            )
        except Exception:
            # The first fault is told, the second one is in the log.
            with contextlib.suppress(exceptions.ServiceUnavailable):
                server_flavor.complete(instance_uuid)
            raise
        server_flavor.complete(instance_uuid)


def _groups(name: str) -> Sequence[Mapping[str, str]]:
    """:raises NotFound: there is no such device profile"""
    for profile in profile_db.get_all([name]):
        return profile['groups']
    raise profile_rows.not_found('name', name)


def _callee(instance: Any) -> host_rpc.Callee:
    """The host of a server.

    :param instance: of Nova
    :raises Conflict: the server is on no host that can be asked, or its flavor
        forbids it.
    """
    flavor_key.check_not_cyborgs(instance.flavor.extra_specs)
    if instance.host is None:
        raise exceptions.Conflict.for_all('the server is on no host')
    host = host_db.get_called(instance.node, CONF.nova_accel.host_silence_s)
    if host is None:
        raise exceptions.Conflict(
            f'host {instance.host} of server {instance.uuid} has never '
            'reported accelerators',
            public='the host of the server has no accelerators: migrate it',
        )
    programming.check_not_silent([host])
    return host_rpc.Callee(host['service_host'], host['contract'])
