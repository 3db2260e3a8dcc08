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

"""What Nova does around its driver, as far as accelerators can tell.

:class:`Driver` is our mixins over a libvirt driver that defines, starts and
destroys guests in the order in which Nova's does. :class:`Nova` is the rest:
the manager's order of calls and its handling of failures (nova-seams names
the lines), the claims in Placement, and the recovery at a start.
"""

from collections.abc import Callable
import contextlib
import types
from typing import Any
import uuid

from nova import context as nova_context
from nova import exception
from nova.compute import power_state
from nova.compute import provider_tree
from nova.compute import task_states
from nova.compute import vm_states
from nova.objects import migrate_data
from nova.virt.libvirt import config as vconfig
from nova.virt.libvirt import guest as libvirt_guest
from nova.virt.libvirt import host as libvirt_host

from nova_accel import exceptions
from nova_accel.db import accelerator_request
from nova_accel.model import device_profile
from nova_accel.virt import driver as accelerator_driver
from nova_accel.virt import live_migration
from nova_accel.virt import migration as migration_module
from nova_accel.virt import suspend

# Whether it is an administrator's would be asked of Nova's policy.
_CONTEXT = nova_context.RequestContext('user', 'project', is_admin=False)

Instance = types.SimpleNamespace


class LibvirtDriver:
    """What the mixins are mixed into."""

    supported_vgpu_types: tuple[str, ...] = ()

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

    def spawn(self, context: Any, instance: Instance, image_meta: Any,
              injected_files: Any, admin_password: Any, allocations: Any,
              network_info: Any = None, accel_info: Any = None) -> None:
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

    def rebuild(self, context: Any, instance: Instance,
                evacuate: bool = False) -> None:
        raise NotImplementedError

    def suspend(self, context: Any, instance: Instance) -> None:
        self._host.get_guest(instance).save_memory_state()

    def resume(self, context: Any, instance: Instance) -> None:
        self._host.get_guest(instance).launch()

    def migrate_disk_and_power_off(self, context: Any,
                                   instance: Instance) -> None:
        self.power_off(instance)

    def finish_migration(self, context: Any, migration: Any,
                         instance: Instance, disk_info: str,
                         network_info: Any, image_meta: Any,
                         resize_instance: bool, allocations: Any) -> None:
        self._create(instance)

    def confirm_migration(self, context: Any, migration: Any,
                          instance: Instance) -> None:
        if instance.host != migration.source_compute:
            self.cleanup(context, instance)

    def finish_revert_migration(self, context: Any,
                                instance: Instance) -> None:
        self._create(instance)

    def check_can_live_migrate_source(self, context: Any,
                                      instance: Instance) -> Any:
        return migrate_data.LibvirtLiveMigrateData()

    def check_source_migrate_data_at_dest(
            self, context: Any, instance: Instance, data: Any,
            migration: Any, limits: Any, allocations: Any) -> Any:
        return data

    def pre_live_migration(self, context: Any, instance: Instance,
                           data: Any) -> Any:
        return data

    def live_migration(self, context: Any, instance: Instance,
                       destination: Any, data: Any) -> None:
        domain = self._host.get_guest(instance)._domain
        xml = domain.XMLDesc(0)
        for source, target in data.target_mdevs.items():
            xml = xml.replace(source, target)
        domain.migrateToURI3(destination, {'destination_xml': xml}, 0)

    def post_live_migration_at_source(self, context: Any,
                                      instance: Instance) -> None:
        """Networks and volumes alone."""

    def post_live_migration_at_destination(self, context: Any,
                                           instance: Instance) -> None:
        guest = self._host.get_guest(instance)
        self._host.write_instance_config(guest.get_xml_desc())

    def rollback_live_migration_at_destination(
            self, context: Any, instance: Instance) -> None:
        self.destroy(context, instance)

    def _create(self, instance: Instance, **kwargs: Any) -> None:
        config = self._get_guest_config(
            instance, instance.get_network_info(), None, None, **kwargs)
        try:
            guest = libvirt_guest.Guest.create(config.to_xml(), self._host)
            guest.launch()
        except Exception:
            self._undefine(instance)
            raise

    def _power_off(self, instance: Instance) -> None:
        with contextlib.suppress(exception.InstanceNotFound):
            self._host.get_guest(instance).poweroff()

    def _undefine(self, instance: Instance) -> None:
        with contextlib.suppress(exception.InstanceNotFound):
            self._host.get_guest(instance).delete_configuration()

    def _get_guest_config(self, instance: Instance, network_info: Any,
                          image_meta: Any, disk_info: Any,
                          **kwargs: Any) -> vconfig.LibvirtConfigGuest:
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
        return guest


