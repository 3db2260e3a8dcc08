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
an attempt, the journal an entry. The rules are in
:mod:`nova_accel.model.providers.take_over_choice`.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from oslo_log import log as logging

from nova_accel.client import accelerator_api
from nova_accel.client import servers
from nova_accel.host import all_guests
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model import nova_server
from nova_accel.model.providers import host_view
from nova_accel.model.providers import take_over_choice
from nova_accel.virt.holding import attaching
from nova_accel.virt.holding import intents
from nova_accel.virt.holding import mdevs
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
        guests: all_guests.AllGuests,
        unused: mdevs.UnusedMdevs,
        current: host_view.CurrentState,
    ) -> None:
        self._service_host = service_host
        self._api = api
        self._attachments = attachments
        self._guests = guests
        self._mdevs = unused
        self._current = current

    def look(self) -> None:
        """Learn what instances hold, before devices are reported.

        :raises ServiceUnavailable: the API gave no usable answer.
        :raises DeviceError: libvirt gave none.
        """
        if self._current.unjournaled is None:
            listing = self._api.listing()
            # The report makes the API forget them.
            self._current.findings.put(
                f'{_PART}, left mediated devices',
                self._mdevs.destroy_left(listing.left_mdevs),
            )
            self._note(listing.bindings)

    def go_on(self) -> None:
        """Take over what can be, after devices were reported.

        Does not raise: what fails is left to the next cycle.
        """
        findings = self._current.findings
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
        listed = self._api.bindings()
        self._note(listed)
        still = {uuid for binding in listed for uuid in binding.arq_uuids}
        yield from self._mdevs.destroy_deleted(
            arq.handle
            for binding in before
            for arq in binding.arqs
            if arq.uuid not in still
        )
        chosen = {}
        for binding, choice in self._choices(guests):
            yield from choice.findings
            if choice.arqs:
                chosen[binding.instance_uuid] = choice.arqs
        if chosen:
            for uuid, ports in servers.network_infos(chosen).items():
                of_ports = nova_server.arqs_of_ports(
                    ports, self._current.view.functions
                )
                yield from self._take_over(uuid, chosen[uuid], of_ports)

    def _choices(
        self, guests: Mapping[str, Collection[str]]
    ) -> Iterator[tuple[host_binding.Binding, take_over_choice.ArqChoice]]:
        waiting = self._waiting()
        known = servers.of_host(
            self._service_host, [binding.instance_uuid for binding in waiting]
        )
        for binding in waiting:
            yield (
                binding,
                take_over_choice.choose(
                    binding,
                    known.get(binding.instance_uuid),
                    self._service_host,
                    guests.get(binding.instance_uuid, ()),
                    self._current.view.layout.places,
                ),
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
                self._attachments.hold(
                    intents.take_over(instance_uuid, some, role)
                )
                LOG.info(
                    'The accelerators of instance %s (%s) are taken over: %s',
                    instance_uuid,
                    role,
                    ', '.join(
                        part for arq in some for part in arq.handle.parts
                    ),
                    instance_uuid=instance_uuid,
                )
            yield from tried.failure(
                f'what it has ({role}, ARQs '
                f'{", ".join(arq.uuid for arq in some)}) is not taken over',
                finding.Kind.NOT_TAKEN_OVER,
                instance_uuid,
            )

    def _note(self, listed: Iterable[host_binding.Binding]) -> None:
        self._current.unjournaled = host_binding.unjournaled(
            listed, self._attachments.held.journaled()
        )

    def _waiting(self) -> list[host_binding.Binding]:
        return [
            binding
            for binding in self._current.unjournaled or ()
            if binding.role is None
        ]
