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

"""Guests of Cyborg's that go on while their host changes to nova_accel."""

import sqlalchemy as sa

from functional import taken_over
from nova_accel.cmd import database_fleet
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import finding
from rig import compute_parts


class TestPciFunctions(taken_over.TakenOverTestCase):
    def test_two_hosts_one_after_the_other(self):
        here, there = (
            [
                self.boot_with_units(host, 'CUSTOM_QAT', 2),
                self.boot_with_units(host, 'FPGA'),
            ]
            for host in self.both_hosts
        )
        before = self.devices_of(*here, *there)
        self.assertEqual(
            [2, 1, 2, 1], [len(devices) for devices in before.values()]
        )
        self.stop_cyborg()
        self.switch('host1')
        for server in here:
            self.assert_taken_over(server, before[server['id']])
        self.move_allocations('host1')
        self.assert_placement_agrees('host1')
        self.assert_nothing_is_wrong()

        # On the host that is not switched, Nova goes on as before.
        for server in (*here, *there):
            self._reboot_server(server, hard=True)
            self.assertEqual(before[server['id']], self.guest_devices(server))
        more = [
            self.boot_with_units('host1', 'CUSTOM_QAT', 6),
            self.boot_with_units('host1', 'FPGA'),
        ]
        self.assertEqual(10, len(self.assert_none_twice('host1')))
        for resource_class in ('CUSTOM_QAT', 'FPGA'):
            self.assert_no_unit_left('host1', resource_class)
        self.assert_placement_agrees('host1')
        self._delete_server(there.pop())

        self.take_over('host2')
        (last,) = there
        self.assert_taken_over(last, before[last['id']])
        self.assert_placement_agrees('host2')
        self.assert_nothing_is_wrong()
        self.delete(*here, *more, last)
        self.assert_nothing_is_wrong()


class TestMediatedDevices(taken_over.TakenOverTestCase):
    def setUp(self):
        super().setUp()
        self.need_mdevs_of_cyborg()

    def test_a_full_card(self):
        servers = [
            self.boot_with_units(host, 'VGPU', 8)
            for host in ('host1', 'host1', 'host2')
        ]
        before = self.devices_of(*servers)
        mdevs = self.mdevs('host1')
        self.assertEqual(16, len(mdevs))
        self.stop_cyborg()
        self.take_over('host1')
        first, second, there = servers
        for server in (first, second):
            self.assert_taken_over(server, before[server['id']])
        self.assertEqual(mdevs, self.mdevs('host1'))
        self.assert_placement_agrees('host1')
        self.assert_no_unit_left('host1', 'VGPU')
        self.assert_nothing_is_wrong()
        for server in servers:
            self._reboot_server(server, hard=True)
            self.assertEqual(before[server['id']], self.guest_devices(server))

        # A unit that is given back is a unit of ours from then on.
        self._delete_server(second)
        self.settle('host1')
        self._run_periodics()
        third = self.boot_with_units('host1', 'VGPU', 8)
        self.assertEqual(16, len(self.assert_none_twice('host1')))
        self.assertFalse(
            set(before[second['id']]) & set(self.guest_devices(third))
        )
        self.assert_no_unit_left('host1', 'VGPU')
        self.assert_placement_agrees('host1')

        self.take_over('host2')
        self.delete(first, third, there)
        self.assert_nothing_is_wrong()

    def test_a_reboot_of_the_host_before_it_is_switched(self):
        """It has removed the devices, and no one has made them again."""
        server = self.boot_with_units('host1', 'VGPU', 8)
        (before,) = self.devices_of(server).values()
        self.stop_cyborg()
        self._stop_server(server)
        connection = self.connection('host1')
        for name in connection.listDevices('mdev', 0):
            connection.nodeDeviceLookupByName(name).destroy()
        self.take_over('host1')
        self.assert_taken_over(server, before)
        self._start_server(server)
        self.assertEqual(before, self.guest_devices(server))
        self.assertEqual(8, len(self.mdevs('host1')))
        self.delete(server)


