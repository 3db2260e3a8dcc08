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


import errno

from libvirtd import base
from libvirtd import machines

CARD, QAT = machines.INTEL_GPU, machines.QAT


class TestSriovNumvfs(base.HostTestCase):
    """Virtual functions that a line asks for."""

    machine = machines.EVERY_KIND

    def setUp(self):
        super().setUp()
        self.line = base.a_line(CARD, sriov_numvfs=4)
        self.addCleanup(self.clear)

    def clear(self):
        self.sysfs.write(base.address(CARD), 'sriov_numvfs', '0')
        self.assert_soon((), self.virtual, CARD)

    def wanted(self):
        return {base.address(CARD.virtual(index)) for index in range(4)}

    def offered(self):
        inventory = self.discover(self.line)
        self.assertEqual((), inventory.refused)
        return {device.address for device in inventory.devices}

    def test_made_when_asked_for(self):
        self.make_virtual_functions(base.a_line(CARD))
        self.assertEqual((), self.virtual(CARD))
        self.make_virtual_functions(self.line)
        self.assertEqual(self.wanted(), self.offered())

    def test_made_once(self):
        for _time in range(2):
            self.make_virtual_functions(self.line)
            self.assertEqual(self.wanted(), self.offered())

    def test_made_again_after_a_reboot(self):
        self.make_virtual_functions(self.line)
        before = self.discover(self.line)
        self.reboot()
        self.assert_soon((), self.virtual, CARD)
        self.assert_refused(self.line, 'asks for 4')
        self.make_virtual_functions(self.line)
        self.assertEqual(before, self.discover(self.line))

    def test_other_numbers_stay(self):
        """Guests may have those that are there."""
        line = base.a_line(QAT, sriov_numvfs=8)
        self.make_virtual_functions(line)
        inventory = self.discover(line)
        self.assertEqual(3, len(inventory.devices))
        (reason,) = inventory.refused
        self.assertIn('asks for 8', reason)

    def test_more_than_there_can_be(self):
        line = base.a_line(CARD, sriov_numvfs=32)
        self.make_virtual_functions(line)
        self.assertEqual((), self.virtual(CARD))
        self.assert_refused(line, 'it can have 31')

    def test_a_function_that_can_have_none(self):
        line = base.a_line(machines.SSD, sriov_numvfs=1)
        self.make_virtual_functions(line)
        self.assert_refused(line, 'it can have none')

    def test_the_driver_refuses(self):
        """The rest is made, and this one at the next start."""
        fault = self.refuse(f'{CARD.path}/sriov_numvfs', errno.ENOSPC)
        fpga = machines.INTEL_FPGA
        other = base.a_line(fpga, sriov_numvfs=1)
        self.addCleanup(
            self.sysfs.write, base.address(fpga), 'sriov_numvfs', '0'
        )
        self.make_virtual_functions(self.line, other)
        self.assertEqual(
            [base.address(fpga.virtual(0))],
            [device.address for device in self.discover(other).devices],
        )
        self.assert_refused(self.line, 'asks for 4')
        fault.unlink()
        self.make_virtual_functions(self.line)
        self.assertEqual(self.wanted(), self.offered())
