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

"""Calls to nova-compute, routed to its cell as Nova's own are.

A refusal by the host is raised here as the same exception. It passes RPC as a
text that has its name, since Nova passes only its own exceptions unchanged.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import functools
from typing import Any

import kombu.exceptions
from nova import context as nova_context
from nova import exception as nova_exceptions
from nova import objects
from nova import rpc
from oslo_log import log as logging
import oslo_messaging

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api.compute import nova_setup
from nova_accel.model import host_rpc
from nova_accel.model.fpga import programming_record

CONF = conf.CONF
LOG = logging.getLogger(__name__)

#: How often a call tries again to reach a message bus that is away. Without
#: a number it would do so for ever.
_RETRIES = 1


def program(
    context: nova_context.RequestContext,
    callee: host_rpc.Callee,
    deployable_uuid: str,
    bitstream_uuid: str,
    instance_uuid: str | None,
    shell_loading: programming_record.ShellLoading,
) -> bool:
    """Have a region programmed, or a shell loaded, and wait for the end.

    The host asks Glance with the caller's rights.

    :param instance_uuid: the only server that has something of the region
    :returns: whether it was a shell
    :raises NotAllowed: it is a shell, and that is forbidden.
    :raises NotFound: the host has no such deployable with a region.
    :raises BitstreamNotFound: there is none, or not for this caller.
    :raises Conflict: the host refuses it, or is in no cell.
    :raises DeviceError: the device has failed.
    :raises ServiceUnavailable: Glance or the message bus is away.
    :raises NoAnswerInTime: the host has not answered in time, so the end is
        not known.
    """
    return bool(
        _call(
            context,
            callee,
            'program',
            deployable_uuid=deployable_uuid,
            bitstream_uuid=bitstream_uuid,
            instance_uuid=instance_uuid,
            shell_loading=str(shell_loading),
        )
    )


def replace(
    context: nova_context.RequestContext,
    callee: host_rpc.Callee,
    instance_uuid: str,
    arq_uuids: Sequence[str],
) -> None:
    """Have failed devices of a server replaced, and wait for the end.

    :param arq_uuids: the ARQs that are to get other devices
    :raises NotFound: the host has no such server, or no such ARQ.
    :raises Conflict: the host refuses it, or is in no cell.
    :raises DeviceError: a device has failed.
    :raises ServiceUnavailable: a service or the message bus is away.
    :raises NoAnswerInTime: the host has not answered in time, so the end is
        not known.
    """
    _call(
        context,
        callee,
        'replace',
        instance_uuid=instance_uuid,
        arq_uuids=list(arq_uuids),
    )


def set_profile(
    context: nova_context.RequestContext,
    callee: host_rpc.Callee,
    instance_uuid: str,
    name: str | None,
    groups: Sequence[Mapping[str, str]],
) -> None:
    """Have a server get what a device profile asks for, and wait for the end.

    :param name: the device profile's, None to take away what the server has
    :param groups: those of the device profile, as they are stored
    :raises NotAllowed: the project would have more than it may.
    :raises NotFound: the host has no such server.
    :raises Conflict: the host refuses it, or is in no cell.
    :raises DeviceError: a device has failed.
    :raises ServiceUnavailable: a service or the message bus is away.
    :raises NoAnswerInTime: the host has not answered in time, so the end is
        not known.
    """
    _call(
        context,
        callee,
        'set_profile',
        instance_uuid=instance_uuid,
        device_profile_name=name,
        groups=[dict(group) for group in groups],
    )


def prefetch(
    context: nova_context.RequestContext,
    callee: host_rpc.Callee,
    bitstream_uuids: Iterable[str],
) -> None:
    """Have a host fetch bitstreams; how that ends is in the host's log.

    :raises Conflict: the host is in no cell.
    :raises ServiceUnavailable: the message bus is away.
    """
    with _caster(context, callee) as cast:
        for uuid in bitstream_uuids:
            cast('prefetch', bitstream_uuid=uuid)


def stock(
    callee: host_rpc.Callee,
    deployable_uuid: str,
    bitstream_uuid: str,
) -> None:
    """Have a host program a region, if it is idle by then.

    The end is in the history of programmings, or in the host's log.

    :raises Conflict: the host is in no cell.
    :raises ServiceUnavailable: the message bus is away.
    """
    with _caster(nova_context.get_admin_context(), callee) as cast:
        cast(
            'stock',
            deployable_uuid=deployable_uuid,
            bitstream_uuid=bitstream_uuid,
        )


def hurry(callee: host_rpc.Callee) -> None:
    """Have a host report, and have Placement know of it, without a wait.

    :raises Conflict: the host is in no cell.
    :raises ServiceUnavailable: the message bus is away.
    """
    with _caster(nova_context.get_admin_context(), callee) as cast:
        cast('hurry')


@contextlib.contextmanager
def _caster(
    context: nova_context.RequestContext, callee: host_rpc.Callee
) -> Iterator[Callable[..., None]]:
    """Sends messages to a host that it does not answer."""
    with (
        _translated(callee),
        _client(context, callee) as (cell_context, prepare),
    ):
        yield functools.partial(prepare(retry=_RETRIES).cast, cell_context)


def _call(
    context: nova_context.RequestContext,
    callee: host_rpc.Callee,
    method: str,
    **arguments: Any,
) -> Any:
    """The answer of a host to a call that may take it long."""
    with (
        _translated(callee),
        _client(context, callee) as (cell_context, prepare),
    ):
        # oslo.messaging has registered the first option with the client.
        return prepare(
            call_monitor_timeout=CONF.rpc_response_timeout,
            timeout=CONF.long_rpc_timeout,
            retry=_RETRIES,
        ).call(cell_context, method, **arguments)


@contextlib.contextmanager
def _client(
    context: nova_context.RequestContext,
    callee: host_rpc.Callee,
) -> Iterator[tuple[nova_context.RequestContext, Callable[..., Any]]]:
    """A context in the host's cell, and ``prepare()`` of a client of the host.

    A client is prepared only once: Nova's own fixture, in which casts wait,
    fails at a second time.
    """
    nova_setup.ensure()
    objects.register_all()
    try:
        mapping = objects.HostMapping.get_by_host(context, callee.service_host)
    except nova_exceptions.HostMappingNotFound as error:
        raise exceptions.Conflict(
            f'host {callee.service_host} is in no cell of Nova'
        ) from error
    router = rpc.ClientRouter(
        rpc.get_client(
            oslo_messaging.Target(
                topic=host_rpc.TOPIC, version=host_rpc.FIRST
            ),
            version_cap=callee.version,
        )
    )
    with nova_context.target_cell(
        context, mapping.cell_mapping
    ) as cell_context:
        yield (
            cell_context,
            functools.partial(
                router.client(cell_context).prepare,
                server=callee.service_host,
            ),
        )


@contextlib.contextmanager
def _translated(callee: host_rpc.Callee) -> Iterator[None]:
    service_host, contract = callee
    try:
        yield
    except oslo_messaging.RPCVersionCapError as error:
        told = (
            f'serves version {error.version_cap} of the calls, and version '
            f'{error.version} is needed'
        )
        raise exceptions.Conflict(
            f'host {service_host} {told}: upgrade its nova-compute, which has '
            f'reported by contract {contract}',
            public=f'the host {told}: an administrator has to upgrade it',
        ) from error
    # It is no remote one where caller and host are one process.
    except exceptions.RefusedByHost as error:
        raise host_rpc.refused(str(error)) from error
    except oslo_messaging.RemoteError as error:
        if error.exc_type == exceptions.RefusedByHost.__name__:
            raise host_rpc.refused(error.value) from error
        LOG.error('Host %s failed: %s', service_host, error)
        raise exceptions.DeviceError(
            f'host {service_host} failed, its log has the reason'
        ) from error
    except oslo_messaging.MessagingTimeout as error:
        raise exceptions.NoAnswerInTime(
            f'host {service_host} has not answered in time: how it ends is '
            'in the history of programmings, or in the log of the host'
        ) from error
    # A bus that cannot be reached is told by the driver's library.
    except (
        oslo_messaging.MessagingException,
        kombu.exceptions.OperationalError,
    ) as error:
        LOG.error('Host %s cannot be called: %s', service_host, error)
        raise exceptions.ServiceUnavailable(
            f'host {service_host} cannot be called'
        ) from error
