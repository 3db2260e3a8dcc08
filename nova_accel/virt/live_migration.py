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

"""Hooks for live migration.

The destination acquires, in the role ``incoming``, the devices that will
replace those of the guest. It names them to the source in the fields that
Nova has for its own vGPUs and PCI devices. At the end one host gives its
accelerators back, and those of the other host become ``active``.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
from typing import Any

from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model.devices import replacement_devices
from nova_accel.virt import fault_translation
from nova_accel.virt import hooks
from nova_accel.virt import server_request
from nova_accel.virt.publishing import nova_tree

LOG = logging.getLogger(__name__)


class LiveMigrationMixin(hooks.Hooks):
    """The hooks; in the bases they come before ``AcceleratorMixin``."""

    def check_can_live_migrate_source(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        with _refused():
            attachments = self._accelerators.attachments
            attachments.check_migratable(instance.uuid)
            facts = attachments.migration_facts(instance.uuid)
        migrate_data = super().check_can_live_migrate_source(
            context, instance, *args, **kwargs
        )
        if facts:
            # Nova has no field for them. The destination hides ours from Nova.
            migrate_data.source_mdev_types = {
                **_field(migrate_data, 'source_mdev_types'),
                **{
                    address: replacement_devices.dump_facts(each)
                    for address, each in facts.items()
                },
            }
            LOG.info(
                'Its %d MiB of memory and the frame buffers of its vGPUs are '
                'to be moved. How fast a guest changes a frame buffer is not '
                'known before, so neither is how long it takes. The guest is '
                'paused at the end, see [libvirt] live_migration_downtime',
                instance.flavor.memory_mb,
                instance=instance,
            )
        return migrate_data

    def check_source_migrate_data_at_dest(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        migrate_data: Any,
        migration: objects.Migration,
        limits: Any,
        allocations: dict[str, Any],
    ) -> Any:
        def check() -> Any:
            return super(
                LiveMigrationMixin,
                self,
            ).check_source_migrate_data_at_dest(
                context, instance, migrate_data, migration, limits, allocations
            )

        profile = server_request.profile(instance.flavor)
        if profile is None:
            return check()
        with _refused():
            leaving = self._accelerators.api.held_on(
                instance.node, instance.uuid, arq_types.Role.ACTIVE
            )
            ours = {part for arq in leaving for part in arq.handle.parts}
            with _without(migrate_data, ours):
                # Nova's checks come before the acquire: if they failed after
                # it, Nova would not call this driver to release.
                migrate_data = check()
            self.os_acc.acquire(
                instance,
                profile,
                nova_tree.allocated(self.provider_tree, allocations),
                arq_types.Role.INCOMING,
            )
            try:
                targets = self._targets(instance, leaving, migrate_data)
            except exceptions.AcceleratorError:
                self._accelerators.attachments.release(
                    instance.uuid, arq_types.Role.INCOMING
                )
                raise
        # If this field is set, even to an empty value, Nova tells the
        # destination of a roll-back.
        migrate_data.target_mdevs = {
            **_field(migrate_data, 'target_mdevs'),
            **targets.mdevs,
        }
        migrate_data.pci_dev_map_src_dst = {
            **_field(migrate_data, 'pci_dev_map_src_dst'),
            **targets.pci,
        }
        return migrate_data

    def _targets(
        self,
        instance: objects.Instance,
        leaving: Sequence[arq_types.Arq],
        migrate_data: Any,
    ) -> replacement_devices.Targets:
        """The devices of this host that take the places of the source's.

        :raises AcceleratorError: a device of this host cannot take its place.
        """
        targets = replacement_devices.targets(
            leaving,
            self._held.arqs_of(instance.uuid, arq_types.Role.INCOMING),
        )
        types = _field(migrate_data, 'source_mdev_types')
        replacement_devices.check_facts(
            targets.pci,
            {
                address: replacement_devices.load_facts(types[address])
                for address in targets.pci.keys() & types.keys()
            },
            self._accelerators.attachments.migration_facts(
                instance.uuid, arq_types.Role.INCOMING
            ),
        )
        return targets

    def pre_live_migration(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        with _refused():
            self.os_acc.ready(instance, role=arq_types.Role.INCOMING)
        return super().pre_live_migration(context, instance, *args, **kwargs)

    def post_live_migration_at_source(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        try:
            super().post_live_migration_at_source(
                context, instance, *args, **kwargs
            )
        finally:
            self._accelerators.attachments.release(instance.uuid)

    def post_live_migration_at_destination(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        try:
            self._accelerators.attachments.move(
                instance.uuid, arq_types.Role.INCOMING, arq_types.Role.ACTIVE
            )
        except exceptions.AcceleratorError as error:
            # The guest runs. An error would make Nova call it broken.
            LOG.warning(
                'Its accelerators are not its active ones yet, '
                'trying again later: %s',
                error,
                instance=instance,
            )
        super().post_live_migration_at_destination(
            context, instance, *args, **kwargs
        )

    def rollback_live_migration_at_destination(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        try:
            super().rollback_live_migration_at_destination(
                context, instance, *args, **kwargs
            )
        finally:
            self._accelerators.attachments.release(
                instance.uuid, arq_types.Role.INCOMING
            )


@contextlib.contextmanager
def _refused() -> Iterator[None]:
    """Translate our faults to the one that makes Nova try another host."""
    try:
        yield
    except exceptions.AcceleratorError as error:
        LOG.error(
            'A server with accelerators cannot be migrated live: %s', error
        )
        raise exception.MigrationPreCheckError(
            reason=fault_translation.public(error)
        ) from error


@contextlib.contextmanager
def _without(migrate_data: Any, uuids: set[str]) -> Iterator[None]:
    """Hide devices from Nova, which would look for mediated targets."""
    types = _field(migrate_data, 'source_mdev_types')
    if not uuids & types.keys():
        yield
        return
    migrate_data.source_mdev_types = {
        uuid: mdev_type
        for uuid, mdev_type in types.items()
        if uuid not in uuids
    }
    try:
        yield
    finally:
        migrate_data.source_mdev_types = types


def _field(migrate_data: Any, name: str) -> dict[str, str]:
    """The value of a field, empty if it is not set."""
    return getattr(migrate_data, name) if name in migrate_data else {}
