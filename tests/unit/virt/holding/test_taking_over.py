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

import dataclasses
import string

from nova.virt.libvirt import config as vconfig
import oslo_messaging
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_accel.db import client_arqs
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.host import libvirt_devices
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import finding
from unit.virt import planted

ACTIVE = arq_types.Role.ACTIVE
HERE = planted.HERE

#: With Nova's mark: what others have is offered to no one.
DOMAIN = string.Template(
    planted.DOMAIN.template.replace(
        '<devices>',
        f'<metadata><nova:instance xmlns:nova="{vconfig.NOVA_NS}"/>'
        '</metadata><devices>',
    )
)


class TakingOverTestCase(planted.ReconcileTestCase):
    def run_cycle(self):
        self.host.cycle.run()

    def imported(self, server=None, amount=1):
        """A server with ARQs of a Cyborg, whose guest has the first."""
        server = server or self.nova.add_instance(HERE)
        uuids = self.bind(server, amount)
        handles = [
            client_arqs.get(uuid)['attach_handle_uuid'] for uuid in uuids
        ]
        for uuid in handles:
            self.make_mdev(uuid)
        self.connection.defineXML(
            DOMAIN.substitute(uuid=server.uuid, mdev=handles[0])
        ).create()
        return server

    def make_mdev(self, handle_uuid):
        handle = self.current.view.handles[handle_uuid]
        libvirt_devices.NodeDevices(self.libvirt.host).create_mdev(
            handle.uuid, handle.address, handle.mdev_type
        )

    def relist(self):
        """As the first cycle does."""
        self.current.unjournaled = None
        self.run_cycle()

    def found(self):
        return [
            each
            for each in self.current.findings.all()
            if each.kind == finding.Kind.NOT_TAKEN_OVER
        ]


