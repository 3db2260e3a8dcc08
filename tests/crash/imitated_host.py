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

"""A compute host whose libvirt driver has our mixins.

:class:`Driver` is these over a libvirt driver that defines, starts and
destroys guests in the order in which Nova's does.
"""

import contextlib
import types
from typing import Any
from typing import ClassVar

from nova import exception
from nova.compute import power_state
from nova.compute import provider_tree
from nova.objects import migrate_data
from nova.virt.libvirt import config as vconfig
from nova.virt.libvirt import guest as libvirt_guest
from nova.virt.libvirt import host as libvirt_host

from nova_accel.virt import cold_migration
from nova_accel.virt import driver as accelerator_driver
from nova_accel.virt import guest_partition
from nova_accel.virt import live_migration
from nova_accel.virt import suspend
from rig import compute_parts

Instance = types.SimpleNamespace


class LibvirtDriver:
    """What the mixins are mixed into."""

    supported_vgpu_types: tuple[str, ...] = ()
    capabilities: ClassVar[dict[str, bool]] = {}

    def __init__(self, host: libvirt_host.Host) -> None:
        self._host = host

    def init_host(self, host: str) -> None:
        """Nothing of Nova's is needed."""

    def instance_exists(self, instance: Instance) -> bool:
        try:
            self._host.get_guest(instance)
        except exception.InstanceNotFound:
            return False
        return True

    def spawn(
        self,
        context: Any,
        instance: Instance,
        image_meta: Any,
        injected_files: Any,
        admin_password: Any,
        allocations: Any,
        network_info: Any = None,
        accel_info: Any = None,
    ) -> None:
        self._create(instance, accel_info=accel_info)

    def destroy(self, context: Any, instance: Instance) -> None:
        self._power_off(instance)
        self.cleanup(context, instance)

    def remove(self, instance: Instance) -> None:
        """What an operator does, without Nova."""
        self._power_off(instance)
        self._undefine(instance)

    def cleanup(self, context: Any, instance: Instance) -> None:
        self._undefine(instance)

    def power_off(self, instance: Instance) -> None:
        self._host.get_guest(instance).poweroff()

    def power_on(self, context: Any, instance: Instance) -> None:
        self._hard_reboot(context, instance)

    def _hard_reboot(self, context: Any, instance: Instance) -> None:
        self.destroy(context, instance)
        self._create(instance)

    def rebuild(
        self, context: Any, instance: Instance, evacuate: bool = False
    ) -> None:
        raise NotImplementedError

    def suspend(self, context: Any, instance: Instance) -> None:
        self._host.get_guest(instance).save_memory_state()

    def resume(self, context: Any, instance: Instance) -> None:
        # With what was saved; Nova gives the same XML to libvirt again.
        xml = self._host.get_guest(instance).get_xml_desc(dump_inactive=True)
        self._create_guest(context, xml, instance)

    def snapshot(self, context: Any, instance: Instance) -> None:
        """A cold one: the guest is saved while its disk is read."""
        guest = self._host.get_guest(instance)
        before = guest.get_power_state(self._host)
        if self._needs_suspend_resume_for_snapshot(False, before):
            self.suspend(context, instance)
        self._resume_guest_after_snapshot(
            context, False, before, instance, guest
        )

    def _needs_suspend_resume_for_snapshot(
        self, live_snapshot: bool, current_power_state: int
    ) -> bool:
        return not live_snapshot and current_power_state == power_state.RUNNING

    def _resume_guest_after_snapshot(
        self,
        context: Any,
        live_snapshot: bool,
        original_power_state: int,
        instance: Instance,
        guest: libvirt_guest.Guest,
    ) -> None:
        if self._needs_suspend_resume_for_snapshot(
            live_snapshot, original_power_state
        ):
            guest.launch()

    def rescue(self, context: Any, instance: Instance) -> None:
        # In a file on the host.
        instance.unrescue_xml = self._host.get_guest(instance).get_xml_desc()
        config = self._get_guest_config(
            instance, instance.get_network_info(), None, None
        )
        self._power_off(instance)
        self._create_guest(context, config.to_xml(), instance)

    def unrescue(self, context: Any, instance: Instance) -> None:
        self._power_off(instance)
        self._create_guest(context, instance.unrescue_xml, instance)

    def migrate_disk_and_power_off(
        self, context: Any, instance: Instance
    ) -> None:
        self.power_off(instance)

    def finish_migration(
        self,
        context: Any,
        migration: Any,
        instance: Instance,
        disk_info: str,
        network_info: Any,
        image_meta: Any,
        resize_instance: bool,
        allocations: Any,
    ) -> None:
        self._create(instance)

    def confirm_migration(
        self, context: Any, migration: Any, instance: Instance
    ) -> None:
        if instance.host != migration.source_compute:
            self.cleanup(context, instance)

    def finish_revert_migration(
        self, context: Any, instance: Instance
    ) -> None:
        self._create(instance)

    def check_can_live_migrate_source(
        self, context: Any, instance: Instance
    ) -> Any:
        return migrate_data.LibvirtLiveMigrateData()

    def check_source_migrate_data_at_dest(
        self,
        context: Any,
        instance: Instance,
        data: Any,
        migration: Any,
        limits: Any,
        allocations: Any,
    ) -> Any:
        return data

    def pre_live_migration(
        self, context: Any, instance: Instance, data: Any
    ) -> Any:
        return data

    def live_migration(
        self, context: Any, instance: Instance, destination: Any, data: Any
    ) -> None:
        domain = self._host.get_guest(instance)._domain
        xml = domain.XMLDesc(0)
        for source, target in data.target_mdevs.items():
            xml = xml.replace(source, target)
        domain.migrateToURI3(destination, {'destination_xml': xml}, 0)

    def post_live_migration_at_source(
        self, context: Any, instance: Instance
    ) -> None:
        """Networks and volumes alone."""

    def post_live_migration_at_destination(
        self, context: Any, instance: Instance
    ) -> None:
        guest = self._host.get_guest(instance)
        self._host.write_instance_config(guest.get_xml_desc())

    def rollback_live_migration_at_destination(
        self, context: Any, instance: Instance
    ) -> None:
        self.destroy(context, instance)

    def _create(self, instance: Instance, **kwargs: Any) -> None:
        config = self._get_guest_config(
            instance, instance.get_network_info(), None, None, **kwargs
        )
        try:
            self._create_guest(None, config.to_xml(), instance)
        except Exception:
            self._undefine(instance)
            raise

    def _create_guest(
        self,
        context: Any,
        xml: str,
        instance: Instance,
        power_on: bool = True,
        pause: bool = False,
        post_xml_callback: Any = None,
    ) -> libvirt_guest.Guest:
        guest = libvirt_guest.Guest.create(xml, self._host)
        guest.launch(pause=pause)
        return guest

    def _power_off(self, instance: Instance) -> None:
        with contextlib.suppress(exception.InstanceNotFound):
            self._host.get_guest(instance).poweroff()

    def _undefine(self, instance: Instance) -> None:
        with contextlib.suppress(exception.InstanceNotFound):
            self._host.get_guest(instance).delete_configuration()

    def _get_guest_config(
        self,
        instance: Instance,
        network_info: Any,
        image_meta: Any,
        disk_info: Any,
        **kwargs: Any,
    ) -> vconfig.LibvirtConfigGuest:
        guest = vconfig.LibvirtConfigGuest()
        guest.virt_type = 'kvm'
        guest.name = f'instance-{instance.uuid}'
        guest.uuid = instance.uuid
        guest.memory = 65536
        guest.vcpus = 1
        guest.os_type = 'hvm'
        # Nova's mark: what a guest without it has is not ours to hand out.
        mark = vconfig.LibvirtConfigGuestMetaNovaInstance()
        mark.package = 'imitation'
        guest.metadata.append(mark)
        # A guest has some devices without us.
        guest.add_device(vconfig.LibvirtConfigMemoryBalloon())
        return guest


