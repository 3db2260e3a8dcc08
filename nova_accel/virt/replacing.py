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

"""Replacing the accelerators of a server that have failed.

The server keeps all others, and its place on this host. Another unit of the
same group takes the place of a failed one in the guest: at once, if a running
guest lets go of the failed one, or at its next start.
"""

from collections.abc import Sequence
import contextlib

from nova import conf
from nova import context as nova_context
from nova import exception
from nova import objects
from nova import utils
from nova.compute import power_state
from nova.compute import task_states
from nova.compute import vm_states
from nova.virt.libvirt import guest as libvirt_guest
from nova.virt.libvirt import host as libvirt_host
from oslo_log import log as logging

from nova_accel import conf as our_conf
from nova_accel import exceptions
from nova_accel.client import our_allocations
from nova_accel.model import arq_types
from nova_accel.model.fpga import programming_record
from nova_accel.model.units import replacements
from nova_accel.virt import hooks
from nova_accel.virt import hot_plug
from nova_accel.virt import instance_event
from nova_accel.virt import server_request

CONF = conf.CONF
OUR_CONF = our_conf.CONF
LOG = logging.getLogger(__name__)

#: The name of the action in the server's list of actions.
_ACTION = 'replace_accelerators'

#: Nova clears this task of a server when nova-compute starts. Its API answers
#: 409 to all that would change the server meanwhile.
_TASK = task_states.RESIZE_PREP

_STATES = (vm_states.ACTIVE, vm_states.STOPPED)


