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


"""A periodic comparison of what this host holds with what exists.

Nova's operations can end without a call of the driver: nova-compute was down,
a step failed, or a host was reinstalled. The rules for repairs are in
:mod:`nova_accel.model.drift`. The number of requests does not grow with the
number of instances. Placement gets one for each of our providers.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import time

from nova import exception
from oslo_log import log as logging
import oslo_messaging

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.client import our_allocations
from nova_accel.client import servers
from nova_accel.host import all_guests
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import arq_types
from nova_accel.model import drift
from nova_accel.model import host_view
from nova_accel.virt.holding import attaching

LOG = logging.getLogger(__name__)

_FAULTS = (
    exceptions.AcceleratorError,
    exception.NovaException,
    oslo_messaging.MessagingException,
)

#: The roles that exist only until a move of the server ends.
_FOR_A_WHILE = frozenset({arq_types.Role.OLD, arq_types.Role.INCOMING})


class Reconciler:
    """Repairs one host, from time to time.

    :param service_host: the host's name in Nova's RPC
    :param interval_s: seconds between two passes. While a move has bindings
        here, each call compares the bindings
    """

    def __init__(
        self,
        service_host: str,
        interval_s: int,
        api: accelerator_api.AcceleratorApi,
        attachments: attaching.Attachments,
        node_devices: libvirt_devices.NodeDevices,
        guests: all_guests.Guests,
        board: host_view.Board,
    ) -> None:
        self._service_host = service_host
        self._interval_s = interval_s
        self._api = api
        self._attachments = attachments
        self._node_devices = node_devices
        self._guests = guests
        self._board = board
        self._compared_at = time.monotonic()
        self._stale: frozenset[str] = frozenset()

    def run(self) -> None:
        """Make a pass, if it is time for one.

        Does not raise: a comparison or repair that fails is left to the next
        pass.
        """
        is_due = time.monotonic() - self._compared_at >= self._interval_s
        with _next_time(
            'The accelerators of this host are not compared with what Nova has'
        ):
            if is_due:
                self.repair()
                self._compared_at = time.monotonic()
            elif any(
                held.role in _FOR_A_WHILE
                for held in self._attachments.held.bindings()
            ):
                self._repair_bindings({})

    def repair(self) -> None:
        """Make a whole pass.

        :raises AcceleratorError: a service gave no answer; nothing is done.
        :raises NovaException, MessagingException: Nova gave no answer;
            nothing is done.
        """
        # Mediated devices are listed first: each is journaled before it is
        # made, so the journal that is read later has them all.
        mdevs = self._node_devices.mdevs()
        view = self._board.view
        consumers = our_allocations.of_consumers(
            [
                provider.uuid
                for provider in view.layout.providers
                if provider.totals
            ]
        )
        host = self._repair_bindings(consumers)
        with _next_time('Mediated devices are not compared'):
            self._repair_mdevs(mdevs, view, host)
        with _next_time('Allocations are not compared'):
            self._repair_allocations(consumers, host)

    def _repair_bindings(
        self,
        consumers: Mapping[str, our_allocations.Resources],
    ) -> drift.Host:
        host = self._look(consumers)
        for repair in host.repairs():
            self._log(repair)
            with _next_time(
                'The accelerators of instance '
                f'{repair.binding.instance_uuid} are as before'
            ):
                self._do(repair)
        return host

    def _look(
        self,
        consumers: Mapping[str, our_allocations.Resources],
    ) -> drift.Host:
        # The order matters, see drift.Host.
        held = self._attachments.held.bindings()
        journaled = self._attachments.held.journaled()
        listed = self._api.bindings()
        uuids = {binding.instance_uuid for binding in (*held, *listed)}
        return drift.Host(
            name=self._service_host,
            held=held,
            journaled=journaled,
            listed=listed,
            servers=servers.of_host(
                self._service_host, uuids | consumers.keys()
            ),
            guests=self._guests.uuids(),
        )

    def _do(self, repair: drift.Repair) -> None:
        binding = repair.binding
        match repair.step:
            case drift.Step.RELEASE if binding.role is not None:
                self._attachments.release(
                    binding.instance_uuid, binding.role, binding.attempt
                )
            case drift.Step.ACTIVATE if binding.role is not None:
                self._attachments.move(
                    binding.instance_uuid, binding.role, arq_types.Role.ACTIVE
                )
            case drift.Step.TAKE_BACK:
                self._attachments.take_back(binding)
            case drift.Step.RECOVER:
                self._attachments.recover(binding)
            case drift.Step.DELETE:
                self._api.delete_unadopted(
                    binding.instance_uuid, binding.arq_uuids
                )

    @staticmethod
    def _log(repair: drift.Repair) -> None:
        binding = repair.binding
        level = (
            logging.ERROR
            if repair.step is drift.Step.TELL
            else logging.WARNING
        )
        LOG.log(
            level,
            'The accelerators of instance %s (%s, ARQs %s) are %s: %s',
            binding.instance_uuid,
            binding.role or 'not adopted',
            ', '.join(binding.arq_uuids),
            repair.step.value,
            repair.why,
            instance_uuid=binding.instance_uuid,
        )

    def _repair_mdevs(
        self,
        mdevs: tuple[pci_function.Mdev, ...],
        view: host_view.View,
        host: drift.Host,
    ) -> None:
        handles = view.handles
        ours = {
            mdev.uuid
            for mdev in mdevs
            if mdev.uuid in handles
            and (mdev.parent, mdev.type)
            == (handles[mdev.uuid].address, handles[mdev.uuid].mdev_type)
        }
        orphans = drift.orphans(
            ours,
            {arq.handle.uuid for arq in self._attachments.held.arqs()},
            {arq.handle.uuid for listed in host.listed for arq in listed.arqs},
        )
        if not orphans:
            return
        in_guests = frozenset().union(*self._guests.devices().values())
        for uuid in drift.orphans(orphans, in_guests):
            LOG.warning(
                'The mediated device %s of %s is destroyed: it is '
                'ours and nobody has it',
                uuid,
                handles[uuid].address,
            )
            with _next_time(f'The mediated device {uuid} is still there'):
                self._attachments.unplug_unheld(handles[uuid])

    def _repair_allocations(
        self,
        consumers: Mapping[str, our_allocations.Resources],
        host: drift.Host,
    ) -> None:
        """Remove allocations that were stale in the previous pass, too."""
        stale = frozenset(drift.stale_consumers(host, consumers))
        for uuid in stale & self._stale:
            LOG.warning(
                'What instance %s has in Placement of accelerators '
                'of this host is taken away, it is on host %s: %s',
                uuid,
                host.servers[uuid].host,
                consumers[uuid],
            )
            with _next_time(f'Instance {uuid} still has it'):
                our_allocations.take_away(uuid, consumers[uuid])
        self._stale = stale


@contextlib.contextmanager
def _next_time(fault: str) -> Iterator[None]:
    """Log a failure of the body, which is tried again in the next pass."""
    try:
        yield
    except _FAULTS as error:
        LOG.warning('%s, trying again later: %s', fault, error)
    except Exception:
        LOG.exception('%s, trying again later', fault)
