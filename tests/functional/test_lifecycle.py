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

from nova_accel.testing import cloud


class TestLifecycle(cloud.Cloud):
    """What a server does to itself leaves it its devices."""

    ADMIN_API = True

    def setUp(self):
        super().setUp()
        self.start_accelerated_compute('host1')
        self.create_profile('both', [{'resources:FPGA': '1'},
                                     {'resources:VGPU': '1'}])
        self.server = self._create_server(
            flavor_id=self.create_accel_flavor('both'), networks='none')
        self.devices = self.guest_devices(self.server)
        self.arqs_before = self.arqs(self.server)

    def assert_kept(self):
        self.assertEqual(self.devices, self.guest_devices(self.server))
        self.assertEqual(self.arqs_before, self.arqs(self.server))
        self.assertEqual(1, len(self.mdevs('host1')))

    def delete(self):
        self._delete_server(self.server)
        self.assert_nothing_left()

    def test_hard_reboot(self):
        self._reboot_server(self.server, hard=True)
        self.assert_kept()
        self.delete()

    def test_hard_reboot_makes_a_lost_mdev_again(self):
        """As after a reboot of the host."""
        (name,) = self.mdevs('host1')
        self.connection('host1').nodeDeviceLookupByName(name).destroy()
        self.assertEqual([], self.mdevs('host1'))
        self._reboot_server(self.server, hard=True)
        self.assert_kept()
        self.delete()

    def test_soft_reboot(self):
        self._reboot_server(self.server)
        self.assert_kept()
        self.delete()

    def test_stop_and_start(self):
        self._stop_server(self.server)
        self.assert_kept()
        self._start_server(self.server)
        self.assert_kept()
        self.delete()

    def test_a_stopped_server_keeps_its_devices_from_others(self):
        self._stop_server(self.server)
        others = [self._create_server(
            flavor_id=self.server_flavor(), networks='none')
            for _number in range(1)]
        self.assertFalse(
            set(self.devices) & set(self.guest_devices(others[0])))
        self._delete_server(others[0])
        self.delete()

    def server_flavor(self):
        return self.create_accel_flavor('both')

    def test_rebuild(self):
        self._rebuild_server(
            self.server, '70a599e0-31e7-49b7-b260-868f441e862b')
        self.assertEqual(self.devices, self.guest_devices(self.server))
        self.assertEqual(
            [arq['uuid'] for arq in self.arqs_before],
            [arq['uuid'] for arq in self.arqs(self.server)])
        self.delete()

    def test_restart_of_nova_compute(self):
        self.restart_compute_service('host1')
        self.assert_kept()
        self._reboot_server(self.server, hard=True)
        self.assert_kept()
        self.delete()
