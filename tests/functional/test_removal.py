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

from functional import base
from nova_accel import exceptions
from nova_accel.cmd import host

HOST = 'host1'


class TestRemoval(base.AcceleratorTestCase):
    """The procedure of the manual, on a host that stays a compute host."""

    def setUp(self):
        super().setUp()
        self.create_profile('fpga', [base.FPGA])
        self.flavor = self.create_accel_flavor('fpga')
        self.plain = self._create_flavor(name='plain')

    def set_driver(self, name):
        self.flags(compute_driver=name)
        self.restart_compute_service(HOST)

    def be_silent(self):
        self.flags(host_silence_s=1, group='nova_accel')
        time.sleep(2.1)

    def test_nova_accel_leaves_and_comes_back(self):
        drivers = self.computes[HOST].driver.__class__
        server = self.boot(self.flavor)
        self.set_driver('libvirt.LibvirtDriver')
        self.assertNotIsInstance(self.computes[HOST].driver, drivers)
        self.be_silent()
        refusal = self.assertRaises(exceptions.Conflict, host.remove, HOST)
        self.assertIn(server['id'], str(refusal))
        self.set_driver('nova_accel.LibvirtDriver')
        self.delete(server)
        self.set_driver('libvirt.LibvirtDriver')
        self.be_silent()
        self.boot(self.flavor, expected_state='ERROR')
        providers, deleted = host.remove(HOST)
        self.assertNotEqual([], providers)
        self.assertEqual([], self.accelerator_providers(HOST))
        self.assertEqual(1, deleted['hosts'])
        self.restart_compute_service(HOST)
        self.boot(self.plain)
        self.boot(self.flavor, expected_state='ERROR')
        self.flags(host_silence_s=180, group='nova_accel')
        self.set_driver('nova_accel.LibvirtDriver')
        self.delete(self.boot(self.flavor))
