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

"""Has the failed devices of a server replaced, for its owner.

The host finds the new devices, and changes the guest.
"""

from nova_accel import exceptions
from nova_accel.api.compute import changing
from nova_accel.api.compute import programming
from nova_accel.api.http import caller
from nova_accel.api.http import policy
from nova_accel.api.policies import accelerator_request as arq_policies
from nova_accel.api.policies import server as policies
from nova_accel.db import server_arqs
from nova_accel.db.rows import arq_rows
from nova_accel.model import host_rpc


def replace(
    context: caller.Caller, instance_uuid: str, arq_uuid: str | None = None
) -> None:
    """Have failed devices of a server replaced, and wait for the end.

    :param arq_uuid: the only ARQ that is to get another device; None for all
        whose devices have failed
    :raises HTTPForbidden: this caller may not.
    :raises NotFound: the server has no such ARQ, or not for this caller.
    :raises Conflict: nothing has failed, the host is silent, another call
        changes the server, or the host refuses.
    :raises DeviceError: a device has failed meanwhile.
    :raises ServiceUnavailable: something that is needed is away.
    :raises TooBusy: as many calls of this process wait for hosts as may.
    :raises NoAnswerInTime: the host has not answered in time, so the end is
        not known.
    """
    from nova_accel.api.compute import rpc

    policy.authorize(context, policies.REPLACE)
    failed = _failed(context, instance_uuid, arq_uuid)
    programming.check_not_silent(failed)
    # Others are those of a host that the server has left.
    host = failed[0]
    with changing.alone(instance_uuid):
        rpc.replace(
            context.for_nova(),
            host_rpc.Callee(host['service_host'], host['contract']),
            instance_uuid,
            [
                row['uuid']
                for row in failed
                if row['hostname'] == host['hostname']
            ],
        )


def _failed(
    context: caller.Caller, instance_uuid: str, arq_uuid: str | None
) -> list[server_arqs.HeldUnitRow]:
    """The ARQs of the server, or the named one, whose units have failed.

    :raises NotFound: the server has no such ARQ, or not for this caller
    :raises Conflict: nothing has failed
    """
    held = server_arqs.get_held(
        instance_uuid,
        None
        if policy.allows(context, arq_policies.ALL_PROJECTS)
        # A token may be for no project.
        else context.project_id or '',
    )
    if not held:
        raise exceptions.NotFound(
            f'Server {instance_uuid} not found, or it has no accelerators'
        )
    if arq_uuid is not None:
        held = [row for row in held if row['uuid'] == arq_uuid]
        if not held:
            raise arq_rows.not_found(arq_uuid)
    # An evacuated server still has those of its dead host.
    held = [row for row in held if not row['is_silent']] or held
    failed = [row for row in held if row['has_failed']]
    if not failed:
        raise exceptions.Conflict(
            f'None of the accelerators of server {instance_uuid} that are to '
            'be replaced has failed',
            public='none of the accelerators to replace has failed',
        )
    return failed
