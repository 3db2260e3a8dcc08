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

from functional import base


class TestLifecycle(base.AcceleratorTestCase):
    """What a server does to itself leaves it its devices."""

    def setUp(self):
        super().setUp()
        self.start_accelerated_compute('host1')
        self.create_profile('both', [{'resources:FPGA': '1'},
                                     {'resources:VGPU': '1'}])
        self.flavor = self.create_accel_flavor('both')
        self.server = self.boot(self.flavor)
        self.devices = self.guest_devices(self.server)
        self.arqs_before = self.arqs(self.server)

    def assert_kept(self):
        self.assertEqual(self.devices, self.guest_devices(self.server))
        self.assertEqual(self.arqs_before, self.arqs(self.server))
        self.assertEqual(1, len(self.mdevs('host1')))

    def test_hard_reboot(self):
        self._reboot_server(self.server, hard=True)
        self.assert_kept()
        self.delete(self.server)

    def test_start_makes_a_lost_mdev_again(self):
        """As after a reboot of the host, which forgets them."""
        self._stop_server(self.server)
        connection = self.connection('host1')
        (name,) = connection.listDevices('mdev', 0)
        connection.nodeDeviceLookupByName(name).destroy()
        self.assertFalse(self.mdevs('host1'))
        self._start_server(self.server)
        self.assert_kept()
        self.delete(self.server)

    def test_soft_reboot(self):
        self._reboot_server(self.server)
        self.assert_kept()
        self.delete(self.server)

    def test_stop_and_start(self):
        self._stop_server(self.server)
        self.assert_kept()
        self._start_server(self.server)
        self.assert_kept()
        self.delete(self.server)

    def test_a_stopped_server_keeps_its_devices_from_others(self):
        self._stop_server(self.server)
        other = self.boot(self.flavor)
        self.assertFalse(
            set(self.devices) & set(self.guest_devices(other)))
        self.boot(self.flavor, expected_state='ERROR')
        self.delete(self.server, other)

    def test_pause_and_unpause(self):
        for action, status in (('pause', 'PAUSED'), ('unpause', 'ACTIVE')):
            self.api.post_server_action(self.server['id'], {action: None})
            self._wait_for_state_change(self.server, status)
            self.assert_kept()
        self.delete(self.server)

    def test_shelve_and_unshelve(self):
        """Offloaded it has nothing, and it may get other devices."""
        self.flags(shelved_offload_time=0)
        self._shelve_server(self.server)
        self.assert_nothing_left()
        self._unshelve_server(self.server)
        self.assertEqual(2, len(self.guest_devices(self.server)))
        self.delete(self.server)

    def test_rebuild(self):
        self._rebuild_server(
            self.server, '70a599e0-31e7-49b7-b260-868f441e862b')
        self.assertEqual(self.devices, self.guest_devices(self.server))
        self.assertEqual(
            [arq['uuid'] for arq in self.arqs_before],
            [arq['uuid'] for arq in self.arqs(self.server)])
        self.delete(self.server)

    def test_restart_of_nova_compute(self):
        self.restart_compute_service('host1')
        self.assert_kept()
        self._reboot_server(self.server, hard=True)
        self.assert_kept()
        self.delete(self.server)
