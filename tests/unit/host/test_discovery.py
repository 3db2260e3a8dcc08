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


import json
import os
import pathlib

from oslo_config import fixture as config_fixture
import testtools

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.drivers import loading
from nova_accel.host import discovery
from nova_accel.host import node_devices
from nova_accel.host import nova_claims
from nova_accel.model import device_spec
from nova_accel.model import provider_layout
from nova_accel.testing import devices
from nova_accel.testing import libvirt

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
GOLDEN = pathlib.Path(__file__).with_name('simulated_host.json')
GPU, FPGA, QAT = '0000:81:00.0', '0000:82:00.0', '0000:83:00.0'


def a_line(**keys):
    return json.dumps(keys)


class DiscoveryTestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(libvirt.Libvirt(devices.pci_info()))
        self.config = self.useFixture(config_fixture.Config(conf.CONF))
        self.node_devices = node_devices.NodeDevices(self.fake.host)
        self.drivers = dict(loading.load(self.node_devices, NODE_UUID))

    def discover(self, *lines):
        return discovery.discover(
            self.node_devices, self.drivers,
            device_spec.parse(lines or devices.DEVICE_SPEC, self.drivers),
            nova_claims.NovaClaims())

    def addresses(self, inventory):
        return [str(device.address) for device in inventory.devices]

    def assert_refused(self, inventory, *texts):
        """One device is, with all the texts."""
        (reason,) = inventory.refused
        for text in texts:
            self.assertIn(text, reason)


class TestSimulatedHost(DiscoveryTestCase):

    def test_golden(self):
        """As the host reports it; NOVA_ACCEL_REWRITE_GOLDEN=1 rewrites it."""
        inventory = self.discover()
        layout = provider_layout.layout(
            'host1', NODE_UUID, inventory.devices)
        found = json.dumps({
            'devices': [device.to_report(NODE_UUID, layout.rp_uuids)
                        for device in inventory.devices],
            'refused': inventory.refused}, indent=2) + '\n'
        if os.environ.get('NOVA_ACCEL_REWRITE_GOLDEN'):
            GOLDEN.write_text(found)
        self.assertEqual(GOLDEN.read_text(), found)

    def test_the_same_whatever_is_in_use(self):
        before = self.discover()
        (gpu,) = (device for device in before.devices
                  if str(device.address) == GPU)
        handle = gpu.deployables[0].handles[7]
        self.drivers['mdev'].plug(handle)
        self.assertEqual(before, self.discover())
        self.drivers['mdev'].unplug(handle)
        self.assertEqual(before, self.discover())


class TestLines(DiscoveryTestCase):

    def test_without_lines_nothing_is_looked_at(self):
        self.assertEqual(discovery.Inventory(), discovery.discover(
            None, self.drivers, (), nova_claims.NovaClaims()))

    def test_the_first_line_rules(self):
        inventory = self.discover(
            a_line(address='83:00.1', driver='pci', traits=['CUSTOM_RACK_7'],
                   pool=False),
            devices.QAT_SPEC)
        first, *others = inventory.devices
        self.assertEqual(({'CUSTOM_RACK_7'}, False),
                         (first.operator_traits, first.pooled))
        self.assertEqual({(frozenset(), True)}, {
            (other.operator_traits, other.pooled) for other in others})
        self.assertEqual(7, len(others))

    def test_a_line_may_match_a_card_and_its_virtual_functions(self):
        line = a_line(address='82:*.*', driver='fake')
        inventory = self.discover(line)
        self.assertEqual([FPGA], self.addresses(inventory))
        self.assertEqual((), inventory.refused)

    def test_a_part_of_a_device_is_no_other_device(self):
        line = a_line(vendor_id='8086', product_id='09c5', driver='pci')
        inventory = self.discover(line, devices.FPGA_SPEC)
        self.assertEqual([FPGA], self.addresses(inventory))
        self.assertEqual(2, len(inventory.refused))
        self.assertIn(f'0000:82:00.1 ([nova_accel] device_spec = {line}): '
                      f'0000:82:00.1 is a part of {FPGA} ([nova_accel] '
                      f'device_spec = {devices.FPGA_SPEC})',
                      inventory.refused)