class TestTakingOver(TakingOverTestCase):
    def test_what_its_guest_has(self):
        server = self.imported()
        self.relist()
        self.assertEqual(({ACTIVE}, {'active'}), self.roles(server))
        self.assertEqual([], self.found())
        (arq,) = self.attachments.held.arqs_of(server.uuid)
        self.assertIn(arq.handle.uuid, self.mdevs())
        before = self.everything()
        for _again in range(2):
            self.run_cycle()
            self.repair()
        self.assertEqual(before, self.everything())

    def test_it_costs_one_request_if_nothing_waits(self):
        self.relist()
        listed = self.current.unjournaled
        self.nova.calls.clear()
        self.run_cycle()
        self.assertIs(listed, self.current.unjournaled)
        self.assertEqual([], self.nova.calls)

    def test_what_a_comparison_lists_later(self):
        """The import came after the start of nova-compute."""
        self.relist()
        server = self.imported()
        self.run_cycle()
        self.assertEqual((set(), {None}), self.roles(server))
        self.repair()
        self.run_cycle()
        self.assertEqual(({ACTIVE}, {'active'}), self.roles(server))

    def test_only_what_its_guest_has(self):
        server = self.imported(amount=2)
        self.relist()
        self.assertEqual(({ACTIVE}, {'active', None}), self.roles(server))
        (wrong,) = self.found()
        self.assertEqual(server.uuid, wrong.instance_uuid)
        # Neither the next cycles nor the comparison take it away.
        for _again in range(2):
            self.run_cycle()
            self.repair()
        self.assertEqual(({ACTIVE}, {'active', None}), self.roles(server))
        self.assertEqual([wrong], self.found())
        self.host.os_acc.unplug({'uuid': server.uuid})
        client_arqs.delete_by_instance(server.uuid)
        self.run_cycle()
        self.assertEqual([], self.found())

    def test_a_server_at_which_nova_works(self):
        server = self.imported(
            self.nova.add_instance(HERE, task_state='rebooting_hard')
        )
        self.relist()
        self.assertEqual((set(), {None}), self.roles(server))
        self.assertEqual([], self.found())
        server.task_state = None
        self.run_cycle()
        self.assertEqual(({ACTIVE}, {'active'}), self.roles(server))

    def test_nova_does_not_answer(self):
        server = self.imported()
        self.nova.fault = oslo_messaging.MessagingTimeout()
        self.relist()
        self.assertEqual((set(), {None}), self.roles(server))
        self.nova.fault = None
        self.run_cycle()
        self.assertEqual(({ACTIVE}, {'active'}), self.roles(server))

    def test_a_server_that_is_deleted_before(self):
        """Nova deletes its ARQs, and leaves its mediated device."""
        well = self.imported()
        server = self.imported(
            self.nova.add_instance(HERE, task_state='deleting')
        )
        (arq,) = self.arqs(server)
        self.relist()
        self.assertEqual((set(), {None}), self.roles(server))
        self.lose_guest(server)
        client_arqs.delete_by_instance(server.uuid)
        self.delete(server)
        self.assertIn(arq['attach_handle_uuid'], self.mdevs())
        self.run_cycle()
        self.assertNotIn(arq['attach_handle_uuid'], self.mdevs())
        (held,) = self.attachments.held.arqs_of(well.uuid)
        self.assertIn(held.handle.uuid, self.mdevs())
        (told,) = [
            each
            for each in self.current.findings.all()
            if each.kind == finding.Kind.MDEV
        ]
        self.assertTrue(told.is_repaired)

    def test_the_api_does_not_answer(self):
        server = self.imported()
        self.api.refuse = True
        self.relist()
        self.assertIsNone(self.current.unjournaled)
        self.api.refuse = False
        self.run_cycle()
        self.assertEqual(({ACTIVE}, {'active'}), self.roles(server))

    def test_what_another_guest_has(self):
        """A database that lost its last transactions was imported into."""
        other = self.boot()
        server = self.imported()
        (held,) = self.attachments.held.arqs_of(other.uuid)
        (arq,) = self.arqs(server)
        attachments = self.attachments
        entry = attachments._journal.read(other.uuid, ACTIVE)
        attachments._journal.write(
            dataclasses.replace(
                entry,
                arqs=(
                    dataclasses.replace(
                        held,
                        handle=self.current.view.handles[
                            arq['attach_handle_uuid']
                        ],
                    ),
                ),
            )
        )
        self.relist()
        self.assertEqual((set(), {None}), self.roles(server))
        (wrong,) = self.found()
        self.assertIn(f'instance {other.uuid} has it', wrong.words)

    def test_a_mediated_device_of_another_service(self):
        """It is offered before it is taken over, and given back at the end."""
        foreign = uuidutils.generate_uuid()
        server = self.nova.add_instance(HERE)
        (uuid,) = self.bind(server)
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.ATTACH_HANDLES)
                .where(schema.ATTACH_HANDLES.c.arq_uuid == uuid)
                .values(uuid=foreign)
            )
        handle = next(
            handle
            for handle in self.current.view.handles.values()
            if handle.mdev_type
        )
        libvirt_devices.NodeDevices(self.libvirt.host).create_mdev(
            foreign,
            attach_handle.from_dict(
                {
                    'uuid': foreign,
                    'type': 'MDEV',
                    'info': client_arqs.get(uuid)['attach_handle_info'],
                }
            ).address,
            handle.mdev_type,
        )
        self.connection.defineXML(
            DOMAIN.substitute(uuid=server.uuid, mdev=foreign)
        ).create()
        self.assertNotIn(foreign, self.current.view.handles)
        self.relist()
        self.assertIn(foreign, self.current.view.handles)
        self.assertEqual(({ACTIVE}, {'active'}), self.roles(server))
        (arq,) = self.attachments.held.arqs_of(server.uuid)
        self.assertEqual(foreign, arq.handle.uuid)
        self.run_cycle()
        self.assertEqual((), self.current.unjournaled)
        self.assertIn(foreign, self.current.view.handles)
        self.lose_guest(server)
        self.host.os_acc.unplug({'uuid': server.uuid})
        self.assertNotIn(foreign, self.mdevs())
        self.run_cycle()
        self.assertNotIn(foreign, self.current.view.handles)


class TestPorts(TakingOverTestCase):
    def test_the_arqs_of_ports(self):
        ports = []
        server = self.nova.add_instance(HERE, get_network_info=lambda: ports)
        (uuid,) = self.bind_function(server)
        found = client_arqs.get(uuid)
        address = '{domain}:{bus}:{device}.{function}'.format(
            **found['attach_handle_info']
        )
        ports.append({'profile': {'arq_uuid': uuid, 'pci_slot': address}})
        parts = found['attach_handle_info']
        self.connection.defineXML(
            DOMAIN.substitute(uuid=server.uuid, mdev='x').replace(
                "<hostdev mode='subsystem' type='mdev' model='vfio-pci'>\n"
                "      <source><address uuid='x'/></source>",
                "<hostdev mode='subsystem' type='pci' managed='yes'>"
                "<source><address domain='0x{domain}' bus='0x{bus}' "
                "slot='0x{device}' function='0x{function}'/>"
                '</source>'.format(**parts),
            )
        ).create()
        self.relist()
        self.assertEqual(({arq_types.Role.PORT}, {'port'}), self.roles(server))

    def bind_function(self, server):
        provider = next(
            provider.uuid
            for provider in self.current.view.layout.providers
            if provider.totals.get('FPGA')
        )
        (made,) = client_arqs.create('fpga', 'project')
        client_arqs.bind(
            {
                made['uuid']: {
                    'hostname': self.nodename,
                    'instance_uuid': server.uuid,
                    'device_rp_uuid': provider,
                }
            }
        )
        return [made['uuid']]
