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


class TestNotYet(base.AcceleratorTestCase):
    """What a server with accelerators cannot do yet is refused unharmed."""

    # As a call, a refusal would go back to a conductor that is long gone.
    CAST_AS_CALL = False

    def setUp(self):
        super().setUp()
        for host in ('host1', 'host2'):
            self.start_accelerated_compute(host)
        self.server = self.boot_with(
            {'resources:FPGA': '1'}, {'resources:VGPU': '1'})
        self.devices = self.guest_devices(self.server)
        self.arqs_before = self.arqs(self.server)

    def assert_unharmed(self, action):
        server = self._wait_for_action_fail(action)
        self.assertEqual(self.devices, self.guest_devices(server))
        self.assertEqual(self.arqs_before, self.arqs(server))
        self._reboot_server(server, hard=True)
        self.assertEqual(self.devices, self.guest_devices(server))
        self.delete(server)

    def _wait_for_action_fail(self, action):
        def failed():
            (found,) = (found for found
                        in self.admin_api.get_instance_actions(
                            self.server['id']) if found['action'] == action)
            self.assertEqual('Error', found['message'])

        self._wait_for_assert(failed)
        return self._wait_for_server_parameter(
            self.server, {'status': 'ACTIVE', 'OS-EXT-STS:task_state': None})

    def act(self, **action):
        self.admin_api.post_server_action(self.server['id'], action)

    def test_live_migration(self):
        self.act(**{'os-migrateLive': {
            'host': None, 'block_migration': 'auto'}})
        self.assert_unharmed('live-migration')
