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


"""Checked against Nova's own driver, whose rules the module repeats."""

import fixtures
import hypothesis
from hypothesis import strategies
from nova.virt.libvirt import driver as libvirt_driver

from nova_accel import conf
from nova_accel.host import nova_vgpus
from nova_accel.model import pci_address
from unit.host import claimed_host
from unit.host.claimed_host import GPU0
from unit.host.claimed_host import GPU1

UUID = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'
VF1, VF2 = '0000:ae:00.1', '0000:ae:00.2'


class VgpusTestCase(claimed_host.ClaimedHostTestCase):
    def config(self, **vgpus):
        self.configure(
            vgpus={
                name.replace('_', '-'): addresses
                for name, addresses in vgpus.items()
            }
        )

    def line_for(self, address):
        return nova_vgpus.Vgpus().line_for(self.function(address))

    def claimed(self):
        vgpus = nova_vgpus.Vgpus()
        return {
            str(function.address)
            for function in self.node_devices.look().functions.values()
            if vgpus.line_for(function) is not None
        }


class TestVgpus(VgpusTestCase):
    def test_by_address(self):
        self.config(nvidia_11=[GPU0])
        self.assertEqual({GPU0}, self.claimed())
        self.assertEqual(
            '[mdev_nvidia-11] device_addresses = 0000:81:00.0',
            self.line_for(GPU0),
        )

    def test_an_address_in_capitals(self):
        """Nova does not find it, but the operator has named the card."""
        self.config(nvidia_557=['0000:AE:00.1'])
        self.assertEqual({VF1}, self.claimed())
        self.assertEqual(
            '[mdev_nvidia-557] device_addresses = 0000:AE:00.1',
            self.line_for(VF1),
        )

    def test_one_type_without_addresses_means_all_cards(self):
        self.config(nvidia_11=[])
        self.assertEqual({GPU0, GPU1}, self.claimed())
        self.assertIn(
            '[devices] enabled_mdev_types = nvidia-11', self.line_for(GPU0)
        )

    def test_virtual_functions_that_make_the_type(self):
        self.config(nvidia_557=[])
        self.assertEqual({VF1, VF2}, self.claimed())

    def test_the_line_is_the_operators(self):
        self.config(nvidia_12=[GPU0, VF1], nvidia_11=[])
        self.assertEqual(
            f'[mdev_nvidia-12] device_addresses = {GPU0},{VF1}',
            self.line_for(VF1),
        )
        self.assertEqual(
            '[devices] enabled_mdev_types = nvidia-12,nvidia-11 (without '
            '[mdev_nvidia-11] device_addresses it means all other cards that '
            'make nvidia-11)',
            self.line_for(GPU1),
        )

    def test_the_second_type_without_addresses_means_nothing(self):
        self.config(nvidia_557=[], nvidia_11=[])
        self.assertEqual({VF1, VF2}, self.claimed())

    def test_an_old_name_of_a_section(self):
        config = self.fake.useFixture(fixtures.TempDir()).join('nova.conf')
        with open(config, 'w') as file:
            file.write(
                '[devices]\nenabled_vgpu_types = nvidia-11\n'
                f'[vgpu_nvidia-11]\ndevice_addresses = {GPU0}\n'
            )
        conf.CONF.clear()
        self.addCleanup(conf.CONF.reset)
        conf.CONF(['--config-file', config], project='nova')
        self.assertEqual({GPU0}, self.claimed())

    def test_all_cards_that_make_the_type(self):
        self.config(nvidia_99=[])
        self.assertEqual(set(), self.claimed())

    def test_a_default_type_takes_what_has_no_address(self):
        self.config(nvidia_12=[GPU1], nvidia_11=[])
        self.assertIn('[mdev_nvidia-12]', self.line_for(GPU1))
        self.assertIn('nvidia-11', self.line_for(GPU0))

    @hypothesis.given(
        strategies.dictionaries(
            strategies.sampled_from(
                ['nvidia_11', 'nvidia_12', 'nvidia_99', 'nvidia_557']
            ),
            strategies.sets(strategies.sampled_from([GPU0, GPU1, VF1, VF2])),
        )
    )
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
    return {
        name: inventory['total']
        for name, inventory in driver._get_gpu_inventories().items()
    }


class TestOurMdevsDoNotDisturbNova(VgpusTestCase):
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
            UUID, pci_address.PciAddress.parse(address), mdev_type
        )

    def assert_not_disturbed(self, ours, theirs):
        """:param ours: card and type; ``theirs`` is Nova's card"""
        self.assertEqual({theirs.node_device: 16}, inventories(nova_driver()))
        self.create(*ours)
        driver = nova_driver()
        self.assertEqual({theirs.node_device: 16}, inventories(driver))
        types = driver.supported_vgpu_types
        self.assertEqual(
            set(), driver._get_existing_mdevs_not_assigned(None, types)
        )
        for parent in (theirs.node_device, None):
            made = driver._create_new_mediated_device(parent)
            self.assertIn(
                (made, theirs),
                [
                    (mdev.uuid, mdev.parent)
                    for mdev in self.node_devices.look().mdevs
                ],
            )
        self.assertEqual({theirs.node_device: 16}, inventories(driver))
        self.assertNotIn(
            UUID, driver._get_existing_mdevs_not_assigned(None, types)
        )

    def test_same_type_on_another_card(self):
        self.config(nvidia_11=[GPU0])
        self.assertNotIn(GPU1, self.claimed())
        self.assert_not_disturbed(
            (GPU1, 'nvidia-11'), pci_address.PciAddress.parse(GPU0)
        )

    def test_same_type_on_another_card_with_a_limit(self):
        self.config(nvidia_11=[GPU0])
        conf.CONF.set_override('max_instances', 16, 'mdev_nvidia-11')
        self.assert_not_disturbed(
            (GPU1, 'nvidia-11'), pci_address.PciAddress.parse(GPU0)
        )

    def test_a_default_type_that_our_card_does_not_make(self):
        card = self.fake.connection.pci_info.devices['pci_0000_82_00_0']
        card.pci_device = card.pci_device.replace('nvidia-11', 'nvidia-10')
        self.config(nvidia_11=[])
        self.assertNotIn(GPU1, self.claimed())
        self.assert_not_disturbed(
            (GPU1, 'nvidia-12'), pci_address.PciAddress.parse(GPU0)
        )
