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

from lab import processes
from libvirtd import base
from libvirtd import machines
from nova_accel import exceptions

NIC, QAT, SSD = machines.NIC, machines.QAT, machines.SSD


class FunctionsTestCase(base.HostTestCase):
    machine = machines.EVERY_KIND

    def write(self, function, attribute, value):
        self.sysfs.write(base.address(function), attribute, value)

    def assert_not_written(self, reason, function, attribute, value):
        error = self.assertRaises(
            exceptions.DeviceError, self.write, function, attribute, value
        )
        for text in (attribute, function.address, reason):
            self.assertIn(text, str(error))


class TestVirtualFunctions(FunctionsTestCase):
    def facts(self, function):
        seen = self.function(function)
        return seen and (seen.parent_address, seen.driver, seen.numa_node)

    def count(self, card):
        return len(self.virtual(card))

    def set_count(self, card, count):
        """It is what was there before again, after the test."""
        before = self.sysfs.read(base.address(card), 'sriov_numvfs')
        self.addCleanup(self.assert_soon, int(before), self.count, card)
        self.addCleanup(self.write, card, 'sriov_numvfs', before)
        self.addCleanup(self.write, card, 'sriov_numvfs', '0')
        self.write(card, 'sriov_numvfs', str(count))

    def test_they_come_and_go(self):
        card = machines.INTEL_GPU
        wanted = [card.virtual(index) for index in range(5)]
        self.set_count(card, 5)
        self.assert_soon(tuple(map(base.address, wanted)), self.virtual, card)
        for function in wanted:
            # The card names them before libvirt lists them.
            self.assert_soon(
                (base.address(card), 'i915', 0), self.facts, function
            )
        lines = [base.a_line(function) for function in wanted]
        self.assertEqual(5, len(self.discover(*lines).devices))
        self.write(card, 'sriov_numvfs', '0')
        for function in wanted:
            self.assert_soon(None, self.facts, function)
        self.assertEqual((), self.discover(*lines).devices)
        self.assert_soon((), self.virtual, card)

    def test_another_count(self):
        """Only when there are none: they might be in use."""
        self.set_count(QAT, 3)
        self.assert_not_written('busy', QAT, 'sriov_numvfs', '2')
        self.assert_soon(3, self.count, QAT)
        self.write(QAT, 'sriov_numvfs', '0')
        self.write(QAT, 'sriov_numvfs', '2')
        self.assert_soon(2, self.count, QAT)

    def test_more_than_there_can_be(self):
        self.assert_not_written('out of range', QAT, 'sriov_numvfs', '17')
        self.assertEqual(3, len(self.virtual(QAT)))

    def test_a_function_that_cannot_have_any(self):
        self.assert_not_written('No such file', SSD, 'sriov_numvfs', '1')

    def test_the_driver_refuses(self):
        card = machines.INTEL_FPGA
        fault = self.refuse(f'{card.path}/sriov_numvfs', errno.ENOSPC)
        self.assert_not_written('No space', card, 'sriov_numvfs', '1')
        self.assertEqual((), self.virtual(card))
        fault.unlink()
        self.set_count(card, 1)
        self.assert_soon((base.address(card.virtual(0)),), self.virtual, card)

    def test_the_host_reboots(self):
        """What was made is gone, what is made at boot is there."""
        self.set_count(machines.INTEL_GPU, 2)
        self.write(QAT, 'sriov_numvfs', '0')
        self.reboot()
        self.assert_soon(0, self.count, machines.INTEL_GPU)
        self.assert_soon(3, self.count, QAT)


class TestDrivers(FunctionsTestCase):
    """libvirt takes functions from their drivers, and gives them back."""

    def detach(self, function):
        name = base.address(function).node_device
        self.addCleanup(self.reattach, function)
        self.server.virsh('nodedev-detach', name)

    def reattach(self, function):
        self.server.virsh(
            'nodedev-reattach', base.address(function).node_device
        )

    def driver(self, function):
        return self.function(function).driver

    def test_detached_and_attached(self):
        virtual = NIC.virtual(0)
        line = base.a_line(virtual, physical_network='physnet1')
        before = self.discover_one(line)
        self.detach(virtual)
        self.assert_soon('vfio-pci', self.driver, virtual)
        self.assertFalse(self.file(virtual, 'net').exists())
        self.assertEqual(before, self.discover_one(line))
        self.reattach(virtual)
        self.assert_soon('mlx5_core', self.driver, virtual)
        self.assertTrue(self.file(virtual, 'net/labnic0v0').exists())

    def test_the_card_of_virtual_functions(self):
        """They go with its driver."""
        self.addCleanup(self.write, QAT, 'sriov_numvfs', '3')
        self.detach(QAT)
        self.assert_soon((), self.virtual, QAT)
        self.assert_not_written('No such file', QAT, 'sriov_numvfs', '1')

    def test_one_without_a_driver(self):
        self.detach(machines.LONE_GPU)
        self.assert_soon('vfio-pci', self.driver, machines.LONE_GPU)
        self.reattach(machines.LONE_GPU)
        self.assert_soon(None, self.driver, machines.LONE_GPU)

    def test_the_driver_does_not_let_go(self):
        self.addCleanup(self.reattach, SSD)
        self.refuse('bus/pci/drivers/nvme/unbind', errno.EBUSY)
        self.assertRaises(
            processes.LabError,
            self.server.virsh,
            'nodedev-detach',
            base.address(SSD).node_device,
        )
        self.assertEqual('nvme', self.driver(SSD))

    def test_reset(self):
        self.write(SSD, 'reset', '1')
        self.assertIn(
            f'{SSD.address}/reset',
            processes.log_of(self.server.kernel).read_text(),
        )

    def test_no_reset(self):
        self.assert_not_written('No such file', machines.BRIDGE, 'reset', '1')
