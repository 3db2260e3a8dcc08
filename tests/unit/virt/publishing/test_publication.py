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

import fixtures
import sqlalchemy as sa
import testtools

from nova_accel import exceptions
from nova_accel.db import findings
from nova_accel.db.rows import order_rows
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import finding
from nova_accel.model.devices import hardware
from nova_accel.model.providers import host_view
from nova_accel.testing import accelerator_api
from nova_accel.testing import reports
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import periodic_work
from nova_accel.virt.publishing import publication
from rig import capacity
from rig.benchmark import calls

HOST = 'compute-1'
LONG_S = 3600


class TestPublisher(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.api = self.useFixture(accelerator_api.AcceleratorApi())
        self.log = self.useFixture(fixtures.FakeLogger())
        self.have(1)
        self.looks = 0
        node = host_view.Node(
            HOST, reports.SimulatedHost(HOST).node_uuid, 'service'
        )
        self.current = host_view.CurrentState(host_view.View(node.uuid))
        self.cycle = periodic_work.Cycle(LONG_S, self.current.findings)
        # Its reports do not reach the database of the test after this one.
        self.addCleanup(self.cycle._idle.wait, 30)
        self.publisher = publication.Publisher(
            node, self.look, self.api.client(HOST), self.current, self.cycle
        )
        self.begin()

    def begin(self):
        """With the API's refusals in the log, not in the test."""
        self.cycle._steps = (
            ('Not looked', self.publisher.refresh),
            ('Not published', self.publisher.report),
        )

    def have(self, *regions, refused=(), **more):
        """What discovery finds from now on."""
        self.inventory = discovery.Discovered(
            tuple(reports.SimulatedHost(HOST, regions).devices()),
            refused,
            **more,
        )

    def look(self):
        self.looks += 1
        if isinstance(self.inventory, Exception):
            raise self.inventory
        return self.inventory

    def test_what_is_found_is_published(self):
        self.cycle.hurry()
        self.publisher.wait_published(10)
        self.assertEqual({HOST: 1}, capacity.free_by_host())
        self.assertEqual(self.inventory.devices, self.current.view.devices)
        self.assertEqual(1, len(self.current.view.layout.providers))

    def test_one_device_that_nobody_takes_does_not_hide_the_others(self):
        self.have(1, 1)
        good, bad = self.inventory.devices
        deployables = tuple(
            dataclasses.replace(each, traits=each.traits | {'---'})
            for each in good.deployables
        )
        self.inventory = dataclasses.replace(
            self.inventory,
            devices=(
                dataclasses.replace(good, deployables=deployables),
                dataclasses.replace(bad, name='x' * 300),
            ),
        )
        for _cycle in range(2):
            self.cycle.run()
        self.publisher.wait_published(10)
        self.assertEqual({HOST: 1}, capacity.free_by_host())
        (device,) = self.current.view.devices
        self.assertEqual(good.deployables, device.deployables)
        self.assertIn('not published', device.attributes)
        # Each once.
        self.assertEqual(2, self.log.output.count('Accelerator refused: '))

    def test_the_view_is_there_before_anybody_is_told(self):
        self.api.refuse = True
        self.publisher.refresh()
        self.assertEqual(['fake'], list(self.current.view.drivers.values()))

    def test_no_answer(self):
        self.api.refuse = True
        error = self.assertRaises(
            exceptions.ServiceUnavailable, self.publisher.wait_published, 0.2
        )
        self.assertIn(HOST, str(error))
        self.api.refuse = False
        self.publisher.wait_published(10)
        self.assertEqual({HOST: 1}, capacity.free_by_host())

    def test_a_new_device_has_to_be_published_first(self):
        self.publisher.wait_published(10)
        self.api.refuse = True
        self.have(1, 1)
        self.publisher.refresh()
        self.assertRaises(
            exceptions.ServiceUnavailable, self.publisher.wait_published, 0.1
        )

    def test_the_same_devices_are_not_waited_for(self):
        self.publisher.wait_published(10)
        self.assertTrue(self.cycle._idle.wait(10))
        self.api.refuse = True
        self.publisher.refresh()
        self.publisher.wait_published(0)

    def test_orders_are_kept_and_not_sent_again(self):
        self.assertIsNone(self.current.orders)
        self.cycle.run()
        first = self.current.orders
        self.assertEqual(frozenset(), first.disabled)
        self.cycle.run()
        self.assertIs(first, self.current.orders)
        uuid = reports.SimulatedHost(HOST).device_uuid()
        self.disable(uuid)
        self.cycle.run()
        self.assertEqual({uuid}, self.current.orders.disabled)
        self.assertGreater(self.current.orders.revision, first.revision)

    def disable(self, uuid):
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.DEVICES)
                .where(schema.DEVICES.c.uuid == uuid)
                .values(status=hardware.Status.MAINTAINING)
            )
            order_rows.change(connection, schema.HOSTS.c.hostname == HOST)

    def test_a_report_without_change_costs_one_call_and_one_statement(self):
        for regions in ((1,), (8,) * 64):
            self.have(*regions)
            self.cycle.run()
            with calls.counted() as found:
                self.cycle.run()
            self.assertEqual(calls.Calls(api=1, statements=1), found)

    def test_a_reason_is_logged_once(self):
        self.have(1, refused=('0000:01:00.0: broken',))
        for _look in range(2):
            self.publisher.refresh()
        self.assertEqual(1, self.log.output.count('0000:01:00.0: broken'))

    def test_what_is_not_known_of_a_device_does_not_leave_it_out(self):
        note = '0000:01:00.0: logic_uuids cannot be read: EINVAL'
        self.have(1, refused=(note,), noted=frozenset({note}))
        for _look in range(2):
            self.cycle.run()
        self.assertEqual(1, self.log.output.count(f'Accelerator: {note}'))
        self.assertIn('Published 1 unit of FPGA\n', self.log.output)
        (found,) = findings.read()
        self.assertEqual(note, found.words)

    def test_a_line_without_devices_is_warned_of_once(self):
        line = '{"vendor_id": "10ee", "driver": "pci"}'
        warning = f'device_spec = {line} matches no device'
        for _look in range(2):
            self.have(1, unmatched=(line,))
            self.publisher.refresh()
        self.assertEqual(1, self.log.output.count(warning))
        self.have(1)
        self.publisher.refresh()
        self.have(1, unmatched=(line,))
        self.publisher.refresh()
        self.assertEqual(2, self.log.output.count(warning))

    def test_what_is_published_is_logged_when_it_changes(self):
        for regions, refused, line in (
            ((1, 2), (), 'Published 3 units of FPGA\n'),
            (
                (1,),
                ('0000:01:00.0 (its line): why', 'pci_x: its XML'),
                'Published 1 unit of FPGA (left out: 0000:01:00.0, pci_x)\n',
            ),
            ((), (), 'Published no accelerators\n'),
        ):
            self.have(*regions, refused=refused)
            for _cycle in range(3):
                self.cycle.run()
            self.assertEqual(1, self.log.output.count(line))

    def test_a_refused_device_is_a_finding_until_it_is_offered(self):
        self.have(1, refused=('0000:01:00.0: broken',))
        self.cycle.run()
        self.assertEqual(
            [(HOST, finding.Kind.REFUSED, '0000:01:00.0: broken')],
            [
                (found.hostname, found.kind, found.words)
                for found in findings.read()
            ],
        )
        with calls.counted() as counted:
            self.cycle.run()
        self.assertEqual(calls.Calls(api=1, statements=1), counted)
        self.have(1)
        self.cycle.run()
        self.assertEqual([], findings.read())

    def test_a_failed_look_keeps_the_view(self):
        self.publisher.refresh()
        before = self.current.view
        for error in (
            exceptions.DeviceError('libvirt is away'),
            ValueError('a bug'),
        ):
            self.inventory = error
            self.cycle.run()
            self.assertIn(str(error), self.log.output)
        self.assertEqual(before, self.current.view)

    def test_the_digest_names_the_content(self):
        """The same host with the same devices says nothing new."""
        node = host_view.Node(HOST, 'uuid', 'service')
        devices = [{'uuid': '1', 'name': 'a'}]
        same = publication._digest(node, [{'name': 'a', 'uuid': '1'}], [])
        self.assertEqual(publication._digest(node, devices, []), same)
        for other in (
            publication._digest(node, [], []),
            publication._digest(node, devices, [{'kind': 'mdev'}]),
            publication._digest(
                dataclasses.replace(node, service_host='moved'), devices, []
            ),
        ):
            self.assertNotEqual(same, other)
