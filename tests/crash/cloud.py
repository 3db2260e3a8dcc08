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

"""Two hosts, the accelerator API and its database, and what must hold."""

from collections.abc import Iterator
import logging
import types
from typing import Any

import fixtures
from lxml import etree
from nova import conf as nova_conf
from nova.compute import vm_states
from nova.tests import fixtures as nova_fixtures
from nova.tests.fixtures import conf as conf_fixture
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt.libvirt import utils as libvirt_utils
import sqlalchemy as sa

from crash import effects
from crash import imitated_host
from crash import imitation
from nova_accel.db import device_profile
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import arq_types
from nova_accel.model import nova_server
from nova_accel.testing import accelerator_api
from nova_accel.testing import devices
from nova_accel.testing import fake_fpga
from nova_accel.testing import hostdev
from nova_accel.testing import libvirt
from nova_accel.testing import libvirt_guest
from nova_accel.virt.holding import attach_journal
from rig import quick_database

CONF = nova_conf.CONF

_NODES = {
    'host1': '3f2c7b1e-0b5a-4d59-9d3b-3a1b8f0a5c11',
    'host2': '3f2c7b1e-0b5a-4d59-9d3b-3a1b8f0a5c12',
}


def _arrive(domain: Any, destination: Any, params: Any, flags: int) -> None:
    """The guest runs there, where it is not defined, and no more here."""
    source = domain._connection
    destination.createXML(params['destination_xml'], 0)
    source._mark_not_running(domain)
    source._vms.pop(domain.name(), None)


def _identity(held: arq_types.Arq) -> str:
    """The device as a guest has it."""
    return str(
        held.handle.uuid if held.handle.mdev_type else held.handle.address
    )


