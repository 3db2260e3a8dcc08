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

"""The RPC server by which the accelerator API asks a compute host to act.

It runs beside nova-compute's own server, on the same message bus and under
the same host name.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
from typing import Any

from nova import rpc
from oslo_log import log as logging
import oslo_messaging

from nova_accel import exceptions
from nova_accel.bitstreams import store
from nova_accel.model import host_rpc
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from nova_accel.virt.fpga.programming import region_programmer

LOG = logging.getLogger(__name__)


class Endpoint:
    """The methods that all clients of the message bus can call."""

    target = oslo_messaging.Target(version=host_rpc.VERSION)

    def __init__(
        self,
        programmer: region_programmer.Programmer,
        bitstreams: store.Store,
        replace: Callable[[Any, str, Sequence[str]], None],
        set_profile: Callable[
            [Any, str, str | None, Sequence[Mapping[str, str]]], None
        ],
        hurry: Callable[[], None],
    ) -> None:
        self._programmer = programmer
        self._bitstreams = bitstreams
        self._replace = replace
        self._set_profile = set_profile
        self._hurry = hurry

    @oslo_messaging.expected_exceptions(exceptions.RefusedByHost)
    def program(
        self,
        context: Any,
        deployable_uuid: str,
        bitstream_uuid: str,
        instance_uuid: str | None,
        shell_loading: str,
    ) -> bool:
        """Program the region of a deployable, and wait for the end.

        If the bitstream is a shell, it is loaded into the card.

        :param context: the caller's, who must be allowed to see the bitstream
        :param instance_uuid: the server that has the region, and may have it
            programmed under its guest
        :param shell_loading: a
            :class:`nova_accel.model.fpga.programming_record.ShellLoading`
        :returns: whether it was a shell, which the region does not hold
        :raises RefusedByHost: it is not programmed; the text says why.
        """
        with _refusals(
            f'Deployable {deployable_uuid} is not programmed with bitstream '
            f'{bitstream_uuid}'
        ):
            contents = self._program(
                context,
                deployable_uuid,
                bitstream_uuid,
                instance_uuid,
                programming_record.ShellLoading(shell_loading),
            )
            return contents.is_shell

    @oslo_messaging.expected_exceptions(exceptions.RefusedByHost)
    def replace(
        self, context: Any, instance_uuid: str, arq_uuids: list[str]
    ) -> None:
        """Replace failed devices of a server, and wait for the end.

        :param context: the caller's
        :param arq_uuids: the ARQs that are to get other devices
        :raises RefusedByHost: they are not replaced; the text says why.
        """
        with _refusals(f'Devices of server {instance_uuid} are not replaced'):
            self._replace(context, instance_uuid, arq_uuids)

    @oslo_messaging.expected_exceptions(exceptions.RefusedByHost)
    def set_profile(
        self,
        context: Any,
        instance_uuid: str,
        device_profile_name: str | None,
        groups: list[dict[str, str]],
    ) -> None:
        """Give a server what a device profile asks for, and wait for the end.

        :param context: the caller's
        :param device_profile_name: None to take away what the server has
        :param groups: those of the device profile
        :raises RefusedByHost: the server has what it had; the text says why.
        """
        with _refusals(
            f'Server {instance_uuid} does not get device profile '
            f'{device_profile_name}'
        ):
            self._set_profile(
                context, instance_uuid, device_profile_name, groups
            )

    def program_fpga_with_bitstream(
        self, context: Any, deployable_uuid: str, bitstream_uuid: str
    ) -> int:
        """Program as the programming service's specification says.

        :returns: a
            :class:`nova_accel.model.fpga.programming_record.Result`; the
            reason of a failure is in the log
        """
        try:
            self._program(
                context,
                deployable_uuid,
                bitstream_uuid,
                None,
                programming_record.ShellLoading.FORBIDDEN,
            )
        except Exception as fault:
            result = _result(fault)
            LOG.error(
                'Deployable %s is not programmed with bitstream %s: %s',
                deployable_uuid,
                bitstream_uuid,
                fault,
                exc_info=not isinstance(fault, exceptions.AcceleratorError),
            )
            return int(result)
        return int(programming_record.Result.PROGRAMMED)

    def prefetch(self, context: Any, bitstream_uuid: str) -> None:
        """Fetch a bitstream to this host before it is needed.

        :param context: the caller's, who must be allowed to see it
        """
        try:
            self._bitstreams.prefetch(bitstream_uuid, context)
        except exceptions.AcceleratorError as fault:
            LOG.error('Bitstream %s is not fetched: %s', bitstream_uuid, fault)
            return
        LOG.info('Bitstream %s is on this host', bitstream_uuid)

    def stock(
        self, context: Any, deployable_uuid: str, bitstream_uuid: str
    ) -> None:
        """Program an idle region with what servers will probably ask for.

        The host's own rights count, not those of the caller.
        """
        self._programmer.stock(deployable_uuid, bitstream_uuid)

    def hurry(self, context: Any) -> None:
        """Report now, and have Placement know of the orders in the answer."""
        self._hurry()

    def _program(
        self,
        context: Any,
        deployable_uuid: str,
        bitstream_uuid: str,
        instance_uuid: str | None,
        shell_loading: programming_record.ShellLoading,
    ) -> programmable.Contents:
        return self._programmer.program(
            deployable_uuid,
            fpga_bitstream.WantedBitstream(bitstream_uuid),
            programming_record.Asker(
                context.project_id, context.user_id, instance_uuid
            ),
            context,
            shell_loading,
        )


class RpcAgent:
    """Serves an endpoint, in Nova's threads of either kind.

    :param service_host: the host's name in Nova's RPC
    """

    def __init__(self, service_host: str, endpoint: Endpoint) -> None:
        self._server = rpc.get_server(
            oslo_messaging.Target(topic=host_rpc.TOPIC, server=service_host),
            [endpoint],
        )

    def start(self) -> None:
        """Begin to listen."""
        self._server.start()

    def stop(self) -> None:
        """Listen no more, and wait until all calls have ended."""
        self._server.stop()
        self._server.wait()


@contextlib.contextmanager
def _refusals(undone: str) -> Iterator[None]:
    """Let faults out of the body in the form that passes RPC.

    :param undone: for the log, what is not done
    :raises RefusedByHost: in the place of any other fault
    """
    try:
        yield
    except exceptions.AcceleratorError as fault:
        raise exceptions.RefusedByHost(host_rpc.refusal(fault)) from fault
    except Exception as error:
        LOG.exception('%s', undone)
        told = exceptions.DeviceError(
            'the host failed, its log has the reason'
        )
        raise exceptions.RefusedByHost(host_rpc.refusal(told)) from error


def _result(fault: Exception) -> programming_record.Result:
    match fault:
        case exceptions.BitstreamNotFound() | exceptions.BitstreamRefused():
            return programming_record.Result.NO_SUCH_BITSTREAM
        case exceptions.NotFound():
            return programming_record.Result.NO_SUCH_DEPLOYABLE
        case _:
            return programming_record.Result.FAILED
