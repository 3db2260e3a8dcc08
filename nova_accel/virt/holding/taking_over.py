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
from nova_accel.virt.holding import next_time

LOG = logging.getLogger(__name__)

_PART = 'taking over'


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
        board: host_view.Board,
    ) -> None:
        self._service_host = service_host
        self._api = api
        self._attachments = attachments
        self._guests = guests
        self._board = board

    def look(self) -> None:
        """Learn what instances hold, before devices are reported.

        :raises ServiceUnavailable: the API gave no usable answer.
        """
        if self._board.listed is None:
            self._board.listed = tuple(self._api.bindings())

    def go_on(self) -> None:
        """Take over what can be, after devices were reported.

        :raises AcceleratorError: a service gave no answer, or libvirt none.
        :raises NovaException, MessagingException: Nova gave no answer.
        """
        if not self._waiting():
            self._board.findings.put(_PART, ())
            return
        # In the opposite order to the one in which Nova deletes a server.
        guests = self._guests.devices()
        self._board.listed = tuple(self._api.bindings())
        waiting = self._waiting()
        uuids = [binding.instance_uuid for binding in waiting]
        known = servers.of_host(self._service_host, uuids)
        view = self._board.view
        found: list[finding.Finding] = []
        choices = {}
        for binding in waiting:
            uuid = binding.instance_uuid
            choice = taking_over.choose(
                binding,
                known.get(uuid),
                self._service_host,
                guests.get(uuid, ()),
                view.layout.places,
            )
            found += choice.findings
            if choice.arqs:
                choices[uuid] = choice.arqs
        if choices:
            network_infos = servers.network_infos(sorted(choices))
            for uuid, arqs in choices.items():
                if uuid in network_infos:
                    of_ports = server_request.of_ports(
                        network_infos[uuid], view.functions
                    )
                    found += self._take_over(uuid, arqs, of_ports)
        self._board.findings.put(_PART, found)

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
            with next_time.next_time(
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

    def _waiting(self) -> list[host_binding.Binding]:
        return [
            binding
            for binding in self._board.listed or ()
            if binding.role is None
        ]
