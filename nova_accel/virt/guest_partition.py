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

"""Hooks that tell the fabric while Nova stops, starts or moves a guest.

A guest may be away for a moment during these calls. Its partition of
NVSwitches is left alone until they end. If the guest does not run then, the
partition is deactivated. :meth:`nova_accel.virt.os_acc.OsAcc.ready` activates
it.
"""

from typing import Any

from nova import context as nova_context
from nova import objects

from nova_accel import exceptions
from nova_accel.virt import hooks
from nova_accel.virt.fabric import no_fabric


class GuestPartitionMixin(hooks.Hooks):
    """The hooks; in the bases they come before all others of ours."""

    def spawn(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        with self._fabric.during(instance.uuid):
            super().spawn(context, instance, *args, **kwargs)

    def destroy(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        with self._fabric.during(instance.uuid):
            super().destroy(context, instance, *args, **kwargs)

    def power_off(
        self, instance: objects.Instance, *args: Any, **kwargs: Any
    ) -> None:
        with self._fabric.during(instance.uuid):
            super().power_off(instance, *args, **kwargs)

    def _soft_reboot(self, instance: objects.Instance) -> bool:
        with self._fabric.during(instance.uuid):
            try:
                with self._unbinding(self._held.arqs_of(instance.uuid)):
                    done = super()._soft_reboot(instance)
            except exceptions.AcceleratorError:
                # Nova tries a hard reboot, which tells the reason.
                return False
            return bool(done) and self._stays_joined(instance)

    def _hard_reboot(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        with self._fabric.during(instance.uuid):
            super()._hard_reboot(context, instance, *args, **kwargs)

    def suspend(
        self, context: nova_context.RequestContext, instance: objects.Instance
    ) -> None:
        with self._fabric.during(instance.uuid):
            super().suspend(context, instance)

    def resume(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        with self._fabric.during(instance.uuid):
            super().resume(context, instance, *args, **kwargs)

    def snapshot(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        with self._fabric.during(instance.uuid):
            super().snapshot(context, instance, *args, **kwargs)

    def rescue(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        with self._fabric.during(instance.uuid):
            super().rescue(context, instance, *args, **kwargs)

    def unrescue(
        self, context: nova_context.RequestContext, instance: objects.Instance
    ) -> None:
        with self._fabric.during(instance.uuid):
            super().unrescue(context, instance)

    def migrate_disk_and_power_off(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        with self._fabric.during(instance.uuid):
            return super().migrate_disk_and_power_off(
                context, instance, *args, **kwargs
            )

    def finish_migration(
        self,
        context: nova_context.RequestContext,
        migration: objects.Migration,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        with self._fabric.during(instance.uuid):
            super().finish_migration(
                context, migration, instance, *args, **kwargs
            )

    def finish_revert_migration(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        with self._fabric.during(instance.uuid):
            super().finish_revert_migration(context, instance, *args, **kwargs)

    def _stays_joined(self, instance: objects.Instance) -> bool:
        """Look again at the partition of a guest that was just started.

        :returns: whether it is active; the guest does not run if it is not,
            and Nova tries a hard reboot
        """
        if self._fabric.has(instance.uuid):
            guest = self._host.get_guest(instance)
            guest.pause()
            try:
                self._fabric.confirm(instance.uuid)
            except exceptions.AcceleratorError:
                return False
            guest.resume()
        return True

    @property
    def _fabric(self) -> no_fabric.NoFabric:
        return self._accelerators.fabric