class TestOneServer(taken_over.TakenOverTestCase):
    """A server with a function and a mediated device, on a switched host."""

    def setUp(self):
        super().setUp()
        self.need_mdevs_of_cyborg()
        self.server = self.boot_on('host1', self.both)
        self.before = self.guest_devices(self.server)
        self.assertEqual(2, len(self.before))
        self.stop_cyborg()

    def test_it_is_left_alone_until_the_host_reports(self):
        self.flags(compute_driver='nova_accel.LibvirtDriver')
        with self.api_away():
            self.restart_compute_service('host1')
            self.settle('host1')
        self.assertEqual(
            {('host1', None): self.before}, self.held(self.server)
        )
        self.assertEqual(self.before, self.guest_devices(self.server))
        self.settle('host1')
        self.assert_taken_over(self.server, self.before)
        self.move_allocations('host1')
        self.delete(self.server)

    def test_a_hard_reboot_before_it_is_taken_over(self):
        """Between the report and that."""
        self.flags(compute_driver='nova_accel.LibvirtDriver')
        self.restart_compute_service('host1')
        accelerators = self.computes['host1'].driver._accelerators
        self.give_back_what_is_taken_over('host1')
        self.assertFalse(accelerators.attachments.held.bindings())
        self._reboot_server(self.server, hard=True)
        self.assert_taken_over(self.server, self.before)
        self.move_allocations('host1')
        self.delete(self.server)

    def give_back_what_is_taken_over(self, host):
        """As if the host had only reported until now."""
        self.settle(host)
        with engine.writer() as connection:
            connection.execute(sa.update(schema.ARQS).values(role=None))
            connection.execute(sa.delete(schema.BINDINGS))
        accelerators = self.computes[host].driver._accelerators
        journal = accelerators.attachments._journal
        for entry in journal.entries():
            journal.remove(entry)
        compute_parts.current_state(accelerators).unjournaled = tuple(
            accelerators.api.bindings()
        )

    def test_deleted_before_it_is_taken_over(self):
        self.flags(compute_driver='nova_accel.LibvirtDriver')
        self.restart_compute_service('host1')
        self.give_back_what_is_taken_over('host1')
        self._delete_server(self.server)
        self.settle('host1')
        self.move_allocations('host1')
        self.assert_nothing_left()

    def test_stop_and_start(self):
        self._stop_server(self.server)
        self.take_over('host1')
        self.assert_taken_over(self.server, self.before)
        self._start_server(self.server)
        self.assert_taken_over(self.server, self.before)
        self.delete(self.server)

    def test_what_the_guest_does_not_have(self):
        """It is found, and stays the server's."""
        (domain,) = self.domains('host1')
        hostdevs = domain._def['devices']['hostdevs']
        (gone,) = [each for each in hostdevs if each['type'] == 'mdev']
        hostdevs.remove(gone)
        domain.defined_hostdevs = list(hostdevs)
        self.switch('host1')
        function = next(part for part in self.before if ':' in part)
        self.assertEqual(
            {
                ('host1', 'active'): [function],
                ('host1', None): [gone['address_uuid']],
            },
            self.held(self.server),
        )
        self.settle('host1')
        (found,) = database_fleet.read().reported
        self.assertEqual(
            (finding.Kind.NOT_TAKEN_OVER, self.server['id']),
            (found.kind, found.whose),
        )
        self.assertIn('does not have', found.words)
        self.move_allocations('host1')
        # That is the remedy.
        self._reboot_server(self.server, hard=True)
        self.assert_taken_over(self.server, self.before)
        self.settle('host1')
        self.settle('host1')
        self.assertEqual([], list(database_fleet.read().reported))
        self.delete(self.server)

    def test_a_unit_that_nobody_knows_of(self):
        """What a guest has of Cyborg's and was not imported is not free."""
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.ATTACH_HANDLES).values(arq_uuid=None)
            )
            connection.execute(sa.delete(schema.ARQS))
        self.switch('host1')
        words = [each.words for each in database_fleet.read().reported]
        self.assertEqual(1, len(words), words)
        self.assertIn(self.server['id'], words[0])
        self.assertIn('knows of it', words[0])
        totals = {}
        for provider in self.accelerator_providers('host1'):
            for resource_class, total in provider['inventory'].items():
                totals[resource_class] = totals.get(resource_class, 0) + total
        self.assertEqual({'FPGA': 1, 'CUSTOM_QAT': 8, 'VGPU': 15}, totals)
        other = self.boot_with_units('host1', 'FPGA')
        self.assert_none_twice('host1')
        self._delete_server(other)
