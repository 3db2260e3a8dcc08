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

"""Has FPGA regions programmed for callers who may have that done.

The rights of the caller are checked here. The host checks once more, as it
alone knows what a guest is about to get.
"""

from collections.abc import Iterable
import contextlib
import uuid as uuids

import webob.exc

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api.compute import waiting
from nova_accel.api.http import caller
from nova_accel.api.http import policy
from nova_accel.api.policies import deployable as policies
from nova_accel.db import deployable as deployable_db
from nova_accel.db import lease
from nova_accel.db.rows import host_rows
from nova_accel.model import host_rpc
from nova_accel.model.fpga import programming_record

CONF = conf.CONF

#: Seconds that a call of a host takes at most beside the wait for its end.
AROUND_S = 60

_IN_USE = (
    'its region cannot be programmed now: not only this server uses it. Ask '
    'an administrator'
)


def program(
    context: caller.Caller, uuid: str, bitstream_uuid: str
) -> deployable_db.DeployableRow:
    """Program the region of a deployable, and wait for the end.

    A shell is loaded into the whole card.

    :param uuid: the uuid of a deployable, or of an ARQ that has a unit of it:
        the owner of a server knows no other name of it
    :returns: the deployable as by :func:`nova_accel.db.deployable.get`, but
        with its new bitstream
    :raises HTTPForbidden, NotAllowed: this caller may not.
    :raises NotFound: there is no such deployable, or no such bitstream for
        this caller.
    :raises Conflict: it has no region, another server has a unit of that, its
        host is silent, another call programs the region, or its host refuses.
        A host refuses if the server runs and the driver cannot program under a
        guest.
    :raises DeviceError: the device has failed.
    :raises ServiceUnavailable: something that is needed is away.
    :raises TooBusy: as many calls of this process wait for hosts as may.
    :raises NoAnswerInTime: the host has not answered in time, so the end is
        not known.
    """
    from nova_accel.api.compute import rpc

    policy.authorize(context, policies.PROGRAM, policies.PROGRAM_OWN)
    found = _named(context, uuid)
    instance_uuid = _owner(context, found)
    check_not_silent([found])
    with _alone(found), waiting.place():
        is_shell = rpc.program(
            context.for_nova(),
            host_rpc.Callee(found['service_host'], found['contract']),
            found['uuid'],
            bitstream_uuid,
            instance_uuid,
            _shell_loading(context, found),
        )
    # Its host soon reports the same.
    return {**found, 'bitstream_id': None if is_shell else bitstream_uuid}


def _named(context: caller.Caller, uuid: str) -> deployable_db.DeployableRow:
    """:raises NotFound: neither deployable nor ARQ has this uuid"""
    try:
        return deployable_db.get(uuid)
    except exceptions.NotFound:
        return deployable_db.get_of_arq(
            uuid,
            None
            if policy.allows(context, policies.PROGRAM)
            else context.project_id,
        )


def _alone(
    found: deployable_db.DeployableRow,
) -> contextlib.AbstractContextManager[None]:
    """Keep all other calls from the region meanwhile, also other processes'.

    The calling process may be killed meanwhile. Then others may program the
    region when the call would have ended.

    :raises Conflict: another call programs it, when the body is entered.
    """
    region = uuids.uuid5(
        uuids.UUID(found['device_uuid']), found['region'] or ''
    )
    text = 'is being programmed by another call: try again when that has ended'
    return lease.alone(
        f'programming {region}',
        CONF.long_rpc_timeout + AROUND_S,
        exceptions.Conflict(
            f'region {found["region"]} of device {found["device_uuid"]} '
            f'{text}',
            public=f'the region {text}',
        ),
    )


def check_not_silent(rows: Iterable[host_rows.HostState]) -> None:
    """:raises Conflict: names the hosts that do not report."""
    silent = sorted({row['hostname'] for row in rows if row['is_silent']})
    if silent:
        raise exceptions.Conflict(
            '; '.join(
                f'host {hostname} has not reported for '
                f'{CONF.nova_accel.host_silence_s} s'
                for hostname in silent
            ),
            public=(
                'the host has not reported for '
                f'{CONF.nova_accel.host_silence_s} s: try again later'
            ),
        )


def _shell_loading(
    context: caller.Caller,
    found: deployable_db.DeployableRow,
) -> programming_record.ShellLoading:
    """Whether a shell may be loaded; only the host learns if it is one."""
    if not policy.allows(context, policies.LOAD_SHELL):
        return programming_record.ShellLoading.FORBIDDEN
    if deployable_db.get_holders(found['device_uuid']):
        return programming_record.ShellLoading.IN_USE
    return programming_record.ShellLoading.ALLOWED


def _owner(
    context: caller.Caller, found: deployable_db.DeployableRow
) -> str | None:
    """The only server that has a unit of the region, which is the caller's.

    :returns: its uuid, None if no server has a unit of it
    """
    holders = (
        set()
        if found['region'] is None
        else (deployable_db.get_holders(found['device_uuid'], found['region']))
    )
    own = {
        instance_uuid
        for project_id, instance_uuid in holders
        if project_id is not None and project_id == context.project_id
    }
    if not (own or policy.allows(context, policies.PROGRAM)):
        raise webob.exc.HTTPForbidden(policy.denial(policies.PROGRAM))
    if found['region'] is None and not policy.allows(
        context, policies.LOAD_SHELL
    ):
        raise exceptions.Conflict(
            f'deployable {found["uuid"]} is in no region that can be '
            'programmed',
            public='it is in no region that can be programmed',
        )
    if len(own) < len(holders):
        raise _in_use(found, 'a server of another project')
    if len(own) > 1:
        raise _in_use(found, 'several servers')
    return next(iter(own), None)


def _in_use(
    found: deployable_db.DeployableRow, whose: str
) -> exceptions.Conflict:
    """The fault for a region of which not only the caller's server has any.

    A tenant reads neither whose the others are nor what the card is.
    """
    return exceptions.Conflict(
        f'region {found["region"]} of device {found["device_uuid"]} is '
        f'in use by {whose}',
        public=_IN_USE,
    )