class Driver(migration_module.MigrationMixin,
             live_migration.LiveMigrationMixin,
             accelerator_driver.AcceleratorMixin,
             suspend.SuspendMixin, LibvirtDriver):
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
        tree = self.driver.provider_tree = provider_tree.ProviderTree()
        tree.new_root(self.name, self.node_uuid)
        self.driver._accelerators.update_provider_tree(tree)

    def runs(self, instance: Instance) -> bool:
        return self.driver.instance_exists(instance) and (
            self.host.get_guest(instance).get_power_state(self.host)
            == power_state.RUNNING)

    def run_periodic(self) -> None:
        """The worker's cycle, report and retry, and a whole comparison."""
        self.driver._accelerators._publisher._run()
        self.driver._accelerators.reconciler.repair()


def flavor(**extra_specs: str) -> types.SimpleNamespace:
    return types.SimpleNamespace(extra_specs=extra_specs)


class Nova:
    """Instances, migrations and what Placement has allocated to both.

    :param profiles: the resource class of each group of a device profile
    """

    def __init__(self, hosts: list[Host],
                 profiles: dict[str, tuple[str, ...]]) -> None:
        self.hosts = {host.name: host for host in hosts}
        self.instances: dict[str, Instance] = {}
        self.migrations: list[types.SimpleNamespace] = []
        #: consumer -> name of the host -> provider -> amounts
        self.allocations: dict[str, dict[str, dict[str, Any]]] = {}
        self._profiles = profiles

    def boot(self, host: Host, key: str, profile: str) -> Instance:
        instance = Instance(
            uuid=str(uuid.uuid4()), project_id='project', user_id='user',
            system_metadata={}, host=host.name,
            node=host.name, profile=profile,
            flavor=flavor(**{key: profile}), old_flavor=None,
            get_network_info=list,
            vm_state=vm_states.BUILDING, task_state=task_states.SPAWNING)
        self.instances[instance.uuid] = instance
        self._claim(instance, host)
        try:
            info = (self._bind(instance, host)
                    if key == device_profile.CYBORG_FLAVOR_KEY else None)
            self._spawn(instance, host, info)
        except Exception:
            # As ComputeManager._build_resources, then rescheduling ends.
            self._shut_down(host, instance)
            self._unbind(instance)
            instance.host = None
            self._end(instance, vm_states.ERROR)
            self.allocations.pop(instance.uuid)
        else:
            self._end(instance)
        return instance

    def delete(self, instance: Instance) -> None:
        if instance.host is None:
            self._unbind(instance)
            self._forget(instance)
            return
        instance.task_state = task_states.DELETING
        try:
            self.hosts[instance.host].driver.destroy(_CONTEXT, instance)
        except Exception:
            self._end(instance, vm_states.ERROR)
            return
        self._unbind(instance)
        self.allocations.pop(instance.uuid, None)
        for migration in self.migrations:
            if migration.instance_uuid != instance.uuid:
                continue
            if migration.status in ('finished', 'confirming'):
                # Nova confirms a resize before it deletes the server.
                self._confirm(migration, instance)
        self._forget(instance)

    def _forget(self, instance: Instance) -> None:
        """Nova deletes an instance's migrations with it, ended or not."""
        del self.instances[instance.uuid]
        for migration in self.migrations:
            if migration.instance_uuid == instance.uuid:
                migration.status = 'deleted'

    def hard_reboot(self, instance: Instance) -> None:
        instance.task_state = task_states.REBOOT_STARTED_HARD
        self._run(instance, self._driver(instance)._hard_reboot)

    def stop(self, instance: Instance) -> None:
        instance.task_state = task_states.POWERING_OFF
        self._driver(instance).power_off(instance)
        self._end(instance, vm_states.STOPPED)

    def start(self, instance: Instance) -> None:
        instance.task_state = task_states.POWERING_ON
        try:
            self._driver(instance).power_on(_CONTEXT, instance)
        except Exception:
            instance.task_state = None
        else:
            self._end(instance)

    def suspend(self, instance: Instance) -> None:
        instance.task_state = task_states.SUSPENDING
        self._run(instance, self._driver(instance).suspend,
                  vm_states.SUSPENDED)

    def resume(self, instance: Instance) -> None:
        instance.task_state = task_states.RESUMING
        self._run(instance, self._driver(instance).resume)

    def rebuild(self, instance: Instance) -> None:
        host = self.hosts[instance.host]
        instance.task_state = task_states.REBUILDING
        try:
            with contextlib.suppress(NotImplementedError):
                host.driver.rebuild(_CONTEXT, instance, evacuate=False)
            host.driver.power_off(instance)
            host.driver.destroy(_CONTEXT, instance)
            instance.task_state = task_states.REBUILD_SPAWNING
            self._spawn(instance, host)
        except Exception:
            self._end(instance, vm_states.ERROR)
        else:
            self._end(instance)

    def migrate(self, instance: Instance, destination: Host) -> None:
        """A resize to the same profile, or a cold migration."""
        source = self.hosts[instance.host]
        migration = self._begin_migration(
            instance, destination, 'migration', 'migrating')
        instance.task_state = task_states.RESIZE_MIGRATING
        try:
            source.driver.migrate_disk_and_power_off(_CONTEXT, instance)
        except Exception as error:
            self._end_migration(migration, instance, 'error')
            if not isinstance(error, exception.InstanceFaultRollback):
                instance.vm_state = vm_states.ERROR
            return
        instance.host = instance.node = destination.name
        instance.task_state = task_states.RESIZE_FINISH
        instance.old_flavor = instance.flavor
        migration.status = 'post-migrating'
        try:
            destination.driver.finish_migration(
                _CONTEXT, migration, instance, '[]', None, None, False,
                self._allocated(instance, destination))
        except Exception:
            migration.status = 'error'
            self.allocations.pop(migration.uuid)
            self._end(instance, vm_states.ERROR)
        else:
            migration.status = 'finished'
            self._end(instance, vm_states.RESIZED)

    def confirm(self, instance: Instance) -> None:
        self._confirm(self.migrations[-1], instance)

    def _confirm(self, migration: Any, instance: Instance) -> None:
        migration.status = 'confirming'
        source = self.hosts[migration.source_compute]
        try:
            source.driver.confirm_migration(_CONTEXT, migration, instance)
        except Exception:
            migration.status = 'error'
            self._end(instance, vm_states.ERROR)
        else:
            migration.status = 'confirmed'
            self._end(instance)
        self.allocations.pop(migration.uuid)
        instance.old_flavor = None

    def revert(self, instance: Instance) -> None:
        migration = self.migrations[-1]
        destination = self.hosts[migration.dest_compute]
        source = self.hosts[migration.source_compute]
        migration.status = 'reverting'
        instance.task_state = task_states.RESIZE_REVERTING
        try:
            destination.driver.destroy(_CONTEXT, instance)
            instance.host = instance.node = source.name
            self._revert_allocations(migration)
            instance.old_flavor = None
            source.driver.finish_revert_migration(_CONTEXT, instance)
        except Exception:
            migration.status = 'error'
            self._end(instance, vm_states.ERROR)
        else:
            migration.status = 'reverted'
            self._end(instance)

    def live_migrate(self, instance: Instance, destination: Host) -> None:
        source = self.hosts[instance.host]
        migration = self._begin_migration(
            instance, destination, 'live-migration', 'accepted')
        instance.task_state = task_states.MIGRATING
        try:
            data = destination.driver.check_source_migrate_data_at_dest(
                None, instance, source.driver.check_can_live_migrate_source(
                    None, instance),
                migration, None, self._allocated(instance, destination))
        except Exception:
            self._end_migration(migration, instance, 'error')
            return
        migration.status = 'preparing'
        try:
            destination.driver.pre_live_migration(_CONTEXT, instance, data)
            migration.status = 'running'
            source.driver.live_migration(
                None, instance, destination.connection, data)
        except Exception:
            with contextlib.suppress(Exception):
                destination.driver.rollback_live_migration_at_destination(
                    None, instance)
            self._end_migration(migration, instance, 'failed')
            return
        try:
            source.driver.post_live_migration_at_source(_CONTEXT, instance)
            source.driver.cleanup(_CONTEXT, instance)
            destination.driver.post_live_migration_at_destination(
                None, instance)
        except Exception:
            # Where it is Nova knows; the rest it leaves.
            instance.vm_state = vm_states.ERROR
        instance.host = instance.node = destination.name
        instance.task_state = None
        migration.status = 'completed'
        self.allocations.pop(migration.uuid)

    def _begin_migration(self, instance: Instance, destination: Host,
                         migration_type: str, status: str) -> Any:
        """What the instance has becomes the migration's, as Nova does it."""
        migration = types.SimpleNamespace(
            uuid=str(uuid.uuid4()), instance_uuid=instance.uuid,
            source_compute=instance.host, dest_compute=destination.name,
            status=status, migration_type=migration_type)
        self.migrations.append(migration)
        self.allocations[migration.uuid] = self.allocations.pop(
            instance.uuid)
        self._claim(instance, destination)
        return migration

    def _end_migration(self, migration: Any, instance: Instance,
                       status: str) -> None:
        """The instance is where it was."""
        migration.status = status
        self._revert_allocations(migration)
        instance.task_state = None

    def evacuate(self, instance: Instance, destination: Host) -> None:
        source = self.hosts[instance.host]
        migration = types.SimpleNamespace(
            uuid=str(uuid.uuid4()), instance_uuid=instance.uuid,
            source_compute=source.name, dest_compute=destination.name,
            status='accepted', migration_type='evacuation',
            source_is_back=False)
        self.migrations.append(migration)
        self._claim(instance, destination)
        instance.task_state = task_states.REBUILDING
        try:
            with contextlib.suppress(NotImplementedError):
                destination.driver.rebuild(_CONTEXT, instance, evacuate=True)
            self._spawn(instance, destination)
        except Exception:
            migration.status = 'failed'
            del self.allocations[instance.uuid][destination.name]
            self._end(instance, vm_states.ERROR)
        else:
            migration.status = 'done'
            instance.host = instance.node = destination.name
            self._end(instance)

    def recover(self, host: Host) -> None:
        """What nova-compute does when it has started on a host."""
        for migration in self.migrations:
            if (migration.migration_type == 'evacuation'
                    and migration.source_compute == host.name
                    and migration.status in ('accepted', 'done')):
                self._destroy_evacuated(migration, host)
        for instance in list(self.instances.values()):
            if instance.host == host.name:
                self._init_instance(instance, host)

    def _destroy_evacuated(self, migration: Any, host: Host) -> None:
        instance = self.instances.get(migration.instance_uuid)
        migration.source_is_back = True
        if instance is None or not host.driver.instance_exists(instance):
            return
        host.driver.destroy(_CONTEXT, instance)
        self.allocations[instance.uuid].pop(host.name, None)
        migration.status = 'completed'

    def _init_instance(self, instance: Instance, host: Host) -> None:
        match instance.task_state:
            case (task_states.SPAWNING | task_states.REBUILDING
                  | task_states.REBUILD_SPAWNING):
                self._end(instance, vm_states.ERROR)
            case task_states.DELETING:
                self.delete(instance)
            case task_states.REBOOT_STARTED_HARD:
                if host.runs(instance):
                    self._end(instance)
                else:
                    self.hard_reboot(instance)
            case task_states.POWERING_ON:
                self.start(instance)
            case task_states.RESIZE_MIGRATING:
                with contextlib.suppress(Exception):
                    host.driver.finish_revert_migration(_CONTEXT, instance)
                # The migration is left as it is.
                instance.task_state = None
            case task_states.MIGRATING:
                for migration in self.migrations:
                    if migration.status == 'running':
                        migration.status = 'error'
                instance.task_state = None

    def _driver(self, instance: Instance) -> Driver:
        return self.hosts[instance.host].driver

    def _run(self, instance: Instance, function: Callable[..., None],
             vm_state: str = vm_states.ACTIVE) -> None:
        try:
            function(_CONTEXT, instance)
        except exception.InstanceFaultRollback:
            instance.task_state = None
        except Exception:
            self._end(instance, vm_states.ERROR)
        else:
            self._end(instance, vm_state)

    def _end(self, instance: Instance,
             vm_state: str = vm_states.ACTIVE) -> None:
        instance.vm_state, instance.task_state = vm_state, None

    def _spawn(self, instance: Instance, host: Host,
               accel_info: Any = None) -> None:
        host.driver.spawn(
            _CONTEXT, instance, None, [], None,
            self._allocated(instance, host), accel_info=accel_info)

    def _shut_down(self, host: Host, instance: Instance) -> None:
        with contextlib.suppress(Exception):
            host.driver.destroy(_CONTEXT, instance)

    def _bind(self, instance: Instance, host: Host) -> list[Any]:
        """As Nova's Cyborg client does; ``accel_info``."""
        arqs = accelerator_request.create(
            instance.profile, instance.project_id)
        providers = self.allocations[instance.uuid][host.name]
        accelerator_request.bind({
            found['uuid']: {'hostname': host.name,
                            'instance_uuid': instance.uuid,
                            'device_rp_uuid': rp_uuid}
            for found, rp_uuid in zip(arqs, providers, strict=True)})
        return [{'uuid': found['uuid'], 'hostname': host.name,
                 'device_rp_uuid': rp_uuid}
                for found, rp_uuid in zip(arqs, providers, strict=True)]

    def _unbind(self, instance: Instance) -> None:
        with contextlib.suppress(exceptions.ServiceUnavailable):
            accelerator_request.delete_by_instance(instance.uuid)

    def _claim(self, instance: Instance, host: Host) -> None:
        """Allocate units of providers of the host that have some free."""
        used = [rp_uuid for hosts in self.allocations.values()
                for found in hosts.values() for rp_uuid in found]
        claimed: dict[str, Any] = {}
        layout = host.driver._accelerators._publisher.view.layout
        for resource_class in self._profiles[instance.profile]:
            rp_uuid = next(
                provider.uuid for provider in layout.providers
                if provider.totals.get(resource_class, 0)
                > used.count(provider.uuid))
            claimed[rp_uuid] = {'resources': {resource_class: 1}}
        self.allocations.setdefault(
            instance.uuid, {})[host.name] = claimed

    def _allocated(self, instance: Instance, host: Host) -> dict[str, Any]:
        """As Nova has it: of all hosts."""
        return {rp_uuid: allocation
                for found in self.allocations[instance.uuid].values()
                for rp_uuid, allocation in found.items()}

    def _revert_allocations(self, migration: Any) -> None:
        self.allocations[migration.instance_uuid] = self.allocations.pop(
            migration.uuid)
