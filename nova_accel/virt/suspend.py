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

"""Hooks for suspend, resume and unrescue.

These operations start guests with XML that libvirt or a file has kept. Nova
does not call ``_get_guest_config``, so the devices are made ready here.

libvirt cannot save a guest that has a device of the host. Nova detaches its
own devices before a suspend, and attaches them after the resume. These hooks
do the same with ours. The instance holds its accelerators all the time.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
from typing import Any

from nova import conf
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.compute import power_state
from nova.virt.libvirt import guest as libvirt_guest
from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.virt import fault_translation
from nova_accel.virt import hooks
from nova_accel.virt import hot_plug
from nova_accel.virt import joined_guest

CONF = conf.CONF
LOG = logging.getLogger(__name__)

_HINT = 'a hard reboot gives the server its accelerators back'


class SuspendMixin(hooks.Hooks):
    """Gives devices to guests that are started again without new XML."""

    def suspend(
        self, context: nova_context.RequestContext, instance: objects.Instance
    ) -> None:
        guest = self._host.get_guest(instance)
        with _rolled_back(exception.InstanceSuspendFailure):
            arqs = self._held.arqs_of(instance.uuid)
            plugged = *arqs, *self._held.left_by(instance.uuid)
            # A paused guest would answer when it runs again, and lose its
            # devices then.
            if (
                plugged
                and guest.get_power_state(self._host) == power_state.PAUSED
            ):
                raise exceptions.DeviceError.for_all(
                    'a guest that is paused does not let go of its '
                    'accelerators'
                )
        if not plugged:
            super().suspend(context, instance)
            return
        try:
            hot_plug.detach(guest, plugged, CONF.libvirt.device_detach_timeout)
            super().suspend(context, instance)
        except Exception as error:
            self._attach_again(guest, arqs, error)
            raise exception.InstanceFaultRollback(
                exception.InstanceSuspendFailure(
                    reason=fault_translation.public(error)
                )
            ) from error

    def resume(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        with _rolled_back(exception.InstanceResumeFailure):
            arqs = self._made_ready(instance)
        try:
            self._resuming.add(instance.uuid)
            try:
                super().resume(context, instance, *args, **kwargs)
            finally:
                self._resuming.discard(instance.uuid)
            if arqs:
                self._attach(self._host.get_guest(instance), instance, arqs)
        except Exception as error:
            if not arqs or not self._runs(instance):
                raise
            self._suspend_again(context, instance, error)
            raise exception.InstanceFaultRollback(
                exception.InstanceResumeFailure(
                    reason=fault_translation.public(error)
                )
            ) from error

    def _attach_mediated_devices(
        self, guest: libvirt_guest.Guest, devs: Iterable[Any]
    ) -> None:
        # Nova lets libvirt choose their addresses, which may be those of
        # others of the guest. Ours are attached after the resume.
        super()._attach_mediated_devices(
            guest,
            [dev for dev in devs if not self.os_acc.owns_mdev(dev.uuid)],
        )

    def _resume_guest_after_snapshot(
        self,
        context: nova_context.RequestContext,
        live_snapshot: bool,
        original_power_state: int,
        instance: objects.Instance,
        guest: libvirt_guest.Guest,
    ) -> None:
        super()._resume_guest_after_snapshot(
            context, live_snapshot, original_power_state, instance, guest
        )
        if not self._needs_suspend_resume_for_snapshot(
            live_snapshot, original_power_state
        ):
            return
        try:
            self._attach(guest, instance, self._held.arqs_of(instance.uuid))
        except Exception as error:
            raise exception.InstanceResumeFailure(
                reason=f'{fault_translation.public(error)}; {_HINT}'
            ) from error

    def rescue(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        left = self._held.left_by(instance.uuid)
        if left:
            # Nova keeps the definition of the guest, for unrescue.
            hot_plug.leave_out(self._host.get_guest(instance), left)
        super().rescue(context, instance, *args, **kwargs)

    def unrescue(
        self, context: nova_context.RequestContext, instance: objects.Instance
    ) -> None:
        try:
            self._made_ready(instance)
        except exceptions.AcceleratorError as error:
            # After a roll-back Nova would call the server active.
            raise exception.InstanceUnRescueFailure(
                reason=fault_translation.public(error)
            ) from error
        super().unrescue(context, instance)

    def _attach(
        self,
        guest: libvirt_guest.Guest,
        instance: objects.Instance,
        arqs: Iterable[arq_types.Arq],
    ) -> None:
        arqs = tuple(arqs)
        with (
            self._unbinding(arqs),
            joined_guest.waiting(
                self._accelerators.fabric, guest, instance.uuid
            ),
        ):
            hot_plug.attach(guest, arqs)

    def _attach_again(
        self,
        guest: libvirt_guest.Guest,
        arqs: tuple[arq_types.Arq, ...],
        error: Exception,
    ) -> None:
        """Undo a suspend that failed."""
        try:
            with self._unbinding(arqs):
                hot_plug.attach(guest, arqs)
        except Exception as second:
            raise exception.InstanceSuspendFailure(
                reason=(
                    f'{fault_translation.public(error)}; '
                    f'{fault_translation.public(second)}; {_HINT}'
                )
            ) from second

    def _made_ready(
        self, instance: objects.Instance
    ) -> tuple[arq_types.Arq, ...]:
        """The instance's ARQs, with their devices ready.

        A reboot of the host may have removed the devices.
        """
        self.os_acc.ready_ports(instance, instance.get_network_info())
        return self.os_acc.ready(instance)

    def _runs(self, instance: objects.Instance) -> bool:
        try:
            guest = self._host.get_guest(instance)
        except exception.InstanceNotFound:
            return False
        return bool(guest.get_power_state(self._host) == power_state.RUNNING)

    def _suspend_again(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        error: Exception,
    ) -> None:
        """Undo a resume that has not given the guest all of its devices."""
        LOG.warning(
            'Resumed without all of its accelerators; suspending it again: %s',
            error,
            instance=instance,
        )
        try:
            self.suspend(context, instance)
        except Exception as second:
            raise exception.InstanceResumeFailure(
                reason=(
                    f'{fault_translation.public(error)}; it could not be '
                    f'suspended again ({fault_translation.public(second)}); '
                    f'{_HINT}'
                )
            ) from second


@contextlib.contextmanager
def _rolled_back(fault: type[exception.NovaException]) -> Iterator[None]:
    """Translate our faults to the one that leaves the server as it was."""
    try:
        yield
    except exceptions.AcceleratorError as error:
        raise exception.InstanceFaultRollback(
            fault(reason=fault_translation.public(error))
        ) from error
