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


from nova import context as nova_context

from functional import one_server
from functional import operations
from nova_accel.model.profiles import device_profile


class TestLifecycle(one_server.OneServerTestCase):
    """What is done to a server on its host leaves it its devices."""

    @operations.shows('hard reboot')
    def test_hard_reboot(self):
        self._reboot_server(self.server, hard=True)
        self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('hard reboot', 'a device refuses')
    def test_hard_reboot_with_a_device_that_refuses(self):
        for _device in self.each_refusing():
            self.assertIn(
                'the device is stuck',
                self.assert_fails(
                    'reboot', {'type': 'HARD'}, 'reboot', 'ERROR'
                ),
            )
            self.assert_held()
            self.assert_hard_reboot_helps()
        self.delete(self.server)

    @operations.shows('soft reboot')
    def test_soft_reboot(self):
        self._reboot_server(self.server)
        self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('stop, start')
    def test_stop_and_start(self):
        self._stop_server(self.server)
        self.assert_kept()
        self._start_server(self.server)
        self.assert_runs_with_all()
        self.delete(self.server)

    def test_start_makes_a_lost_mdev_again(self):
        """As after a reboot of the host, which forgets them."""
        self._stop_server(self.server)
        self.reboot_host()
        self._start_server(self.server)
        self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('stop, start', 'a device refuses')
    def test_start_with_a_device_that_refuses(self):
        self._stop_server(self.server)
        for _device in self.each_refusing():
            self.assertIn(
                'the device is stuck',
                self.assert_fails('os-start', None, 'start', 'SHUTOFF'),
            )
        self._start_server(self.server)
        self.assert_runs_with_all()
        self.delete(self.server)

    def test_a_stopped_server_keeps_its_devices_from_others(self):
        self._stop_server(self.server)
        other = self.boot(self.flavor)
        self.assertFalse(set(self.devices) & set(self.guest_devices(other)))
        self.boot(self.flavor, expected_state='ERROR')
        self.delete(self.server, other)

    @operations.shows('pause, unpause')
    def test_pause_and_unpause(self):
        for action, status in (('pause', 'PAUSED'), ('unpause', 'ACTIVE')):
            self.act(action)
            self.wait_for_status(status)
            self.assert_kept()
        self.assert_runs_with_all()
        self.delete(self.server)

    def test_restart_of_nova_compute(self):
        self.restart_compute_service('host1')
        self.assert_kept()
        self._reboot_server(self.server, hard=True)
        self.assert_kept()
        self.delete(self.server)


class TestLifecycleCompat(TestLifecycle):
    flavor_key = device_profile.CYBORG_FLAVOR_KEY


class TestDelete(one_server.OneServerTestCase):
    """Whatever fails is made up for, and until then no one gets a device."""

    @operations.shows('delete')
    def test_delete(self):
        self.delete(self.server)

    @operations.shows('delete', 'a device is stuck')
    def test_a_device_that_is_stuck(self):
        server = self.server
        for _device in self.each_refusing('unplug'):
            self._delete_server(server)
            # Whatever Nova tells its Cyborg.
            self.assertEqual(2, len(self.arqs(server)))
            self.settle(self.host)
            self.assert_nothing_left()
            server = self.boot(self.flavor)
        self.delete(server)

    @operations.shows('delete', 'the API is away')
    def test_the_api_is_away(self):
        with self.api_away():
            self._delete_server(self.server)
            self.assertFalse(self.mdevs(self.host))
        self.settle(self.host)
        self.assert_nothing_left()

    @operations.shows('local delete')
    def test_nova_compute_is_down(self):
        """The guest runs on with its devices until it is back."""
        self.delete_while_down()
        self.come_back_and_reap()
        self.assert_nothing_left()

    @operations.shows('local delete', 'the API is away')
    def test_nova_compute_is_down_and_then_the_api(self):
        self.delete_while_down()
        with self.api_away():
            self.come_back_and_reap()
            self.assertFalse(self.mdevs(self.host))
        self.settle(self.host)
        self.assert_nothing_left()

    def delete_while_down(self):
        self.go_down()
        self.api.delete_server(self.server['id'])
        self._wait_until_deleted(self.server)
        self.assert_runs_with_all()

    def come_back_and_reap(self):
        self.come_back()
        self.computes[self.host].manager._cleanup_running_deleted_instances(
            nova_context.get_admin_context()
        )


class TestDeleteCompat(TestDelete):
    flavor_key = device_profile.CYBORG_FLAVOR_KEY
