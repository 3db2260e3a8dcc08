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


"""Checked against Nova's own classes, whose rules the module repeats."""

import json

import fixtures
import hypothesis
from hypothesis import strategies
from nova.pci import whitelist
from nova.virt.libvirt import driver as libvirt_driver
from oslo_config import fixture as config_fixture
import testtools

from nova_accel import conf
from nova_accel.host import node_devices
from nova_accel.host import nova_claims
from nova_accel.model import pci_address
from nova_accel.testing import devices
from nova_accel.testing import libvirt

UUID = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'
GPU0, GPU1, FPGA, QAT = ('0000:81:00.0', '0000:82:00.0', '0000:83:00.0',
                         '0000:84:00.0')


class NovaClaimsTestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.fake = self.useFixture(
            libvirt.Libvirt(devices.pci_info(gpus=2)))
        self.node_devices = node_devices.NodeDevices(self.fake.host)

    def config(self, pci=(), **vgpus):
        """Configure Nova.

        :param pci: the values of ``[pci] device_spec``
        :param vgpus: enabled type -> its ``device_addresses``
        """
        # A fixture for each call: properties call it many times in one test.
        config = config_fixture.Config(conf.CONF)
        config.setUp()
        self.addCleanup(config.cleanUp)
        types = [name.replace('_', '-') for name in vgpus]
        config.config(group='pci', device_spec=[
            line if isinstance(line, str) else json.dumps(line)
            for line in pci])
        config.config(group='devices', enabled_mdev_types=types)
        nova_claims.NovaClaims()
        for mdev_type, addresses in zip(types, vgpus.values(), strict=True):
            config.config(group=f'mdev_{mdev_type}',
                          device_addresses=list(addresses))

    def function(self, address):
        return self.node_devices.look().functions[
            pci_address.PciAddress.parse(address)]

    def line_for(self, address):
        return nova_claims.NovaClaims().line_for(self.function(address))

    def claimed(self):
        claims = nova_claims.NovaClaims()
        return {str(function.address) for function
                in self.node_devices.look().functions.values()
                if claims.line_for(function) is not None}


class TestPassthrough(NovaClaimsTestCase):

    def test_nothing_is_configured(self):
        self.config()
        self.assertEqual(set(), self.claimed())

    def test_by_ids(self):
        self.config([{'vendor_id': '8086', 'product_id': '37c9'}])
        self.assertEqual(8, len(self.claimed()))
        self.assertIsNone(self.line_for(QAT))

    def test_the_line_is_the_operators(self):
        line = '[{"address": "*:83:*.*"},  {"vendor_id": "10de"}]'
        self.config(['{"vendor_id": "1234"}', line])
        for address in (FPGA, '0000:83:00.1', GPU0):
            self.assertEqual(f'[pci] device_spec = {line}',
                             self.line_for(address))
        self.assertIsNone(self.line_for(QAT))

    def test_a_physical_functions_address_means_its_virtual_ones_too(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova.pci.utils.is_physical_function',
            lambda *address: address == ('0000', '83', '00', '0')))
        self.config([{'address': FPGA}])
        self.assertEqual({FPGA, '0000:83:00.1', '0000:83:00.2'},
                         self.claimed())

    def test_remote_managed(self):
        """Nova takes such a device if it has a serial number."""
        self.config([{'vendor_id': '8086', 'product_id': '09c5',
                      'remote_managed': 'true'}])
        self.assertEqual({'0000:83:00.1', '0000:83:00.2'}, self.claimed())

    def test_an_address_that_nova_cannot_take(self):
        self.config([{'vendor_id': '10de'}])
        card = self.fake.connection.pci_info.devices['pci_0000_81_00_0']
        card.pci_device = card.pci_device.replace(
            '<domain>0</domain>', '<domain>65536</domain>')
        self.assertEqual({GPU1}, self.claimed())

    @hypothesis.given(
        strategies.sampled_from(['8086', '10de', '*']),
        strategies.sampled_from(['37c9', '09c4', '13f2', '*']),
        strategies.sampled_from([
            '*:*:*.*', '0000:81:*.*', '*:83:*.1', '84:*.*',
            {'bus': '8[12]', 'function': '[0-3]'}]))
    def test_as_nova_does(self, vendor_id, product_id, address):
        line = {'vendor_id': vendor_id, 'product_id': product_id,
                'address': address}
        self.config([line])
        theirs = whitelist.Whitelist([json.dumps(line)])
        self.assertEqual(
            {device['address'] for device in self.pci_devices()
             if theirs.device_assignable(device)}, self.claimed())

    def pci_devices(self):
        driver = libvirt_driver.LibvirtDriver(None)
        return json.loads(driver._get_pci_passthrough_devices())


