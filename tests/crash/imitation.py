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

:class:`Nova` has the manager's order of calls and its handling of failures,
the claims in Placement, and the recovery at a start.
"""

from collections.abc import Callable
from collections.abc import Mapping
import contextlib
import types
from typing import Any
import uuid

from nova import context as nova_context
from nova import exception
from nova.compute import task_states
from nova.compute import vm_states

from crash import imitated_host
from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.model.providers import provider_layout
from rig import compute_parts

# Whether it is an administrator's would be asked of Nova's policy.
_CONTEXT = nova_context.RequestContext('user', 'project', is_admin=False)

Driver = imitated_host.Driver
Host = imitated_host.Host
Instance = imitated_host.Instance


#: The shapes of the clouds of :mod:`crash.shapes_cloud`.
SHAPES = ('vgpu:GRID M60-0B', 'whole', 'mig:3g.40gb')


class Flavor(types.SimpleNamespace):
    """A copy of a flavor that Nova keeps with an instance."""

    def obj_clone(self) -> 'Flavor':
        return Flavor(**vars(self))


def flavor(**extra_specs: str) -> Flavor:
    return Flavor(extra_specs=extra_specs)


def _profile(of: Flavor) -> str:
    """The name of the device profile, empty if the flavor names none."""
    return ''.join(of.extra_specs.values())


def _is_compat(instance: Instance) -> bool:
    return device_profile.CYBORG_FLAVOR_KEY in instance.flavor.extra_specs


def group_of(resource_class: str) -> dict[str, str]:
    """The group of a device profile that asks for one unit."""
    group = {f'resources:{resource_class}': '1'}
    for shape in SHAPES:
        if resource_class == naming.shape_class(shape):
            group['accel:shape'] = shape
    return group


def units_of(resources: Mapping[str, int]) -> int:
    """How many units there are in an allocation."""
    return sum(
        amount
        for resource_class, amount in resources.items()
        if resource_class != naming.CARD_SHARE
    )


class Nova:
    """Instances, migrations and what Placement has allocated to both.

    :param profiles: the resource class of each group of a device profile
    """

    def __init__(
        self, hosts: list[Host], profiles: dict[str, tuple[str, ...]]
    ) -> None:
        self.hosts = {host.name: host for host in hosts}
        self.instances: dict[str, Instance] = {}
        self.migrations: list[types.SimpleNamespace] = []
        #: consumer -> name of the host -> provider -> amounts
        self.allocations: dict[str, dict[str, dict[str, Any]]] = {}
        #: Why changes of what servers hold were refused.
        self.refusals: list[Exception] = []
        self._profiles = profiles

    def units(self, instance: Instance) -> int:
        """How many devices its flavor asks for."""
        return len(self._profiles[_profile(instance.flavor)])

    def boot(
        self,
        host: Host,
        key: str,
        profile: str,
        image_properties: Mapping[str, str] = types.MappingProxyType({}),
    ) -> Instance:
        instance = Instance(
            uuid=str(uuid.uuid4()),
            project_id='project',
            user_id='user',
            system_metadata={
                f'image_{name}': value
                for name, value in image_properties.items()
            },
            host=host.name,
            node=host.name,
            flavor=flavor(**({key: profile} if profile else {})),
            old_flavor=None,
            numa_topology=None,
            new_flavor=None,
            get_network_info=list,
            vm_state=vm_states.BUILDING,
            task_state=task_states.SPAWNING,
            save=lambda: None,
        )
        self.instances[instance.uuid] = instance
        self._claim(instance, host)
        try:
            self._spawn(instance, host, self._accel_info(instance, host))
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
        self._run(
            instance, self._driver(instance).suspend, vm_states.SUSPENDED
        )

    def resume(self, instance: Instance) -> None:
        instance.task_state = task_states.RESUMING
        self._run(instance, self._driver(instance).resume)

    def set_profile(self, instance: Instance, profile: str) -> None:
        """:param profile: empty for none"""
        self._change(
            instance,
            lambda: self._driver(instance)._set(
                instance,
                profile or None,
                list(map(group_of, self._profiles[profile])),
            ),
        )

    def replace(self, instance: Instance) -> None:
        """All that it holds."""
        driver = self._driver(instance)
        held = driver._held.arqs_of(instance.uuid)
        if held:
            self._change(instance, lambda: driver._replace(instance, held))

    def _change(self, instance: Instance, change: Callable[[], None]) -> None:
        instance.task_state = task_states.RESIZE_PREP
        try:
            change()
        except Exception as fault:
            self.refusals.append(fault)
        instance.task_state = None

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
        except exception.ComputeResourcesUnavailable:
            # As a claim that was refused before anything was done.
            self._end(instance, instance.vm_state)
        except Exception:
            self._end(instance, vm_states.ERROR)
        else:
            self._end(instance)

    def snapshot(self, instance: Instance) -> None:
        instance.task_state = task_states.IMAGE_SNAPSHOT
        with contextlib.suppress(Exception):
            self._driver(instance).snapshot(_CONTEXT, instance)
        self._end_snapshot(instance)

    def _end_snapshot(self, instance: Instance) -> None:
        """However it went, and what Nova sees in its next comparison."""
        runs = self.hosts[instance.host].runs(instance)
        self._end(instance, vm_states.ACTIVE if runs else vm_states.STOPPED)

    def rescue(self, instance: Instance) -> None:
        instance.task_state = task_states.RESCUING
        try:
            driver = self._driver(instance)
            driver.power_off(instance)
            driver.rescue(_CONTEXT, instance)
        except Exception:
            self._end(instance, vm_states.ERROR)
        else:
            self._end(instance, vm_states.RESCUED)

    def unrescue(self, instance: Instance) -> None:
        instance.task_state = task_states.UNRESCUING
        self._run(instance, self._driver(instance).unrescue)

    def shelve(self, instance: Instance) -> None:
        """And offload it at once, as Nova does by default."""
        driver = self._driver(instance)
        instance.task_state = task_states.SHELVING
        try:
            driver.power_off(instance)
            driver.snapshot(_CONTEXT, instance)
        except Exception:
            self._end_snapshot(instance)
            return
        instance.vm_state = vm_states.SHELVED
        instance.task_state = task_states.SHELVING_OFFLOADING
        try:
            driver.power_off(instance)
            driver.destroy(_CONTEXT, instance)
            if _is_compat(instance):
                client_arqs.delete_by_instance(instance.uuid)
        except Exception:
            instance.task_state = None
        else:
            self.allocations.pop(instance.uuid)
            instance.host = instance.node = None
            self._end(instance, vm_states.SHELVED_OFFLOADED)

    def unshelve(self, instance: Instance, host: Host) -> None:
        instance.task_state = task_states.UNSHELVING
        self._claim(instance, host)
        try:
            info = self._accel_info(instance, host)
            instance.task_state = task_states.SPAWNING
            instance.host = instance.node = host.name
            self._spawn(instance, host, info)
        except Exception:
            # What is bound for Cyborg's key Nova leaves.
            self.allocations.pop(instance.uuid)
            instance.host = instance.node = None
            self._end(instance, vm_states.SHELVED_OFFLOADED)
        else:
            self._end(instance)

    def migrate(
        self, instance: Instance, destination: Host, profile: str | None = None
    ) -> None:
        """A resize, or a cold migration.

        :param profile: that of the new flavor; by default that of the old
        """
        source = self.hosts[instance.host]
        wanted = (
            instance.flavor
            if profile is None
            else flavor(**dict.fromkeys(instance.flavor.extra_specs, profile))
        )
        migration = self._begin_migration(
            instance, destination, 'migration', 'migrating', wanted
        )
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
        instance.old_flavor, instance.flavor = instance.flavor, wanted
        migration.status = 'post-migrating'
        try:
            destination.driver.finish_migration(
                _CONTEXT,
                migration,
                instance,
                '[]',
                None,
                None,
                False,
                self._allocated(instance, destination),
            )
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
            instance.flavor, instance.old_flavor = instance.old_flavor, None
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
            instance, destination, 'live-migration', 'accepted'
        )
        instance.task_state = task_states.MIGRATING
        try:
            data = destination.driver.check_source_migrate_data_at_dest(
                None,
                instance,
                source.driver.check_can_live_migrate_source(None, instance),
                migration,
                None,
                self._allocated(instance, destination),
            )
        except Exception:
            self._end_migration(migration, instance, 'error')
            return
        migration.status = 'preparing'
        try:
            destination.driver.pre_live_migration(_CONTEXT, instance, data)
            migration.status = 'running'
            source.driver.live_migration(
                None, instance, destination.connection, data
            )
        except Exception:
            with contextlib.suppress(Exception):
                destination.driver.rollback_live_migration_at_destination(
                    None, instance
                )
            self._end_migration(migration, instance, 'failed')
            return
        try:
            source.driver.post_live_migration_at_source(_CONTEXT, instance)
            source.driver.cleanup(_CONTEXT, instance)
            destination.driver.post_live_migration_at_destination(
                None, instance
            )
        except Exception:
            # Where it is Nova knows; the rest it leaves.
            instance.vm_state = vm_states.ERROR
        instance.host = instance.node = destination.name
        instance.task_state = None
        migration.status = 'completed'
        self.allocations.pop(migration.uuid)

    def _begin_migration(
        self,
        instance: Instance,
        destination: Host,
        migration_type: str,
        status: str,
        wanted: Flavor | None = None,
    ) -> Any:
        """What the instance has becomes the migration's, as Nova does it."""
        migration = types.SimpleNamespace(
            uuid=str(uuid.uuid4()),
            instance_uuid=instance.uuid,
            source_compute=instance.host,
            dest_compute=destination.name,
            status=status,
            migration_type=migration_type,
            deleted=False,
        )
        self.migrations.append(migration)
        self.allocations[migration.uuid] = self.allocations.pop(instance.uuid)
        self._claim(instance, destination, wanted)
        return migration

    def _end_migration(
        self, migration: Any, instance: Instance, status: str
    ) -> None:
        """The instance is where it was."""
        migration.status = status
        self._revert_allocations(migration)
        instance.task_state = None

    def evacuate(self, instance: Instance, destination: Host) -> None:
        source = self.hosts[instance.host]
        migration = types.SimpleNamespace(
            uuid=str(uuid.uuid4()),
            instance_uuid=instance.uuid,
            source_compute=source.name,
            dest_compute=destination.name,
            status='accepted',
            migration_type='evacuation',
            deleted=False,
            source_is_back=False,
        )
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
            if (
                migration.migration_type == 'evacuation'
                and migration.source_compute == host.name
                and migration.status in ('accepted', 'done')
            ):
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
            case (
                task_states.SPAWNING
                | task_states.REBUILDING
                | task_states.REBUILD_SPAWNING
            ):
                self._end(instance, vm_states.ERROR)
            case task_states.IMAGE_SNAPSHOT:
                self._end_snapshot(instance)
            case task_states.RESIZE_PREP:
                instance.task_state = None
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
                self._abort_live_migrations()
                instance.task_state = None

    def _abort_live_migrations(self) -> None:
        for migration in self.migrations:
            if migration.status == 'running':
                migration.status = 'error'

    def _driver(self, instance: Instance) -> Driver:
        return self.hosts[instance.host].driver

    def _run(
        self,
        instance: Instance,
        function: Callable[..., None],
        vm_state: str = vm_states.ACTIVE,
    ) -> None:
        try:
            function(_CONTEXT, instance)
        except exception.InstanceFaultRollback:
            instance.task_state = None
        except Exception:
            self._end(instance, vm_states.ERROR)
        else:
            self._end(instance, vm_state)

    def _end(
        self, instance: Instance, vm_state: str = vm_states.ACTIVE
    ) -> None:
        instance.vm_state, instance.task_state = vm_state, None

    def _spawn(
        self, instance: Instance, host: Host, accel_info: Any = None
    ) -> None:
        host.driver.spawn(
            _CONTEXT,
            instance,
            None,
            [],
            None,
            self._allocated(instance, host),
            accel_info=accel_info,
        )

    def _shut_down(self, host: Host, instance: Instance) -> None:
        with contextlib.suppress(Exception):
            host.driver.destroy(_CONTEXT, instance)

    def _accel_info(self, instance: Instance, host: Host) -> Any:
        """What Nova's Cyborg client has bound, if the flavor has its key."""
        return self._bind(instance, host) if _is_compat(instance) else None

    def _bind(self, instance: Instance, host: Host) -> list[Any]:
        arqs = client_arqs.create(
            _profile(instance.flavor), instance.project_id
        )
        providers = self.allocations[instance.uuid][host.name]
        client_arqs.bind(
            {
                found['uuid']: {
                    'hostname': host.name,
                    'instance_uuid': instance.uuid,
                    'device_rp_uuid': rp_uuid,
                }
                for found, rp_uuid in zip(arqs, providers, strict=True)
            }
        )
        return [
            {
                'uuid': found['uuid'],
                'hostname': host.name,
                'device_rp_uuid': rp_uuid,
            }
            for found, rp_uuid in zip(arqs, providers, strict=True)
        ]

    def _unbind(self, instance: Instance) -> None:
        with contextlib.suppress(exceptions.ServiceUnavailable):
            client_arqs.delete_by_instance(instance.uuid)

    def _claim(
        self,
        instance: Instance,
        host: Host,
        wanted: Flavor | None = None,
    ) -> None:
        """Allocate units of providers of the host that have some free.

        :param wanted: the flavor; by default the instance's own
        """
        used = [
            rp_uuid
            for hosts in self.allocations.values()
            for found in hosts.values()
            for rp_uuid, allocation in found.items()
            for _unit in range(units_of(allocation['resources']))
        ]
        claimed: dict[str, Any] = {}
        layout = compute_parts.current_state(
            host.driver._accelerators
        ).view.layout
        profile = _profile(wanted or instance.flavor)
        for resource_class in self._profiles[profile]:
            rp_uuid = next(
                provider.uuid
                for provider in layout.providers
                if provider.totals.get(resource_class, 0)
                - host.reserved(provider.uuid, resource_class)
                > used.count(provider.uuid)
            )
            claimed[rp_uuid] = {'resources': {resource_class: 1}}
            place = provider_layout.Place(rp_uuid, resource_class)
            if place in layout.shares:
                claimed[rp_uuid]['resources'][naming.CARD_SHARE] = (
                    layout.shares[place]
                )
        self.allocations.setdefault(instance.uuid, {})[host.name] = claimed

    def claim_more(self, uuid: str, resources: dict[str, Any]) -> None:
        """What a host claims for one of its instances."""
        host = self.instances[uuid].host
        providers = self.allocations.setdefault(uuid, {}).setdefault(host, {})
        for rp_uuid, wanted in resources.items():
            found = providers.setdefault(rp_uuid, {'resources': {}})
            for name, amount in wanted['resources'].items():
                found['resources'][name] = (
                    found['resources'].get(name, 0) + amount
                )

    def _allocated(self, instance: Instance, host: Host) -> dict[str, Any]:
        """As Nova has it: of all hosts."""
        return {
            rp_uuid: allocation
            for found in self.allocations[instance.uuid].values()
            for rp_uuid, allocation in found.items()
        }

    def _revert_allocations(self, migration: Any) -> None:
        self.allocations[migration.instance_uuid] = self.allocations.pop(
            migration.uuid
        )
