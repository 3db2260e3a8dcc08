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

import time

import fixtures
from nova import exception

from functional import moves
from functional import operations


class TestColdMigration(moves.ServerTestCase):
    def migrate(self, status='VERIFY_RESIZE'):
        self.admin_api.post_server_action(self.server['id'], {'migrate': None})
        return self._wait_for_state_change(self.server, status)

    @operations.shows('cold migration', 'confirmed')
    def test_confirm(self):
        server = self.migrate()
        held = self.held(server)
        after = held['host2', 'active']
        self.assertEqual(
            {('host1', 'old'): self.before, ('host2', 'active'): after}, held
        )
        self.assert_usage('host1', FPGA=1, VGPU=1)
        self.assert_usage('host2', FPGA=1, VGPU=1)
        self.confirm(server)
        self.assert_guest(server, 'host2', after)
        self.assertFalse(self.mdevs('host1'))
        self.assert_usage('host1')
        self.delete(server)

    @operations.shows('cold migration', 'reverted')
    def test_revert(self):
        arqs = self.arqs(self.server)
        server = self.revert(self.migrate())
        self.assert_guest(server, 'host1', self.before)
        self.assertEqual(
            [arq['uuid'] for arq in arqs],
            [arq['uuid'] for arq in self.arqs(server)],
        )
        self.assertFalse(self.mdevs('host2'))
        self.assert_usage('host2')
        self.delete(server)

    def test_there_and_back(self):
        self.confirm(self.migrate(), 'host1')
        server = self.confirm(self.migrate(), 'host2')
        self.assert_guest(server, 'host1', self.guest_devices(server))
        self.assertEqual(2, len(self.guest_devices(server)))
        self.delete(server)

    def test_there_and_back_after_the_clock_was_set_back(self):
        self.confirm(self.migrate(), 'host1')
        day_before = time.time_ns() - 24 * 60 * 60 * 10**9
        self.useFixture(
            fixtures.MonkeyPatch('time.time_ns', lambda: day_before)
        )
        server = self.confirm(self.migrate(), 'host2')
        self.assert_guest(server, 'host1', self.guest_devices(server))
        self.assertEqual(2, len(self.guest_devices(server)))
        self.delete(server)

    def test_what_waits_for_its_owner_is_kept(self):
        """Both sets, whatever the workers of both hosts look at."""
        server = self.migrate()
        held = self.held(server)
        for host in self.hosts:
            self.restart_compute_service(host)
            self.settle(host)
        self.assertEqual(held, self.held(server))
        self.revert(server)
        self.assert_guest(server, 'host1', self.before)
        self.delete(server)

    @operations.shows('cold migration', 'the source fails')
    def test_a_source_that_fails(self):
        self.break_driver(
            'migrate_disk_and_power_off', exception.InternalError('broken')
        )
        self.migrate('ERROR')
        self.assert_guest(self.server, 'host1', self.before)
        self.assert_usage('host2')
        self._reboot_server(self.server, hard=True)
        self.delete(self.server)

    @operations.shows(
        'cold migration',
        'a device refuses on the destination',
        devices=['PCI'],
    )
    def test_a_pci_device_refuses_on_the_destination(self):
        self.break_plug('PCI')
        self.assert_stays_on_the_destination()

    @operations.shows(
        'cold migration',
        'a device refuses on the destination',
        devices=['mdev'],
    )
    def test_an_mdev_refuses_on_the_destination(self):
        self.break_plug('mdev')
        self.assert_stays_on_the_destination()

    def assert_stays_on_the_destination(self):
        self.migrate('ERROR')
        self.assertEqual(1, self.failures)
        self._wait_for_migration_status(self.server, ['error'])
        self.settle('host1')
        self._wait_for_assert(
            lambda: self.assertEqual(
                [('host2', 'active')], list(self.held(self.server))
            )
        )
        self._reboot_server(self.server, hard=True)
        self.assert_guest(
            self.server, 'host2', self.held(self.server)['host2', 'active']
        )
        self.delete(self.server)

    @operations.shows('cold migration', 'the API is away on the source')
    def test_an_api_that_is_away_on_the_source_delays_nothing(self):
        """What it is told late changes nothing for others."""
        reconnect = self.cut_off('host1')
        server = self.migrate()
        self.assertEqual(
            ['active'] * 2, [role for _host, role in self.held(server)]
        )
        reconnect()
        self.settle('host1')
        self.assertEqual(
            {('host1', 'old'), ('host2', 'active')}, set(self.held(server))
        )
        self.confirm(server)
        self.delete(server)

    @operations.shows('cold migration', 'the API is away on the destination')
    def test_an_api_that_is_away_on_the_destination(self):
        """The server is where Nova leaves it, and acquires anew there."""
        reconnect = self.cut_off('host2')
        self.migrate('ERROR')
        self._wait_for_migration_status(self.server, ['error'])
        reconnect()
        for host in self.hosts:
            self.settle(host)
        self.assertEqual({}, self.held(self.server))
        self.assertFalse(self.mdevs('host1'))
        self.assert_usage('host1')
        self.assert_usage('host2', FPGA=1, VGPU=1)
        self._reboot_server(self.server, hard=True)
        devices = self.held(self.server)['host2', 'active']
        self.assertEqual(2, len(devices))
        self.assert_guest(self.server, 'host2', devices)
        server = self._rebuild_server(
            self.server, '70a599e0-31e7-49b7-b260-868f441e862b'
        )
        self.assert_guest(server, 'host2', devices)
        self.delete(server)