class TestVgpu(NovaClaimsTestCase):

    def test_by_address(self):
        self.config(nvidia_11=[GPU0])
        self.assertEqual({GPU0}, self.claimed())
        self.assertEqual(
            '[mdev_nvidia-11] device_addresses = 0000:81:00.0',
            self.line_for(GPU0))

    def test_an_address_in_capitals(self):
        card = self.fake.connection.pci_info.devices['pci_0000_81_00_0']
        card.pci_device = card.pci_device.replace(
            '<bus>129</bus>', '<bus>174</bus>')
        self.config(nvidia_11=['0000:AE:00.0'])
        self.assertEqual({'0000:ae:00.0'}, self.claimed())

    def test_one_type_without_addresses_means_all_cards(self):
        self.config(nvidia_11=[])
        self.assertEqual({GPU0, GPU1}, self.claimed())
        self.assertIn('[devices] enabled_mdev_types = nvidia-11',
                      self.line_for(GPU0))

    def test_all_cards_that_make_the_type(self):
        self.config(nvidia_99=[])
        self.assertEqual(set(), self.claimed())

    def test_a_default_type_takes_what_has_no_address(self):
        self.config(nvidia_12=[GPU1], nvidia_11=[])
        self.assertIn('[mdev_nvidia-12]', self.line_for(GPU1))
        self.assertIn('nvidia-11', self.line_for(GPU0))

    @hypothesis.given(strategies.dictionaries(
        strategies.sampled_from(['nvidia_11', 'nvidia_12', 'nvidia_99']),
        strategies.sets(strategies.sampled_from([GPU0, GPU1]))))
    def test_whatever_nova_makes_vgpus_of_is_claimed(self, vgpus):
        addresses = [one for each in vgpus.values() for one in each]
        hypothesis.assume(len(addresses) == len(set(addresses)))
        self.config(**vgpus)
        cards = {self.address(name) for name in inventories(nova_driver())}
        self.assertEqual(cards | set(addresses), self.claimed())

    def address(self, name):
        return str(pci_address.PciAddress.parse_node_device(name))


def nova_driver():
    return libvirt_driver.LibvirtDriver(None)


def inventories(driver):
    """What Nova publishes of its vGPUs: card -> units."""
    return {name: inventory['total'] for name, inventory
            in driver._get_gpu_inventories().items()}


class TestOurMdevsDoNotDisturbNova(NovaClaimsTestCase):
    """Nova counts, and hands out, mediated devices that it did not make.

    Those of ours are on cards that it does not claim. In Nova 34's
    ``virt/libvirt/driver.py`` the type of such a card is None, or one that
    the card does not make (``_get_vgpu_type_per_pgpu``, 8879), so that they
    are left out of the inventories (``_count_mediated_devices``, 8931, and
    ``_count_mdev_capable_devices``, 8956), of ``max_instances`` (8990), of
    what a server may be given (``_get_existing_mdevs_not_assigned``, 9373),
    and nothing is made there (``_create_new_mediated_device``, 9435).
    """

    def create(self, address, mdev_type):
        self.node_devices.create_mdev(
            UUID, pci_address.PciAddress.parse(address), mdev_type)

    def assert_not_disturbed(self, ours, theirs):
        """:param ours: card and type; ``theirs`` is Nova's card"""
        self.assertEqual({theirs.node_device: 16},
                         inventories(nova_driver()))
        self.create(*ours)
        driver = nova_driver()
        self.assertEqual({theirs.node_device: 16}, inventories(driver))
        types = driver.supported_vgpu_types
        self.assertEqual(
            set(), driver._get_existing_mdevs_not_assigned(None, types))
        for parent in (theirs.node_device, None):
            made = driver._create_new_mediated_device(parent)
            self.assertIn((made, theirs), [
                (mdev.uuid, mdev.parent)
                for mdev in self.node_devices.look().mdevs])
        self.assertEqual({theirs.node_device: 16}, inventories(driver))
        self.assertNotIn(
            UUID, driver._get_existing_mdevs_not_assigned(None, types))

    def test_same_type_on_another_card(self):
        self.config(nvidia_11=[GPU0])
        self.assertNotIn(GPU1, self.claimed())
        self.assert_not_disturbed(
            (GPU1, 'nvidia-11'), pci_address.PciAddress.parse(GPU0))

    def test_same_type_on_another_card_with_a_limit(self):
        self.config(nvidia_11=[GPU0])
        conf.CONF.set_override('max_instances', 16, 'mdev_nvidia-11')
        self.assert_not_disturbed(
            (GPU1, 'nvidia-11'), pci_address.PciAddress.parse(GPU0))

    def test_a_default_type_that_our_card_does_not_make(self):
        card = self.fake.connection.pci_info.devices['pci_0000_82_00_0']
        card.pci_device = card.pci_device.replace('nvidia-11', 'nvidia-10')
        self.config(nvidia_11=[])
        self.assertNotIn(GPU1, self.claimed())
        self.assert_not_disturbed(
            (GPU1, 'nvidia-12'), pci_address.PciAddress.parse(GPU0))