class TestBrokenDevices(DiscoveryTestCase):

    def assert_the_rest_works(self, inventory, missing, *texts):
        self.assertNotIn(missing, self.addresses(inventory))
        self.assertEqual(9, len(inventory.devices))
        self.assert_refused(inventory, *texts)

    def test_xml(self):
        card = self.fake.connection.pci_info.devices['pci_0000_81_00_0']
        card.pci_device = '<device/>'
        self.assert_the_rest_works(
            self.discover(), GPU, 'pci_0000_81_00_0')

    def test_driver_refuses(self):
        line = a_line(address=GPU, driver='mdev', mdev_type='nvidia-99')
        self.assert_the_rest_works(
            self.discover(line, *devices.DEVICE_SPEC), GPU,
            GPU, f'[nova_accel] device_spec = {line}',
            'nvidia-11, nvidia-12')

    def test_no_trait_can_be_made(self):
        card = self.fake.connection.pci_info.devices['pci_0000_81_00_0']
        card.pci_device = card.pci_device.replace('nvidia-11', '-')
        line = a_line(address=GPU, driver='mdev', mdev_type='-')
        self.assert_the_rest_works(
            self.discover(line, *devices.DEVICE_SPEC), GPU,
            GPU, 'no trait can be made')

    def test_driver_is_broken(self):
        def discover(*_args):
            raise KeyError('firmware')

        self.drivers['mdev'].discover = discover
        self.assert_the_rest_works(
            self.discover(), GPU, GPU, 'driver mdev', 'firmware')

    def test_libvirt_is_broken(self):
        """Then nothing is known: that is not an empty host."""
        def fail():
            raise exceptions.DeviceError('libvirt does not answer')

        self.node_devices.look = fail
        self.assertRaises(exceptions.DeviceError, self.discover)


class TestNovaHasIt(DiscoveryTestCase):

    def test_both_lines_are_named(self):
        theirs = a_line(vendor_id='8086', product_id='37c9',
                        address='*:83:00.3')
        self.config.config(group='pci', device_spec=[theirs])
        inventory = self.discover()
        self.assertNotIn('0000:83:00.3', self.addresses(inventory))
        self.assertEqual(9, len(inventory.devices))
        self.assert_refused(
            inventory, '0000:83:00.3',
            f'[nova_accel] device_spec = {devices.QAT_SPEC}',
            f'[pci] device_spec = {theirs}')

    def test_vgpu(self):
        self.config.config(group='devices', enabled_mdev_types=['nvidia-12'])
        inventory = self.discover()
        self.assertEqual(9, len(inventory.devices))
        self.assert_refused(
            inventory, GPU, f'[nova_accel] device_spec = {devices.GPU_SPEC}',
            '[devices] enabled_mdev_types = nvidia-12')

    def test_a_part_of_the_device(self):
        self.config.config(group='pci', device_spec=[
            a_line(vendor_id='8086', product_id='09c5', address='*:*.2')])
        inventory = self.discover()
        self.assertNotIn(FPGA, self.addresses(inventory))
        self.assert_refused(inventory, FPGA, 'Nova claims 0000:82:00.2')

    def test_the_card_of_the_device(self):
        """Its virtual functions would go when a guest gets the card."""
        self.config.config(group='pci', device_spec=[
            a_line(vendor_id='8086', product_id='37c8')])
        inventory = self.discover()
        self.assertEqual([GPU, FPGA], self.addresses(inventory))
        self.assertEqual(8, len(inventory.refused))
        for reason in inventory.refused:
            self.assertIn(f'Nova claims {QAT}', reason)