class Cloud(fixtures.Fixture):
    """Started, with the device profile ``both``: an FPGA and a vGPU.

    ``fpga`` and ``vgpu`` have one of the two.

    :cvar device_spec: of both hosts
    :cvar vgpu: the resource class of a vGPU
    :ivar effects: of both hosts
    :ivar nova: with what is done to instances
    """

    device_spec: tuple[str, ...] = devices.DEVICE_SPEC
    vgpu = 'VGPU'

    def _setUp(self) -> None:
        # Other handlers would show what is to be expected, at great length.
        self.useFixture(fixtures.FakeLogger())
        self._log = self.useFixture(
            fixtures.FakeLogger('nova_accel', level=logging.ERROR)
        )
        self.useFixture(conf_fixture.ConfFixture(CONF))
        self.useFixture(quick_database.QuickDatabases())
        self._api = self.useFixture(accelerator_api.AcceleratorApi())
        for name, value in (
            (
                'nova_accel.client.accelerator_api.adapter_from_conf',
                lambda: self._api.adapter,
            ),
            # A worker's cycle is a step like any other.
            (
                'nova_accel.nova_releases.spawn',
                lambda work: work(),
            ),
            ('nova.tests.fixtures.libvirt.Domain.migrateToURI3', _arrive),
            (
                'nova.objects.InstanceList',
                types.SimpleNamespace(
                    get_by_host=self._instances_on,
                    get_by_filters=self._instances,
                ),
            ),
            (
                'nova.objects.MigrationList',
                types.SimpleNamespace(get_by_filters=self._migrations),
            ),
            # No one calls a host.
            (
                'nova.rpc.get_server',
                lambda target, endpoints: types.SimpleNamespace(
                    start=lambda: None
                ),
            ),
            # The API would tell Nova of bindings; no one waits for that.
            (
                'nova.objects.InstanceMappingList',
                types.SimpleNamespace(
                    get_by_instance_uuids=lambda context, uuids: []
                ),
            ),
            (
                'nova_accel.virt.server_flavor._read',
                lambda uuid: self.nova.instances[uuid],
            ),
            (
                'nova.scheduler.client.report.report_client_singleton',
                lambda: self,
            ),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, value))
        for fixture in (
            nova_fixtures.LibvirtFixture(),
            fake_fpga.Installed(),
            libvirt.MediatedDevices(),
            libvirt_guest.GuestDevices(),
        ):
            self.useFixture(fixture)
        state_path = self.useFixture(fixtures.TempDir()).path
        for name, value, group in (
            ('state_path', state_path, None),
            ('device_spec', list(self.device_spec), 'nova_accel'),
            ('publish_timeout_s', 0, 'nova_accel'),
        ):
            CONF.set_override(name, value, group)
            self.addCleanup(CONF.clear_override, name, group)
        profiles = {
            'both': ('FPGA', self.vgpu),
            'fpga': ('FPGA',),
            'vgpu': (self.vgpu,),
        }
        for name, resources in profiles.items():
            device_profile.create(
                name, list(map(imitation.group_of, resources))
            )
        self.hosts = [
            imitated_host.Host(
                name,
                uuid,
                fakelibvirt.Connection(
                    'qemu:///system',
                    hostname=name,
                    pci_info=self.hardware(name),
                ),
            )
            for name, uuid in _NODES.items()
        ]
        for host in self.hosts:
            host.start()
        self.nova = imitation.Nova(self.hosts, {**profiles, '': ()})
        self.effects = self.useFixture(
            effects.Effects(self._api, engine.manager().writer.get_engine())
        )

    def hardware(self, _host: str) -> fakelibvirt.HostPCIDevicesInfo:
        """The PCI functions of a host."""
        return devices.pci_info(gpus=1, fpgas=2, qats=0)

    def restart_and_reconcile(self) -> None:
        """Every nova-compute starts once, and its worker runs once."""
        self.effects.mend()
        self.forget_errors()
        for host in self.hosts:
            host.start()
            self.nova.recover(host)
        self.reconcile()

    def forget_errors(self) -> None:
        """What has been logged was to be expected."""
        self._log.reset_output()

    def reconcile(self) -> None:
        """Every worker runs once."""
        for host in self.hosts:
            host.run_periodic()

    def drift(self) -> list[str]:
        """What is held without need, or missing; should be empty."""
        held = self._held()
        found = self._log.output.splitlines()
        found += [
            f'{uuid} is bound ({role}) on {host}'
            for uuid, host, role in held
            if not self._is_needed(uuid, host, role)
        ]
        for host in self.hosts:
            found += self._drift_of(host, held)
        for instance in self.nova.instances.values():
            found += self._guest_findings(instance)
        used = sum(map(len, held.values()))
        with engine.reader() as connection:
            taken = connection.execute(
                sa.select(sa.func.count()).where(
                    schema.ATTACH_HANDLES.c.arq_uuid.is_not(None)
                )
            ).scalar()
        if used != taken:
            found.append(f'{taken} attach handles are taken by {used} ARQs')
        return found + self._unallocated()

    def reconcile_placement(self) -> None:
        """Every worker runs twice.

        What was given back in the cycle before is seen to be stale in one,
        and taken away in the next if it still is.
        """
        self.reconcile()
        self.reconcile()

    def stale_allocations(self) -> list[str]:
        """What instances have in Placement without need; should be empty.

        What a migration has is for Nova's own audit.
        """
        return [
            f'{uuid} has {providers} of {host} in Placement'
            for uuid in self.nova.instances
            for host, providers in self.nova.allocations.get(uuid, {}).items()
            if providers
            and not any(
                self._is_needed(uuid, host, role)
                for role in (arq_types.Role.ACTIVE, arq_types.Role.INCOMING)
            )
        ]

    def delete_all(self) -> None:
        """As their owners do in the end.

        A guest that Nova has lost, because it died while that moved, is
        removed by the operator.
        """
        for instance in list(self.nova.instances.values()):
            self.nova.delete(instance)
            for host in self.hosts:
                host.driver.remove(instance)
        self.reconcile()

    def leftovers(self) -> list[str]:
        """Should be empty when there are no instances."""
        # What a migration that was cut short has waits for a second look.
        migrations = {migration.uuid for migration in self.nova.migrations}
        return [
            *self.drift(),
            *map(str, self._held()),
            *sorted(self.nova.allocations.keys() - migrations),
            *(
                f'{uuid} on {host.name}'
                for host in self.hosts
                for uuid in self._mdevs(host)
            ),
        ]

    def _held(self) -> dict[tuple[str, str, str], set[str]]:
        """(instance, host, role) -> attach handles, as the API knows it."""
        handles, arqs = schema.ATTACH_HANDLES, schema.ARQS
        held: dict[tuple[str, str, str], set[str]] = {}
        with engine.reader() as connection:
            for row in connection.execute(
                sa.select(
                    arqs.c.instance_uuid,
                    arqs.c.hostname,
                    arqs.c.role,
                    handles.c.uuid,
                ).outerjoin(handles, handles.c.arq_uuid == arqs.c.uuid)
            ):
                held.setdefault(tuple(row[:3]), set()).add(row.uuid)
        return held

    def _unallocated(self) -> list[str]:
        """What is bound, and Placement may give to somebody else."""
        arqs = schema.ARQS
        with engine.reader() as connection:
            bound = connection.execute(
                sa.select(
                    arqs.c.instance_uuid,
                    arqs.c.device_rp_uuid,
                    sa.func.count().label('units'),
                )
                .where(arqs.c.device_rp_uuid.is_not(None))
                .group_by(arqs.c.instance_uuid, arqs.c.device_rp_uuid)
            ).all()
        return [
            f'{row.instance_uuid} has {row.units} units of provider '
            f'{row.device_rp_uuid}, in Placement {allocated}'
            for row in bound
            if row.units
            > (
                allocated := self._allocated(
                    row.instance_uuid, row.device_rp_uuid
                )
            )
        ]

    def _allocated(self, instance_uuid: str, rp_uuid: str) -> int:
        """The units of a provider that an instance and its migrations have."""
        consumers = [
            instance_uuid,
            *(
                migration.uuid
                for migration in self.nova.migrations
                if migration.instance_uuid == instance_uuid
            ),
        ]
        return sum(
            imitation.units_of(providers[rp_uuid]['resources'])
            for consumer in consumers
            for providers in self.nova.allocations.get(consumer, {}).values()
            if rp_uuid in providers
        )

    def _is_needed(self, uuid: str, host: str, role: str) -> bool:
        instance = self.nova.instances.get(uuid)
        if instance is None:
            return False
        if role is None:
            # Not adopted: Nova deletes them with their instance.
            return True
        if role != arq_types.Role.OLD and self._has_guest(instance, host):
            # It has arrived, and Nova may not know; nothing is taken from it.
            return True
        if role == arq_types.Role.ACTIVE:
            return instance.host == host or any(
                migration.instance_uuid == uuid
                and migration.migration_type == 'evacuation'
                and (
                    not migration.source_is_back
                    if host == migration.source_compute
                    else instance.task_state is not None
                )
                for migration in self.nova.migrations
            )
        return any(
            migration.instance_uuid == uuid
            and host
            == (
                migration.source_compute
                if role == arq_types.Role.OLD
                else migration.dest_compute
            )
            and migration.status in nova_server.UNFINISHED
            for migration in self.nova.migrations
        )

    def _has_guest(self, instance: imitation.Instance, name: str) -> bool:
        return any(
            host.name == name and host.driver.instance_exists(instance)
            for host in self.hosts
        )

    def _drift_of(self, host: imitated_host.Host, held: Any) -> list[str]:
        """On the host itself."""
        found = []
        entries = attach_journal.AttachJournal(
            host.driver._accelerators.attachments._journal.directory,
        ).entries()
        found += [
            f'{entry.instance_uuid} ({entry.role}) is {entry.step} in '
            f'the journal of {host.name}'
            for entry in entries
            if entry.step is not attach_journal.AttachStep.HELD
            or entry.moved_from is not None
        ]
        journaled = {
            (entry.instance_uuid, host.name, str(entry.role)): {
                request.handle.uuid for request in entry.arqs
            }
            for entry in entries
        }
        bound = {
            key: uuids
            for key, uuids in held.items()
            if key[1] == host.name and key[2] is not None
        }
        if journaled != bound:
            found.append(
                f'the journal of {host.name} has {journaled}, the API {bound}'
            )
        found += [
            f'mediated device {uuid} on {host.name} is no one\'s'
            for uuid in self._mdevs(host) - set().union(*journaled.values())
        ]
        return found

    def _guest_findings(self, instance: imitation.Instance) -> Iterator[str]:
        """Which has not its devices, or does not run although it should."""
        hosts = [host for host in self.hosts if host.runs(instance)]
        if (
            not hosts
            and instance.vm_state == vm_states.ACTIVE
            and instance.task_state is None
        ):
            yield f'{instance.uuid} is active, its guest is not'
        for host in hosts:
            xml = etree.fromstring(
                host.host.get_guest(instance).get_xml_desc()
            )
            has = sorted(
                map(hostdev.identity, xml.iterfind('devices/hostdev'))
            )
            held_there = host.driver._accelerators.attachments.held
            held = [
                sorted(map(_identity, held_there.arqs_of(instance.uuid, role)))
                for role in (arq_types.Role.ACTIVE, arq_types.Role.INCOMING)
            ]
            left = sorted(map(_identity, held_there.left_by(instance.uuid)))
            # It may not have let go of these.
            kept = [name for name in has if name not in left]
            if len(kept) != self.nova.units(instance) or kept not in held:
                yield (
                    f'the guest of {instance.uuid} on {host.name} has '
                    f'{has}, holds {held}'
                )

    @staticmethod
    def _mdevs(host: imitated_host.Host) -> set[str]:
        return set(
            map(
                libvirt_utils.mdev_name2uuid,
                host.connection.mdev_info.get_all_devices(),
            )
        )

    def get_allocations_for_resource_provider(
        self, _context: Any, rp_uuid: str
    ) -> Any:
        """As Placement's client has it."""
        return types.SimpleNamespace(
            allocations={
                consumer: providers[rp_uuid]
                for consumer, hosts in self.nova.allocations.items()
                for providers in hosts.values()
                if rp_uuid in providers
            }
        )

    def get_allocs_for_consumer(self, _context: Any, consumer: str) -> Any:
        return {
            'allocations': {
                rp_uuid: allocation
                for providers in self.nova.allocations.get(
                    consumer, {}
                ).values()
                for rp_uuid, allocation in providers.items()
            }
        }

    def get_providers_in_tree(self, _context: Any, _rp_uuid: str) -> list[Any]:
        """All of them are ours."""
        return []

    def add_resources_to_instance_allocation(
        self, _context: Any, consumer_uuid: str, resources: Any
    ) -> None:
        self.nova.claim_more(consumer_uuid, resources)

    def remove_resources_from_instance_allocation(
        self, _context: Any, consumer_uuid: str, resources: Any
    ) -> None:
        for providers in self.nova.allocations[consumer_uuid].values():
            for rp_uuid, taken in resources.items():
                for name, amount in taken['resources'].items():
                    found = providers.get(rp_uuid, {}).get('resources', {})
                    if name in found:
                        found[name] -= amount
                        if not found[name]:
                            del found[name]
                        if not found:
                            providers.pop(rp_uuid)

    def _instances_on(
        self, _context: Any, host: str, expected_attrs: Any
    ) -> list[imitation.Instance]:
        return [
            instance
            for instance in self.nova.instances.values()
            if instance.host == host
        ]

    def _instances(
        self, _context: Any, filters: Any, expected_attrs: Any
    ) -> list[imitation.Instance]:
        return [
            instance
            for instance in self.nova.instances.values()
            # Those that are deleted are forgotten.
            if instance.uuid in filters['uuid'] and not filters['deleted']
        ]

    def _migrations(self, _context: Any, filters: Any) -> list[Any]:
        return [
            migration
            for migration in self.nova.migrations
            if migration.uuid in filters.get('uuid', migration.uuid)
            and migration.status in filters.get('status', migration.status)
            and filters.get('host', migration.dest_compute)
            in (migration.source_compute, migration.dest_compute)
            and filters.get('migration_type', migration.migration_type)
            == migration.migration_type
        ]
