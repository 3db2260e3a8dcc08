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

"""Hooks for resize and cold migration.

The source keeps what the server has, in the role ``old``. The destination,
which may be the same host, acquires what the new flavor asks for, in the role
``active``. A confirm releases the old accelerators. A revert releases the new
ones when Nova destroys their guest, and makes the old ones active again. If
Nova does not call the source's driver then, :mod:`.holding.reconcile` does so.
"""

from collections.abc import Iterator
import contextlib
from typing import Any

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.compute import task_states

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.virt import fault_translation
from nova_accel.virt import hooks
from nova_accel.virt.holding import attaching
from nova_accel.virt.publishing import nova_tree


class MigrationMixin(hooks.Hooks):
    """The hooks; in the bases they come before ``AcceleratorMixin``."""

    def migrate_disk_and_power_off(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        with self._set_aside(instance):
            return super().migrate_disk_and_power_off(
                context, instance, *args, **kwargs
            )

    def finish_migration(
        self,
        context: nova_context.RequestContext,
        migration: objects.Migration,
        instance: objects.Instance,
        disk_info: str,
        network_info: Any,
        image_meta: objects.ImageMeta,
        resize_instance: bool,
        allocations: dict[str, Any],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        # If this fails, the server stays here with its allocations until a
        # hard reboot or its deletion. It keeps what was acquired, too.
        with (
            fault_translation.as_unavailable(),
            self.os_acc.acquired(
                context,
                instance,
                nova_tree.allocated(self.provider_tree, allocations),
                keeps=lambda: True,
            ),
        ):
            super().finish_migration(
                context,
                migration,
                instance,
                disk_info,
                network_info,
                image_meta,
                resize_instance,
                allocations,
                *args,
                **kwargs,
            )

    def confirm_migration(
        self,
        context: nova_context.RequestContext,
        migration: objects.Migration,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        try:
            super().confirm_migration(
                context, migration, instance, *args, **kwargs
            )
        finally:
            # Nova deletes the allocations, whether this worked or not.
            self._accelerators.attachments.release(
                instance.uuid, arq_types.Role.OLD
            )

    def finish_revert_migration(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        # Nova also calls this when it starts and finds a server that was
        # migrating when nova-compute died. The server's accelerators may not
        # have been set aside yet.
        with fault_translation.as_unavailable():
            restore(
                self._accelerators.attachments,
                instance.uuid,
                instance.task_state == task_states.RESIZE_REVERTING,
            )
        super().finish_revert_migration(context, instance, *args, **kwargs)

    def cleanup(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().cleanup(context, instance, *args, **kwargs)
        if (
            not self._keeps_accelerators(instance)
            and instance.task_state != task_states.RESIZE_REVERTING
        ):
            self._accelerators.attachments.release(
                instance.uuid, arq_types.Role.OLD
            )

    def _hard_reboot(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        # Nova advises a hard reboot after a revert that failed.
        with fault_translation.as_unavailable():
            restore_reverted(
                self._accelerators.attachments,
                instance,
                self._accelerators.node.service_host,
            )
        super()._hard_reboot(context, instance, *args, **kwargs)

    def _keeps_accelerators(self, instance: objects.Instance) -> bool:
        # The source of a resize to another cell destroys its guest.
        return (
            instance.task_state == task_states.RESIZE_MIGRATING
            and instance.host == self._accelerators.node.service_host
        ) or super()._keeps_accelerators(instance)

    @contextlib.contextmanager
    def _set_aside(self, instance: objects.Instance) -> Iterator[None]:
        """Hold the instance's accelerators as old, unless the body fails.

        :raises InstanceFaultRollback: they cannot be held as old; the server
            stays as it is.
        """
        attachments = self._accelerators.attachments
        # An earlier move that never ended may have left some.
        attachments.release(instance.uuid, arq_types.Role.OLD)
        try:
            attachments.move(
                instance.uuid, arq_types.Role.ACTIVE, arq_types.Role.OLD
            )
        except exceptions.AcceleratorError as error:
            raise exception.InstanceFaultRollback(
                exception.ResizeError(reason=fault_translation.public(error))
            ) from error
        try:
            yield
        except BaseException:
            attachments.move(
                instance.uuid, arq_types.Role.OLD, arq_types.Role.ACTIVE
            )
            raise


def restore(
    attachments: attaching.Attachments,
    instance_uuid: str,
    is_reverted: bool = False,
) -> None:
    """Make old accelerators active again, unless there are active ones.

    :param is_reverted: replace active ones. After a revert on one host they
        are those of the destination, which it could not release
    :raises DeviceError: a device that was active before is stuck.
    """
    if is_reverted or not attachments.held.has(instance_uuid):
        attachments.move(
            instance_uuid, arq_types.Role.OLD, arq_types.Role.ACTIVE
        )


def restore_reverted(
    attachments: attaching.Attachments,
    instance: objects.Instance,
    service_host: str,
) -> None:
    """:func:`restore`, if a revert brought the instance back and failed.

    :raises DeviceError: a device that was active before is stuck.
    """
    # Nova forgets the old flavor at the end of a revert, also if the revert
    # failed. It keeps the old flavor if a resize fails on the destination.
    if (
        attachments.held.has(instance.uuid, arq_types.Role.OLD)
        and instance.host == service_host
        and instance.old_flavor is None
    ):
        restore(attachments, instance.uuid)
