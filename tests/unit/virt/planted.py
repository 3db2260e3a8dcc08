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


"""A host whose accelerators can be leaked in every way that is known."""

import collections
import string

import fixtures
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_accel.db import client_arqs
from nova_accel.db import device_profile
from nova_accel.db import host_arqs
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.host import libvirt_devices
from nova_accel.model import arq_types
from nova_accel.model import pci_address
from nova_accel.model.profiles import provider_allocation
from nova_accel.testing import reports
from nova_accel.virt.holding import intents
from rig import compute_parts
from rig.stubs import nova_records
from unit.virt import started

HERE, THERE = started.SERVICE_HOST, 'elsewhere'
TYPE = 'nvidia-11'
GPU = pci_address.PciAddress.parse('0000:81:00.0')
FOREIGN_MDEV = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'

DOMAIN = string.Template('''
<domain type='qemu'>
  <name>instance-$uuid</name><uuid>$uuid</uuid><memory>1024</memory>
  <vcpu>1</vcpu><os><type>hvm</type></os>
  <devices>
    <hostdev mode='subsystem' type='mdev' model='vfio-pci'>
      <source><address uuid='$mdev'/></source>
    </hostdev>
  </devices>
</domain>''')


class ReconcileTestCase(started.StartedTestCase):
    """A host with cards that make vGPUs, a guest on it, and strangers."""

    gpus = 2

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.nova = self.useFixture(nova_records.NovaRecords())
        self.nodename = self.libvirt.host.get_hostname()
        for amount in (1, 2):
            device_profile.create(
                f'{amount} vgpu', [{'resources:VGPU': '1'}] * amount
            )
        self.add_strangers()
        self.start()
        # The cycle that it begins with must not meet what is planted.
        self.publisher.wait_published(30)
        self.host.cycle._idle.wait(30)

    def start(self):
        self.host = super().start()
        self.attachments = self.host.attachments
        self.reconciler = compute_parts.reconciler(
            self.host, self.libvirt.host
        )
        return self.host

    def add_strangers(self):
        """Another host, and a mediated device of somebody else's."""
        other = reports.SimulatedHost('compute-2')
        other.report()
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        host_arqs.acquire(
            host_arqs.AcquireRequest(
                uuidutils.generate_uuid(),
                'compute-2',
                'active',
                1,
                'project',
                'fpga',
                (other.allocated(),),
            )
        )
        self.connection = self.libvirt.connection
        self.connection.nodeDeviceCreateXML(
            f'''
            <device><parent>pci_0000_81_00_0</parent>
            <capability type='mdev'><type id='{TYPE}'/>
            <uuid>{FOREIGN_MDEV}</uuid></capability></device>''',
            0,
        )

    def repair(self):
        self.reconciler.repair()

    def accelerator_providers(self):
        return [
            provider
            for provider in self.current.view.layout.providers
            if provider.totals
        ]

    def free_vgpus(self):
        """The providers of the cards, and how many units of each are free."""
        free = collections.Counter()
        with engine.reader() as connection:
            for rp_uuid, arq_uuid in connection.execute(
                sa.select(
                    schema.DEPLOYABLES.c.rp_uuid,
                    schema.ATTACH_HANDLES.c.arq_uuid,
                )
                .select_from(schema.DEPLOYABLES.join(schema.ATTACH_HANDLES))
                .where(schema.DEPLOYABLES.c.resource_class == 'VGPU')
            ):
                free[rp_uuid] += arq_uuid is None
        return free

    def vgpus(self, amount):
        """An allocation of so many, of the card with the most."""
        ((rp_uuid, _free),) = self.free_vgpus().most_common(1)
        return [
            provider_allocation.ProviderAllocation(
                rp_uuid, {'VGPU': amount}, frozenset()
            )
        ]

    def boot(self, amount=1, **fields):
        """A server that runs on this host."""
        server = self.nova.add_instance(HERE, **fields)
        (allocation,) = self.vgpus(amount)
        self.host.os_acc.acquire(server, f'{amount} vgpu', [allocation])
        self.nova.allocations[server.uuid] = {
            allocation.rp_uuid: {'VGPU': amount}
        }
        (first, *_others) = self.host.os_acc.ready(server)
        self.connection.defineXML(
            DOMAIN.substitute(uuid=server.uuid, mdev=first.handle.uuid)
        ).create()
        return server

    def bind(self, server, amount=1):
        """As Nova's Cyborg client does, for this host."""
        (allocation,) = self.vgpus(amount)
        uuids = [
            made['uuid']
            for made in client_arqs.create(f'{amount} vgpu', 'project')
        ]
        client_arqs.bind(
            {
                uuid: {
                    'hostname': self.nodename,
                    'instance_uuid': server.uuid,
                    'device_rp_uuid': allocation.rp_uuid,
                }
                for uuid in uuids
            }
        )
        return uuids

    def domain(self, server):
        return self.connection.lookupByUUIDString(server.uuid)

    def lose_guest(self, server):
        self.domain(server).destroy()
        self.domain(server).undefine()

    def lose_journal(self, server):
        for entry in self.attachments._journal.entries():
            if entry.instance_uuid == server.uuid:
                self.attachments._journal.remove(entry)

    def lose_handle(self, arq_uuid):
        """As only a damaged database can."""
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.ATTACH_HANDLES)
                .where(schema.ATTACH_HANDLES.c.arq_uuid == arq_uuid)
                .values(arq_uuid=None)
            )

    def lose_arq(self, arq_uuid):
        """As when the database is restored to what it was before."""
        self.lose_handle(arq_uuid)
        with engine.writer() as connection:
            connection.execute(
                sa.delete(schema.ARQS).where(schema.ARQS.c.uuid == arq_uuid)
            )

    def delete(self, server):
        server.deleted = True
        self.lose_allocations(server)

    def lose_allocations(self, server):
        self.nova.allocations.pop(server.uuid, None)

    def arqs(self, server):
        return client_arqs.get_all(instance_uuid=server.uuid)

    def roles(self, server):
        """In the journal and in the API."""
        return (
            {
                role
                for uuid, role in self.attachments.held.journaled()
                if uuid == server.uuid
            },
            {found['role'] for found in self.arqs(server)},
        )

    def mdevs(self):
        return {
            mdev.uuid
            for mdev in libvirt_devices.NodeDevices(self.libvirt.host).mdevs()
        }

    def everything(self):
        """What there is, to be compared; when it changed does not matter."""
        with engine.reader() as connection:
            rows = [
                [
                    str(row)
                    for row in connection.execute(
                        sa.select(
                            *(
                                column
                                for column in table.c
                                if column.name != 'changed_at'
                            )
                        ).order_by(table.c.id)
                    )
                ]
                for table in (
                    schema.ARQS,
                    schema.ATTACH_HANDLES,
                    schema.BINDINGS,
                )
            ]
        return (
            rows,
            self.mdevs(),
            {
                path.name: path.read_text()
                for path in self.state.glob('nova_accel/*/*.json')
            },
        )

    # What is planted; each gives the server, and what is to be left of it.

    def plant_a_server_deleted_while_nova_compute_was_down(self):
        server = self.boot()
        self.lose_guest(server)
        self.delete(server)
        return server, (set(), set())

    def plant_an_evacuated_server_of_a_host_installed_anew(self):
        server = self.boot()
        self.lose_guest(server)
        self.lose_allocations(server)
        server.host = THERE
        return server, (set(), set())

    def plant_a_resize_that_failed_on_its_destination(self):
        server = self.boot(old_flavor=object())
        self.domain(server).destroy()
        self.attachments.move(
            server.uuid, arq_types.Role.ACTIVE, arq_types.Role.OLD
        )
        server.host, server.vm_state = THERE, 'error'
        self.lose_allocations(server)
        self.nova.add_migration(server, 'error', HERE, THERE)
        return server, (set(), set())

    def plant_a_revert_that_failed_on_its_source(self):
        server = self.boot(vm_state='error')
        self.domain(server).destroy()
        self.attachments.move(
            server.uuid, arq_types.Role.ACTIVE, arq_types.Role.OLD
        )
        self.nova.add_migration(server, 'error', HERE, THERE)
        return server, ({arq_types.Role.ACTIVE}, {'active'})

    def plant_a_live_migration_that_failed_in_its_checks(self):
        server = self.nova.add_instance(THERE)
        self.attachments.hold(
            intents.acquire(
                server.uuid,
                'project',
                '1 vgpu',
                self.vgpus(1),
                arq_types.Role.INCOMING,
            )
        )
        self.nova.add_migration(server, 'error', THERE, HERE)
        return server, (set(), set())

    def plant_an_unshelve_with_cyborgs_key_that_failed(self):
        server = self.nova.add_instance(None, vm_state='shelved_offloaded')
        self.bind(server)
        return server, (set(), set())

    def plant_an_evacuation_with_cyborgs_key_that_failed(self):
        server = self.nova.add_instance(THERE, vm_state='error')
        self.bind(server, 2)
        return server, (set(), set())

    def plant_half_a_set_of_an_instance_that_is_gone(self):
        server = self.nova.add_instance(HERE)
        self.lose_handle(self.bind(server, 2)[0])
        self.delete(server)
        return server, (set(), set())

    def plant_half_a_set_that_no_guest_can_have(self):
        server = self.boot(2)
        self.lose_guest(server)
        self.lose_handle(self.arqs(server)[0]['uuid'])
        self.lose_journal(server)
        return server, (set(), set())

    def plant_a_lost_journal_of_a_guest(self):
        server = self.boot()
        self.lose_journal(server)
        return server, ({arq_types.Role.ACTIVE}, {'active'})

    def plant_a_lost_journal_of_a_server_that_is_gone(self):
        server = self.boot()
        self.lose_guest(server)
        self.lose_journal(server)
        self.delete(server)
        return server, (set(), set())

    def plant_devices_of_a_server_that_is_gone_and_of_no_arq(self):
        server = self.boot()
        self.lose_guest(server)
        (found,) = self.arqs(server)
        self.lose_arq(found['uuid'])
        self.delete(server)
        return server, (set(), set())

    def plant_a_mediated_device_that_nobody_has(self):
        taken = self.mdevs()
        handle = next(
            handle
            for device in self.current.view.devices
            for deployable in device.deployables
            for handle in deployable.handles
            if handle.mdev_type and handle.uuid not in taken
        )
        libvirt_devices.NodeDevices(self.libvirt.host).create_mdev(
            handle.uuid, handle.address, handle.mdev_type
        )
        self.assertIn(handle.uuid, self.mdevs())
        return self.nova.add_instance(THERE), (set(), set())

    PLANTS = tuple(name for name in locals() if name.startswith('plant_'))