class ReplacementMixin(hooks.Hooks):
    """Replaces when it is asked to, and when a guest is made again."""

    def replace_failed(
        self,
        context: nova_context.RequestContext,
        instance_uuid: str,
        arq_uuids: Sequence[str],
    ) -> None:
        """Give a server other units for some of its ARQs.

        :param context: of the caller, who may change the server
        :raises Conflict: the server is not here, is busy, or is in a state
            that forbids it; there is no other unit; or the guest does not let
            go. The server has what it had before.
        :raises AcceleratorError: another cause; the server has what it had.
        """

        @utils.synchronized(instance_uuid)
        def replace() -> None:
            instance = self._reserved(context, instance_uuid)
            try:
                action = objects.InstanceAction.action_start(
                    context, instance_uuid, _ACTION
                )
                with instance_event.record_fault(context, instance):
                    self._replace(instance, self._named(instance, arq_uuids))
                action.finish()
            finally:
                instance.task_state = None
                # Nova may have begun to delete it.
                with contextlib.suppress(
                    exception.InstanceNotFound,
                    exception.UnexpectedTaskStateError,
                ):
                    instance.save(expected_task_state=_TASK)

        replace()

    def _made_again(self, instance: objects.Instance) -> None:
        """End a change that was cut short, and replace what has failed.

        The guest is destroyed, and is about to be made again. Nothing here
        keeps it from that: a device that has failed will.
        """
        attachments = self._accelerators.attachments
        try:
            attachments.settle(instance.uuid)
            view = self._accelerators.current.view
            # The content of a device that is cleaned is its tenant's.
            failed = [
                arq
                for arq in self._held.arqs_of(instance.uuid)
                if arq.handle.uuid in view.faulty - view.cleaned
            ]
            if failed and OUR_CONF.nova_accel.replace_failed:
                self._replace(instance, failed)
        except exceptions.AcceleratorError as error:
            LOG.warning(
                'Its failed accelerators are not replaced: %s',
                error,
                instance=instance,
            )

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

    def _named(
        self, instance: objects.Instance, arq_uuids: Sequence[str]
    ) -> list[arq_types.Arq]:
        """:raises Conflict: the server does not hold one of them."""
        held = {arq.uuid: arq for arq in self._held.arqs_of(instance.uuid)}
        for uuid in arq_uuids:
            if uuid not in held:
                raise exceptions.Conflict(
                    f'instance {instance.uuid} does not hold ARQ {uuid}',
                    public='the server does not have one of them any more',
                )
        return [held[uuid] for uuid in arq_uuids]

    def _replace(
        self, instance: objects.Instance, failed: Sequence[arq_types.Arq]
    ) -> None:
        """See :meth:`replace_failed` for the errors."""
        guest = self._running_guest(instance)
        if guest is not None and self._accelerators.fabric.has(instance.uuid):
            raise exceptions.Conflict(
                f'the guest of instance {instance.uuid} has a partition of '
                'NVSwitches: stop the server first',
                public='stop the server first: its GPUs are joined',
            )
        current = self._accelerators.current
        attachments = self._accelerators.attachments
        chosen = replacements.choose(
            failed,
            current.view.layout,
            current.view.unusable(current.orders).union(
                arq.handle.uuid for arq in self._held.arqs()
            ),
        )
        with attachments.changing(instance.uuid):
            added = attachments.add(
                instance.uuid, chosen, lambda: _claim(instance, failed, chosen)
            )
            replaced = _paired(failed, added)
            if guest is None:
                attachments.commit(instance.uuid, replaced)
            else:
                self._exchange(instance, guest, failed, replaced)
        # The failed units are to be reserved.
        current.is_doubtful = True
        LOG.info(
            'Replaced %s by %s',
            arq_types.in_words(failed),
            arq_types.in_words(replaced.values()),
            instance=instance,
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

    def _exchange(
        self,
        instance: objects.Instance,
        guest: libvirt_guest.Guest,
        failed: Sequence[arq_types.Arq],
        replaced: dict[str, arq_types.Arq],
    ) -> None:
        """Exchange devices of a running guest.

        :raises Conflict: the guest does not let go.
        :raises DeviceError: the guest gets the new ones at its next start.
        """
        attachments = self._accelerators.attachments
        added = [replaced[arq.uuid] for arq in failed]
        self._accelerators.programmer.ready(
            added,
            programming_record.Asker(
                instance.project_id, instance.user_id, instance.uuid
            ),
            server_request.image_properties(instance),
            is_new=True,
        )
        attachments.plug_added(instance.uuid, added)
        try:
            with self._unbinding([*failed, *added]):
                places = hot_plug.take_out(
                    guest, failed, CONF.libvirt.device_detach_timeout
                )
                attachments.commit(instance.uuid, replaced)
                hot_plug.put_in(guest, added, places)
        except libvirt_host.libvirt.libvirtError as error:
            raise exceptions.DeviceError(
                f'libvirt refuses: {error}; {_HINT}',
                public=f'the running guest cannot be changed: {_HINT}',
            ) from error
        except exceptions.DeviceError as error:
            raise exceptions.Conflict(
                f'{error}; {_HINT}', public=f'{error.public}; {_HINT}'
            ) from error


_HINT = 'a hard reboot replaces what has failed'


def _claim(
    instance: objects.Instance,
    failed: Sequence[arq_types.Arq],
    chosen: dict[str, str],
) -> None:
    """See :func:`nova_accel.client.our_allocations.claim`."""
    resources: dict[str, dict[str, int]] = {}
    for arq in failed:
        of_provider = resources.setdefault(chosen[arq.uuid], {})
        of_provider[arq.resource_class] = (
            of_provider.get(arq.resource_class, 0) + 1
        )
    our_allocations.claim(instance.uuid, resources)


def _paired(
    failed: Sequence[arq_types.Arq], added: Sequence[arq_types.Arq]
) -> dict[str, arq_types.Arq]:
    """The uuid of each failed ARQ -> the new one of the same group."""
    left = list(added)
    pairs = {}
    for arq in failed:
        pairs[arq.uuid] = next(
            each
            for each in left
            if each.device_profile_group_id == arq.device_profile_group_id
            and each.resource_class == arq.resource_class
        )
        left.remove(pairs[arq.uuid])
    return pairs
