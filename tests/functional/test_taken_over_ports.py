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

"""A server whose port has a device, on a host that is taken over."""

from functional import taken_over
from functional import test_ports


class TestPorts(taken_over.TakenOverTestCase, test_ports.PortTestCase):
    functions = {
        'FPGA': taken_over.FUNCTIONS['FPGA'],
        'CUSTOM_NIC': taken_over.FUNCTIONS['CUSTOM_QAT'],
    }

    def setUp(self):
        super().setUp()
        self.port = self.ports[0]
        self.create_profile('fpga', [{'resources:FPGA': '1'}])
        self.server = self.boot_with_ports(
            self.create_accel_flavor('fpga'), self.port, host='host1'
        )
        self.assert_ports_have_their_arqs(self.server, self.port)
        self.before = self.network_devices(self.server)
        self.of_flavor = self.guest_devices(self.server)
        self.stop_cyborg()

    def assert_taken_over_with_its_port(self):
        self.assertEqual(
            {
                ('host1', 'active'): self.of_flavor,
                ('host1', 'port'): self.before,
            },
            self.held(self.server),
        )
        self.assert_ports_have_their_arqs(self.server, self.port)

    def test_its_port_is_taken_over_as_a_port(self):
        self.take_over('host1')
        self.assert_taken_over_with_its_port()
        self._reboot_server(self.server, hard=True)
        self.assert_taken_over_with_its_port()
        self.delete(self.server)