class Driver(
    guest_partition.GuestPartitionMixin,
    cold_migration.MigrationMixin,
    live_migration.LiveMigrationMixin,
    accelerator_driver.AcceleratorMixin,
    suspend.SuspendMixin,
    LibvirtDriver,
):
    """The product's, over the above."""


class Host:
    """A compute host; :meth:`start` is what starts its nova-compute."""

    driver: Driver

    def __init__(self, name: str, node_uuid: str, connection: Any) -> None:
        self.name = name
        self.node_uuid = node_uuid
        self.connection = connection
        self.host = libvirt_host.Host('qemu:///system')
        self.host.get_connection = lambda: connection
        self.host.get_node_uuid = lambda: node_uuid

    def start(self) -> None:
        self.driver = Driver(self.host)
        self.driver.init_host(self.name)
        self._reconciler = compute_parts.reconciler(
            self.driver._accelerators, self.host
        )
        tree = self.driver.provider_tree = provider_tree.ProviderTree()
        tree.new_root(self.name, self.node_uuid)
        self.publish()

    def publish(self) -> None:
        """What Nova's resource tracker does periodically."""
        accelerators = self.driver._accelerators
        accelerators.cycle.start()
        accelerators.providers.update(self.driver.provider_tree, None)

    def reserved(self, rp_uuid: str, resource_class: str) -> int:
        """What no one gets of a provider, when it was published last."""
        tree = self.driver.provider_tree
        if not tree.exists(rp_uuid):
            return 0
        return int(
            tree.data(rp_uuid)
            .inventory.get(resource_class, {})
            .get('reserved', 0)
        )

    def runs(self, instance: Instance) -> bool:
        return self.driver.instance_exists(instance) and (
            self.host.get_guest(instance).get_power_state(self.host)
            == power_state.RUNNING
        )

    def run_periodic(self) -> None:
        """The worker's cycle, report and retry, and a whole comparison."""
        self.driver._accelerators.cycle.run()
        self._reconciler.repair()
