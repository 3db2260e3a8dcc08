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

"""The first steps of a host that takes over guests from another service.

The database has their ARQs, imported from a Cyborg and not adopted. The host
makes its own what it sees in a guest: the API gets its role and the number of
an attempt, the journal an entry. :mod:`nova_accel.model.taking_over` has the
rules.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator

from oslo_log import log as logging

from nova_accel.client import accelerator_api
from nova_accel.client import servers
from nova_accel.host import all_guests
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model import host_view
from nova_accel.model import taking_over
from nova_accel.virt import server_request
from nova_accel.virt.holding import attaching
from nova_accel.virt.holding import left_mdevs
from nova_accel.virt.holding import retries

LOG = logging.getLogger(__name__)

_PART = 'taking over'

#: The text for a look that fails.
NOT_TAKEN_OVER = 'Guests of another service are not taken over'


class TakingOver:
    """Takes over the guests of one host.

    If no ARQ of the host waits to be adopted, only the first cycle costs a
    request.

    :param service_host: the host's name in Nova's RPC
    """

    def __init__(
        self,
        service_host: str,
        api: accelerator_api.AcceleratorApi,
        attachments: attaching.Attachments,
        guests: all_guests.Guests,
        left: left_mdevs.LeftMdevs,
        board: host_view.Board,
    ) -> None:
        self._service_host = service_host
        self._api = api
        self._attachments = attachments
        self._guests = guests
        self._left_mdevs = left
        self._board = board

    def look(self) -> None:
        """Learn what instances hold, before devices are reported.

        :raises ServiceUnavailable: the API gave no usable answer.
        :raises DeviceError: libvirt gave none.
        """
        if self._board.unjournaled is None:
            listing = self._api.listing()
            # The report makes the API forget them.
            self._board.findings.put(
                f'{_PART}, left mediated devices',
                self._left_mdevs.destroy(listing.left_mdevs),
            )
            self._note(listing.bindings)

    def go_on(self) -> None:
        """Take over what can be, after devices were reported.

        Does not raise: what fails is left to the next cycle.
        """
        findings = self._board.findings
        with retries.retry_later(NOT_TAKEN_OVER) as tried:
            findings.put(_PART, list(self._go_on()) if self._waiting() else ())
        findings.put(f'{_PART}, as a whole', tried.failure(NOT_TAKEN_OVER))

    def _go_on(self) -> Iterator[finding.Finding]:
        """Look again, and take over.

        :raises AcceleratorError: the API gave no answer, or libvirt none.
        :raises NovaException, MessagingException: Nova gave no answer.
        """
        # In this order, a server that is being deleted has a task by the time
        # when Nova is asked for it.
        guests = self._guests.devices()
        before = self._waiting()
        yield from self._unplug_deleted(before, self._list())
        waiting = self._waiting()
        known = servers.of_host(
            self._service_host, [binding.instance_uuid for binding in waiting]
        )
        view = self._board.view
        choices = {
            binding.instance_uuid: taking_over.choose(
                binding,
                known.get(binding.instance_uuid),
                self._service_host,
                guests.get(binding.instance_uuid, ()),
                view.layout.places,
            )
            for binding in waiting
        }
        for choice in choices.values():
            yield from choice.findings
        chosen = {
            uuid: choice.arqs
            for uuid, choice in choices.items()
            if choice.arqs
        }
        if not chosen:
            return
        for uuid, ports in servers.network_infos(chosen).items():
            of_ports = server_request.of_ports(ports, view.functions)
            yield from self._take_over(uuid, chosen[uuid], of_ports)

    def _unplug_deleted(
        self,
        before: Iterable[host_binding.Binding],
        listed: Iterable[host_binding.Binding],
    ) -> Iterator[finding.Finding]:
        """Unplug what Nova has deleted with its server meanwhile.

        Nova deletes ARQs that are not adopted after it has removed the guest,
        and leaves their mediated devices. The next view has no such device.

        :param before: the bindings that waited until now
        :param listed: all that there are
        """
        still = {uuid for binding in listed for uuid in binding.arq_uuids}
        for arq in (arq for binding in before for arq in binding.arqs):
            handle = arq.handle
            if arq.uuid in still or handle.mdev_type is None:
                continue
            words = (
                f'The mediated device {handle.uuid} of {handle.address} is '
                'destroyed, unless it is held: its server is gone'
            )
            with retries.retry_later(
                f'The mediated device {handle.uuid} is still there'
            ) as tried:
                self._guests.check_unused(handle)
                self._attachments.unplug_unheld(handle)
            yield from tried.outcome(
                finding.Kind.MDEV, words, device=handle.uuid
            )

    def _take_over(
        self,
        instance_uuid: str,
        arqs: Collection[arq_types.Arq],
        of_ports: Collection[str],
    ) -> Iterator[finding.Finding]:
        for role in (arq_types.Role.ACTIVE, arq_types.Role.PORT):
            some = [
                arq
                for arq in arqs
                if (arq.uuid in of_ports) is (role is arq_types.Role.PORT)
            ]
            if not some:
                continue
            with retries.retry_later(
                f'The accelerators of instance {instance_uuid} ({role}) are '
                'not taken over'
            ) as tried:
                self._attachments.take_over(instance_uuid, some, role)
                LOG.info(
                    'The accelerators of instance %s (%s) are taken over: %s',
                    instance_uuid,
                    role,
                    ', '.join(
                        part for arq in some for part in arq.handle.parts
                    ),
                    instance_uuid=instance_uuid,
                )
            if tried.fault is not None:
                yield finding.Finding(
                    finding.Kind.NOT_TAKEN_OVER,
                    f'what it has ({role}, ARQs '
                    f'{", ".join(arq.uuid for arq in some)}) is not taken '
                    f'over: {tried.fault}',
                    instance_uuid=instance_uuid,
                )

    def _list(self) -> list[host_binding.Binding]:
        """List what instances hold, and note what the journal lacks."""
        listed = self._api.bindings()
        self._note(listed)
        return listed

    def _note(self, listed: Iterable[host_binding.Binding]) -> None:
        self._board.unjournaled = host_binding.unjournaled(
            listed, self._attachments.held.journaled()
        )

    def _waiting(self) -> list[host_binding.Binding]:
        return [
            binding
            for binding in self._board.unjournaled or ()
            if binding.role is None
        ]
