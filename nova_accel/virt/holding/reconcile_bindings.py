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

"""The bindings of the journal and of the API, compared with Nova's servers.

The rules are in :mod:`nova_accel.model.binding_repairs`.
"""

from collections.abc import Collection

from oslo_log import log as logging

from nova_accel.client import accelerator_api
from nova_accel.client import servers
from nova_accel.host import all_guests
from nova_accel.model import arq_types
from nova_accel.model import binding_repairs
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model.providers import host_view
from nova_accel.virt.holding import attaching
from nova_accel.virt.holding import intents
from nova_accel.virt.holding import retries

LOG = logging.getLogger(__name__)

#: The roles that exist only until a move of the server ends.
_FOR_A_WHILE = frozenset({arq_types.Role.OLD, arq_types.Role.INCOMING})


class BindingReconciler:
    """Repairs the bindings of one host.

    :param service_host: the host's name in Nova's RPC
    """

    def __init__(
        self,
        service_host: str,
        api: accelerator_api.AcceleratorApi,
        attachments: attaching.Attachments,
        guests: all_guests.AllGuests,
        current: host_view.CurrentState,
    ) -> None:
        self._service_host = service_host
        self._api = api
        self._attachments = attachments
        self._held = attachments.held
        self._guests = guests
        self._current = current
        # The revision of the orders by which no ARQ awaited anybody.
        self._adopted_by: int | None = None

    def are_unsettled(self) -> bool:
        """Whether a binding is about to change, or is not known."""
        return (
            self._may_have_unadopted()
            or bool(self._held.damaged())
            or any(held.role in _FOR_A_WHILE for held in self._held.bindings())
        )

    def _may_have_unadopted(self) -> bool:
        """Whether ARQs wait here that clients have bound.

        Nova does not tell its driver of a server that is deleted before it
        is built. So they are looked at until that is decided.
        """
        orders = self._current.orders
        return (
            orders is not None
            and orders.has_unadopted
            and orders.revision != self._adopted_by
        )

    def repair(
        self, consumers: Collection[str]
    ) -> binding_repairs.HostBindings:
        """Compare the bindings, and repair what can be.

        :param consumers: further instances that the comparison is to have
        :returns: what was compared
        :raises AcceleratorError: a service gave no answer; nothing is done.
        :raises NovaException, MessagingException: Nova gave no answer;
            nothing is done.
        """
        self._mend()
        host = self._look(consumers)
        found: list[finding.Finding] = []
        for repair in host.repairs():
            _log(repair)
            with retries.retry_later(
                'The accelerators of instance '
                f'{repair.binding.instance_uuid} are as before'
            ) as tried:
                self._do(repair)
            found += self._of_repair(repair, tried)
        self._current.findings.put('bindings', found)
        return host

    def _mend(self) -> None:
        """Learn what the damaged entries of the journal had."""
        damaged = sorted(self._held.damaged())
        listed = self._api.bindings() if damaged else ()
        for uuid in damaged:
            with retries.retry_later(
                f'The journal of instance {uuid} stays damaged'
            ):
                self._attachments.mend(uuid, listed)

    def _of_repair(
        self, repair: binding_repairs.Repair, tried: retries.Try
    ) -> list[finding.Finding]:
        binding = repair.binding
        words = f'what it held {_arqs_of(binding)} is {_why(repair)}'
        if repair.step is binding_repairs.RepairStep.TELL:
            return [
                finding.Finding(
                    finding.Kind.NOT_IN_API,
                    words,
                    instance_uuid=binding.instance_uuid,
                )
            ]
        if (
            repair.step is binding_repairs.RepairStep.RELEASE
            and (binding.instance_uuid, binding.role) in self._held.journaled()
        ):
            # The attachments tell why it is not released yet.
            return []
        return tried.outcome(
            finding.Kind.BINDING, words, binding.instance_uuid
        )

    def _look(
        self, consumers: Collection[str]
    ) -> binding_repairs.HostBindings:
        # The order matters, see binding_repairs.HostBindings.
        held = self._held.bindings()
        journaled = self._held.journaled()
        orders = self._current.orders
        listed = self._api.bindings()
        self._current.unjournaled = host_binding.unjournaled(listed, journaled)
        uuids = {binding.instance_uuid for binding in (*held, *listed)}
        host = binding_repairs.HostBindings(
            name=self._service_host,
            held=held,
            journaled=journaled,
            listed=listed,
            servers=servers.of_host(
                self._service_host, uuids.union(consumers)
            ),
            guests=self._guests.uuids(),
        )
        if orders is not None and not host.awaits_adoption:
            self._adopted_by = orders.revision
        return host

    def _do(self, repair: binding_repairs.Repair) -> None:
        binding = repair.binding
        match repair.step:
            case binding_repairs.RepairStep.RELEASE if (
                binding.role is not None
            ):
                self._attachments.release(
                    binding.instance_uuid, binding.role, binding.attempt
                )
            case binding_repairs.RepairStep.ACTIVATE if (
                binding.role is not None
            ):
                self._attachments.move(
                    binding.instance_uuid, binding.role, arq_types.Role.ACTIVE
                )
            case binding_repairs.RepairStep.TAKE_BACK:
                self._attachments.take_back(binding)
            case binding_repairs.RepairStep.RECOVER:
                self._attachments.hold(intents.recover(binding))
            case binding_repairs.RepairStep.DELETE:
                self._api.delete_unadopted(
                    binding.instance_uuid, binding.arq_uuids
                )


def _log(repair: binding_repairs.Repair) -> None:
    is_left = repair.step is binding_repairs.RepairStep.TELL
    LOG.log(
        logging.ERROR if is_left else logging.WARNING,
        'The accelerators of instance %s %s are %s',
        repair.binding.instance_uuid,
        _arqs_of(repair.binding),
        _why(repair),
        instance_uuid=repair.binding.instance_uuid,
    )


def _arqs_of(binding: host_binding.Binding) -> str:
    return (
        f'({binding.role or "not adopted"}, ARQs '
        f'{", ".join(binding.arq_uuids)})'
    )


def _why(repair: binding_repairs.Repair) -> str:
    return f'{repair.step.value}: {repair.why}'
