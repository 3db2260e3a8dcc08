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

"""The base of all changes of a server that stays on its host.

Nova does nothing else with the server meanwhile: the change has Nova's lock of
the instance, and a task of its own in Nova's database.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Sequence
import contextlib

from nova import context as nova_context
from nova import exception
from nova import objects
from nova import utils
from nova.compute import power_state
from nova.compute import task_states
from nova.compute import vm_states
from nova.virt.libvirt import guest as libvirt_guest

from nova_accel import exceptions
from nova_accel.client import our_allocations
from nova_accel.model import arq_types
from nova_accel.model.fpga import programming_record
from nova_accel.model.units import local_choice
from nova_accel.virt import hooks
from nova_accel.virt import instance_event
from nova_accel.virt import server_request

#: Nova clears this task of a server when nova-compute starts. Its API answers
#: 409 to all that would change the server meanwhile.
_TASK = task_states.RESIZE_PREP

_STATES = (vm_states.ACTIVE, vm_states.STOPPED)


class ChangeMixin(hooks.Hooks):
    """Changes what a server holds, and what its guest has."""

    def _change(
        self,
        context: nova_context.RequestContext,
        instance_uuid: str,
        action_name: str,
        change: Callable[[objects.Instance], None],
    ) -> None:
        """Change a server while Nova does nothing else with it.

        :param context: of the caller, who may change the server
        :param action_name: for the server's list of actions
        :raises Conflict: it is not here, is busy, or in a wrong state.
        :raises AcceleratorError: of ``change``.
        """

        @utils.synchronized(instance_uuid)
        def locked() -> None:
            instance = self._reserved(context, instance_uuid)
            try:
                action = objects.InstanceAction.action_start(
                    context, instance_uuid, action_name
                )
                try:
                    with instance_event.record_fault(context, instance):
                        change(instance)
                finally:
                    action.finish()
            finally:
                self._let_go(context, instance_uuid)

        locked()

    def _let_go(
        self, context: nova_context.RequestContext, instance_uuid: str
    ) -> None:
        """Let Nova do other things with the server again."""
        # Nova may have begun to delete it.
        with contextlib.suppress(
            exception.InstanceNotFound,
            exception.UnexpectedTaskStateError,
        ):
            # Another object would also save the flavor that it has read.
            instance = objects.Instance.get_by_uuid(
                context.elevated(), instance_uuid
            )
            instance.task_state = None
            instance.save(expected_task_state=_TASK)

    def _reserved(
        self, context: nova_context.RequestContext, instance_uuid: str
    ) -> objects.Instance:
        """The server, with which Nova does nothing else from now on.

        :raises Conflict: it is not here, is busy, or in a wrong state.
        """
        try:
            instance = objects.Instance.get_by_uuid(
                context.elevated(),
                instance_uuid,
                expected_attrs=['flavor', 'numa_topology', 'system_metadata'],
            )
            if (
                instance.host != self._accelerators.node.service_host
                or instance.vm_state not in _STATES
            ):
                raise exceptions.Conflict(
                    f'instance {instance_uuid} is {instance.vm_state} on '
                    f'{instance.host}: it has to be active or stopped here',
                    public='the server has to be active or stopped',
                )
            instance.task_state = _TASK
            instance.save(expected_task_state=[None])
        except (
            exception.InstanceNotFound,
            exception.UnexpectedTaskStateError,
        ) as error:
            raise exceptions.Conflict(
                f'instance {instance_uuid} is busy, or is gone: {error}',
                public='another operation of the server is under way',
            ) from error
        return instance

    def _choice(self) -> local_choice.Choice:
        """The units of this host that no one has."""
        current = self._accelerators.current
        held = frozenset(arq.handle.uuid for arq in self._held.arqs())
        return local_choice.Choice(
            current.view.layout,
            current.view.unusable(current.orders).union(
                held, current.view.excluded(held)
            ),
        )

    def _add(
        self,
        instance: objects.Instance,
        wanted: Sequence[arq_types.WantedArq],
        kept: Collection[str] | None = None,
    ) -> tuple[arq_types.Arq, ...]:
        """See :meth:`.holding.attaching.Attachments.add`."""
        return self._accelerators.attachments.add(
            instance.uuid,
            instance.project_id,
            wanted,
            lambda: our_allocations.claim(
                instance.uuid,
                local_choice.resources(
                    wanted, self._accelerators.current.view.layout.shares
                ),
            ),
            kept,
        )

    def _running_guest(
        self, instance: objects.Instance
    ) -> libvirt_guest.Guest | None:
        try:
            guest = self._host.get_guest(instance)
        except exception.InstanceNotFound:
            return None
        if guest.get_power_state(self._host) == power_state.SHUTDOWN:
            return None
        return guest

    def _made_ready_beside(
        self, instance: objects.Instance, added: Sequence[arq_types.Arq]
    ) -> None:
        """Make devices ready to go into a running guest.

        :raises AcceleratorError: one is not ready.
        """
        self._accelerators.programmer.ready(
            added,
            programming_record.Asker(
                instance.project_id, instance.user_id, instance.uuid
            ),
            server_request.image_properties(instance),
            is_new=True,
        )
        self._accelerators.attachments.plug_added(instance.uuid, added)
