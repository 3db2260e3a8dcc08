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


import dataclasses
import functools
import json
import os
import pathlib
import shutil
import uuid

import fixtures
from oslo_config import fixture as config_fixture
from oslo_utils import uuidutils
import testtools

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.drivers import loading
from nova_accel.host import host_use
from nova_accel.host import libvirt_devices
from nova_accel.host import nova_claims
from nova_accel.host import pci_function
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.providers import provider_layout
from nova_accel.testing import devices
from nova_accel.testing import fake_fpga
from nova_accel.testing import libvirt
from nova_accel.testing import pci_functions
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import last_answers
from nova_accel.virt.publishing import units_in_use

OTHER = '0000:3e:00.0'
NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
GOLDEN = pathlib.Path(__file__).with_name('simulated_host.json')
GPU, FPGA, QAT = '0000:81:00.0', '0000:82:00.0', '0000:83:00.0'


def a_line(**keys):
    return json.dumps(keys)


class DiscoveryTestCase(testtools.TestCase):
    hardware = staticmethod(devices.pci_info)

    def setUp(self):
        super().setUp()
        self.useFixture(fake_fpga.Installed())
        self.fake = self.useFixture(libvirt.Libvirt(self.hardware()))
        self.config = self.useFixture(config_fixture.Config(conf.CONF))
        self.node_devices = libvirt_devices.NodeDevices(self.fake.host)
        self.in_use = {}
        self.held = ()
        self.holds = set()
        self.serials = {}
        self.answers = last_answers.LastAnswers()
        self.drivers = dict(
            loading.load(self.node_devices, self.fake.sysfs.sysfs, NODE_UUID)
        )

    def discover(self, *lines):
        return discovery.discover(
            self.node_devices,
            self.drivers,
            device_spec.parse(lines or devices.DEVICE_SPEC, self.drivers),
            nova_claims.NovaClaims('host1', NODE_UUID),
            lambda _mdevs: units_in_use.Found(
                self.in_use,
                self.held,
                frozenset(self.holds),
                self.serials,
            ),
            lambda: host_use.HostUse(self.fake.sysfs.sysfs),
            self.answers,
        )

    def addresses(self, inventory):
        return [str(device.address) for device in inventory.devices]

    def assert_refused(self, inventory, *texts):
        """One device is, with all the texts."""
        (reason,) = inventory.refused
        for text in texts:
            self.assertIn(text, reason)


class TestBoards(DiscoveryTestCase):
    """Devices with the same ids, on different boards."""

    hardware = staticmethod(functools.partial(devices.pci_info, gpus=2))

    def setUp(self):
        super().setUp()
        for address, board in (('81', '157e'), ('82', '14a9')):
            self.fake.sysfs.set(
                f'0000:{address}:00.0',
                subsystem_vendor='0x10de',
                subsystem_device=f'0x{board}',
            )

    def test_a_line_for_one_of_them(self):
        line = json.loads(devices.DEVICE_SPEC[0])
        self.assertEqual(
            ['0000:82:00.0'],
            self.addresses(
                self.discover(a_line(**line, subsystem_product_id='14A9'))
            ),
        )

    def test_an_unreadable_board_is_told(self):
        self.fake.sysfs.set('0000:82:00.0', subsystem_device='nonsense')
        line = json.loads(devices.DEVICE_SPEC[0])
        found = self.discover(a_line(**line))
        self.assertEqual(
            ['0000:81:00.0', '0000:82:00.0'], self.addresses(found)
        )
        self.assert_refused(found, '0000:82:00.0', 'subsystem_device')
        self.assertEqual(set(found.refused), found.noted)


class TestSimulatedHost(DiscoveryTestCase):
    def test_golden(self):
        """As the host reports it; NOVA_ACCEL_REWRITE_GOLDEN=1 rewrites it."""
        inventory = self.discover()
        layout = provider_layout.layout('host1', NODE_UUID, inventory.devices)
        found = (
            json.dumps(
                {
                    'devices': [
                        device.to_report(NODE_UUID, layout.rp_uuids)
                        for device in inventory.devices
                    ],
                    'refused': inventory.refused,
                },
                indent=2,
            )
            + '\n'
        )
        if os.environ.get('NOVA_ACCEL_REWRITE_GOLDEN'):
            GOLDEN.write_text(found)
        self.assertEqual(GOLDEN.read_text(), found)

    def test_the_same_whatever_is_in_use(self):
        before = self.discover()
        (gpu,) = (
            device for device in before.devices if str(device.address) == GPU
        )
        handle = gpu.deployables[0].handles[7]
        self.drivers['mdev'].plug(handle)
        self.assertEqual(before, self.discover())
        self.drivers['mdev'].unplug(handle)
        self.assertEqual(before, self.discover())


class TestLines(DiscoveryTestCase):
    def test_without_lines_nothing_is_looked_at(self):
        self.assertEqual(
            discovery.Discovered(),
            discovery.discover(
                None,
                self.drivers,
                (),
                nova_claims.NovaClaims('host1', NODE_UUID),
                None,
                None,
                self.answers,
            ),
        )

    def test_the_first_line_rules(self):
        inventory = self.discover(
            a_line(
                address='83:00.1',
                driver='pci',
                traits=['CUSTOM_RACK_7'],
                pool=False,
            ),
            devices.QAT_SPEC,
        )
        first, *others = inventory.devices
        self.assertEqual(
            ({'CUSTOM_RACK_7'}, False), (first.operator_traits, first.pooled)
        )
        self.assertEqual(
            {(frozenset(), True)},
            {(other.operator_traits, other.pooled) for other in others},
        )
        self.assertEqual(7, len(others))

    def test_a_line_that_rules_no_device(self):
        lost = a_line(vendor_id='10ee', driver='pci')
        again = a_line(address='82:00.0', driver='fake')
        inventory = self.discover(devices.FPGA_SPEC, lost, again)
        self.assertEqual((lost, again), inventory.unmatched)
        self.assertEqual([FPGA], self.addresses(inventory))

    def test_a_key_that_only_another_driver_reads(self):
        for keys, readers in (
            ({'mdev_type': 'nvidia-11'}, 'mdev, nvidia_vgpu'),
            ({'vgpu_types': {'558': 1}}, 'nvidia_vfio'),
            ({'whole': True}, 'fpga_dfl, fpga_region, xrt'),
            ({'contents_attribute': 'id'}, 'fpga_dfl, fpga_region'),
        ):
            self.assert_refused(
                self.discover(
                    a_line(address='81:00.0', driver='pci', type='GPU', **keys)
                ),
                f'"{next(iter(keys))}" is not for the driver pci, but for '
                f'{readers}: remove',
            )

    def test_a_line_may_match_a_card_and_its_virtual_functions(self):
        line = a_line(address='82:*.*', driver='fake')
        inventory = self.discover(line)
        self.assertEqual([FPGA], self.addresses(inventory))
        self.assertEqual((), inventory.refused)

    def test_a_part_of_a_device_is_no_other_device(self):
        line = a_line(vendor_id='8086', product_id='09c5', driver='pci')
        inventory = self.discover(line, devices.FPGA_SPEC)
        self.assertEqual([FPGA], self.addresses(inventory))
        self.assertEqual(
            (
                '0000:82:00.1, 0000:82:00.2 ([nova_accel] device_spec = '
                f'{line}): 0000:82:00.1 is a part of {FPGA} ([nova_accel] '
                f'device_spec = {devices.FPGA_SPEC})',
            ),
            inventory.refused,
        )

    def test_what_a_card_does_not_hand_out_is_a_part_of_it_too(self):
        """As virtual functions that are more than the card has room for."""
        self.change_fakes_device(
            lambda device: dataclasses.replace(
                device, deployables=device.deployables[:1]
            )
        )
        inventory = self.discover(a_line(address='82:*.*', driver='fake'))
        self.assertEqual([FPGA], self.addresses(inventory))
        self.assertEqual((), inventory.refused)

    def test_a_region_type_of_two_products(self):
        card = '0000:84:00.0'
        devices._add_sriov(
            self.fake.connection.pci_info,
            0x84,
            0,
            2,
            prod_ids=('09c4', '09c5'),
            prod_name='PAC',
            driver_name='dfl-pci',
        )
        self.assertEqual(
            [FPGA, card], self.addresses(self.discover(devices.FPGA_SPEC))
        )
        self.change_fakes_device(
            lambda device: dataclasses.replace(
                device,
                product=f'PAC {device.address.bus:x}',
                product_id=f'09{device.address.bus:x}',
            )
        )
        inventory = self.discover(devices.FPGA_SPEC)
        self.assertEqual([FPGA], self.addresses(inventory))
        self.assert_refused(inventory, card, FPGA, 'PAC 82', 'PAC 84')

    def test_a_way_of_cleaning_that_the_driver_does_not_have(self):
        inventory = self.discover(
            a_line(address='83:00.1', driver='pci', clean='sanitize')
        )
        self.assertEqual((), inventory.devices)
        self.assert_refused(
            inventory, '"clean": "sanitize"', 'command, none, reset'
        )

    def change_fakes_device(self, change):
        driver = self.drivers['fake']._driver
        discover = driver.discover
        driver.discover = lambda *arguments: change(discover(*arguments))


class TestBrokenDevices(DiscoveryTestCase):
    def assert_the_rest_works(self, inventory, missing, *texts):
        self.assertNotIn(missing, self.addresses(inventory))
        self.assertEqual(9, len(inventory.devices))
        self.assert_refused(inventory, *texts)

    def test_xml(self):
        card = self.fake.connection.pci_info.devices['pci_0000_81_00_0']
        card.pci_device = '<device/>'
        self.assert_the_rest_works(self.discover(), GPU, 'pci_0000_81_00_0')

    def test_driver_refuses(self):
        line = a_line(address=GPU, driver='mdev', mdev_type='nvidia-99')
        self.assert_the_rest_works(
            self.discover(line, *devices.DEVICE_SPEC),
            GPU,
            GPU,
            f'[nova_accel] device_spec = {line}',
            'nvidia-11, nvidia-12',
        )

    def test_no_trait_can_be_made(self):
        card = self.fake.connection.pci_info.devices['pci_0000_81_00_0']
        card.pci_device = card.pci_device.replace('nvidia-11', '-')
        line = a_line(address=GPU, driver='mdev', mdev_type='-')
        self.assert_the_rest_works(
            self.discover(line, *devices.DEVICE_SPEC),
            GPU,
            GPU,
            'no trait can be made',
        )

    def test_driver_is_broken(self):
        def discover(*_args):
            raise KeyError('firmware')

        self.drivers['mdev']._driver.discover = discover
        self.assert_the_rest_works(
            self.discover(), GPU, GPU, 'driver mdev', 'firmware'
        )

    def test_libvirt_is_broken(self):
        """Then nothing is known: that is not an empty host."""

        def fail():
            raise exceptions.DeviceError('libvirt does not answer')

        self.node_devices.look = fail
        self.assertRaises(exceptions.DeviceError, self.discover)


class TestLostDevices(DiscoveryTestCase):
    def faults(self):
        inventory = self.discover()
        self.assertEqual((), inventory.refused)
        return {
            str(device.address)
            for device in inventory.devices
            if device.fault is not None
        }

    def test_faulty_until_they_answer(self):
        """Of each driver: mediated devices, FPGA, virtual functions."""
        self.assertEqual(set(), self.faults())
        cards = {
            device.address: str(device.address)
            for device in self.discover().devices
        }
        for lost, address in cards.items():
            self.fake.sysfs.lose(lost)
            self.assertEqual({address}, self.faults())
            self.fake.sysfs.revive(lost, '8086')
            self.assertEqual(set(), self.faults())

    def test_a_part_of_a_device(self):
        self.fake.sysfs.lose('0000:82:00.1')
        self.assertEqual({FPGA}, self.faults())


class TestNovaHasIt(DiscoveryTestCase):
    def test_both_lines_are_named(self):
        theirs = a_line(
            vendor_id='8086', product_id='37c9', address='*:83:00.3'
        )
        self.config.config(group='pci', device_spec=[theirs])
        inventory = self.discover()
        self.assertNotIn('0000:83:00.3', self.addresses(inventory))
        self.assertEqual(9, len(inventory.devices))
        self.assert_refused(
            inventory,
            '0000:83:00.3',
            f'[nova_accel] device_spec = {devices.QAT_SPEC}',
            f'[pci] device_spec = {theirs}',
        )

    def test_vgpu(self):
        self.config.config(group='devices', enabled_mdev_types=['nvidia-12'])
        inventory = self.discover()
        self.assertEqual(9, len(inventory.devices))
        self.assert_refused(
            inventory,
            GPU,
            f'[nova_accel] device_spec = {devices.GPU_SPEC}',
            '[devices] enabled_mdev_types = nvidia-12',
        )

    def test_a_part_of_the_device(self):
        self.config.config(
            group='pci',
            device_spec=[
                a_line(vendor_id='8086', product_id='09c5', address='*:*.2')
            ],
        )
        inventory = self.discover()
        self.assertNotIn(FPGA, self.addresses(inventory))
        self.assert_refused(inventory, FPGA, 'Nova claims 0000:82:00.2')

    def test_the_card_of_the_device(self):
        """Its virtual functions would go when a guest gets the card."""
        self.config.config(
            group='pci',
            device_spec=[a_line(vendor_id='8086', product_id='37c8')],
        )
        inventory = self.discover()
        self.assertEqual([GPU, FPGA], self.addresses(inventory))
        self.assert_refused(
            inventory, 'and 5 more', f'Nova claims {QAT}', devices.QAT_SPEC
        )


class EmptyHostTestCase(DiscoveryTestCase):
    """A host that a test fills."""

    @staticmethod
    def hardware():
        return devices.pci_info(gpus=0, fpgas=0, qats=0)

    def add(self, *functions):
        pci_functions.add(self.fake.connection.pci_info, *functions)

    def a_gpu(self, address, *group, **facts):
        return pci_functions.function(
            address, '10de', '2235', with_functions=group, **facts
        )


class TestPartsOfCards(EmptyHostTestCase):
    def setUp(self):
        super().setUp()
        _card, self.part = pci_functions.virtual_functions(
            self.a_gpu('0000:3d:00.0'), 1, '2236'
        )
        self.add(self.part)

    def test_the_host_does_not_have_the_card(self):
        inventory = self.discover(a_line(vendor_id='10de', driver='mdev'))
        self.assert_refused(inventory, str(self.part.address))

    def test_a_drivers_own_idea_of_a_card(self):
        line = a_line(vendor_id='10de', driver='pci', type='GPU')
        for card in (None, '0000:3d:00.0', ['a list']):

            def refuse(*_arguments, card=card):
                raise exceptions.PartOfCard('it is a part', card)

            self.drivers['pci']._driver.discover = refuse
            self.assert_refused(self.discover(line), 'it is a part')


class TestOneBadUnit(EmptyHostTestCase):
    def test_the_others_are_offered(self):
        card, *parts = pci_functions.virtual_functions(
            self.a_gpu('0000:3d:00.0'), 3, '2236'
        )
        parts[1] = dataclasses.replace(
            parts[1],
            iommu_members=(parts[1].address, self.a_gpu(OTHER).address),
        )
        self.add(card, *parts, self.a_gpu(OTHER))
        inventory = self.discover(
            a_line(address=str(card.address), driver='fake', type='GPU')
        )
        (device,) = inventory.devices
        self.assertEqual(
            [parts[0].address, parts[2].address],
            [handle.address for handle in device.handles],
        )
        self.assert_refused(
            inventory, str(parts[1].address), 'shares the IOMMU group', OTHER
        )


class TestFpgasOfSeveralVendors(EmptyHostTestCase):
    """Each way in which the kernel shows an FPGA, in one host."""

    dfl, manager, xrt = '0000:3d:00.0', '0000:3e:00.0', '0000:3f:00.0'
    types = {
        dfl: 'ce48969398f05f33946d560708be108a',
        manager: '69528db6eb31577a8c3668f9faa081f6',
        xrt: 'fb2b2c5a19ed63593fea95f51fbc8eb9',
    }

    def setUp(self):
        super().setUp()
        for address, ids in (
            (self.dfl, ('8086', '09c4', '09c5')),
            (self.manager, ('10ee', '5000', '5001')),
        ):
            vendor, card, part = ids
            self.add(
                *pci_functions.virtual_functions(
                    pci_functions.function(address, vendor, card), 1, part
                )
            )
        user = self.xrt[:-1] + '1'
        self.add(
            pci_functions.function(self.xrt, '10ee', '5004'),
            pci_functions.function(user, '10ee', '5005'),
        )
        self.fake.sysfs.set(
            self.dfl,
            **{
                'fpga_region__region0__dfl-fme.0__dfl-fme-region.0__fpga_region__'
                'region1__compat_id': self.types[self.dfl]
            },
        )
        self.fake.sysfs.set(
            self.manager,
            fpga_manager__fpga0__state='operating',
            fpga_region__region0__compat_id=self.types[self.manager],
        )
        self.fake.sysfs.set(
            self.xrt, dev_offline='0', interface_uuids=(self.types[self.xrt])
        )
        self.fake.sysfs.set(user, xclbinuuid='')

    def test_each_has_its_driver_its_traits_and_its_provider(self):
        inventory = self.discover(
            a_line(vendor_id='8086', driver='fpga_dfl'),
            a_line(vendor_id='10ee', product_id='5000', driver='fpga_region'),
            a_line(vendor_id='10ee', product_id='5004', driver='xrt'),
        )
        self.assertEqual(
            (
                (),
                {
                    self.dfl: ('fpga_dfl', 'Intel'),
                    self.manager: ('fpga_region', 'Xilinx'),
                    self.xrt: ('xrt', 'Xilinx'),
                },
            ),
            (
                tuple(inventory.refused),
                {
                    str(device.address): (device.driver, device.vendor)
                    for device in inventory.devices
                },
            ),
        )
        providers = provider_layout.layout(
            'host1', NODE_UUID, inventory.devices
        )
        traits = {
            provider.uuid: provider.traits for provider in providers.providers
        }
        for device in inventory.devices:
            (deployable,) = device.deployables
            of_regions = {
                trait
                for trait in traits[
                    providers.rp_uuids[device.name, deployable.name]
                ]
                if '_REGION_' in trait
            }
            self.assertEqual(
                {
                    f'CUSTOM_FPGA_{device.vendor.upper()}_REGION_'
                    + str(uuid.UUID(self.types[str(device.address)]))
                    .upper()
                    .replace('-', '_')
                },
                of_regions,
            )


class TestCarvedHost(EmptyHostTestCase):
    """148 functions of the vendor: four carved cards, and one that is whole.

    As Cyborg found them, and offered each as a GPU. The whole one has four
    functions of its own: graphics, sound, USB and its port.
    """

    cards = [f'0000:{bus}:00.0' for bus in ('3d', '3e', '3f', '40')]
    whole = [f'0000:81:00.{number}' for number in range(4)]

    def setUp(self):
        super().setUp()
        # Two are carved into mdevs, and two by the vendor's VFIO driver.
        for number, address in enumerate(self.cards):
            card, *parts = pci_functions.virtual_functions(
                self.a_gpu(address, max_virtual_functions=35),
                35,
                '2235',
                mdev_types={'nvidia-557': 1} if number % 2 else {},
            )
            self.add(card, *parts)
            for part in parts if number % 2 == 0 else ():
                self.fake.sysfs.set(
                    part.address, nvidia__current_vgpu_type='0'
                )
        self.add(
            *(
                self.a_gpu(
                    address,
                    *(
                        other
                        for other in ('0000:80:01.0', *self.whole)
                        if other != address
                    ),
                    iommu_group=5,
                    class_code=code,
                )
                for address, code in zip(
                    self.whole,
                    ('030000', '040300', '0c0330', '0c8000'),
                    strict=True,
                )
            )
        )
        self.add(
            pci_functions.function(
                '0000:80:01.0',
                '8086',
                '2030',
                class_code='060400',
                is_bridge=True,
                iommu_group=5,
                with_functions=self.whole,
            )
        )

    def test_publishes_exactly_the_usable_one(self):
        functions = self.node_devices.look().functions.values()
        self.assertEqual(
            148, sum(function.vendor_id == '10de' for function in functions)
        )
        inventory = self.discover(
            a_line(vendor_id='10de', driver='pci', type='GPU', unit='slot')
        )
        (gpu,) = inventory.devices
        ((handle,),) = (each.handles for each in gpu.deployables)
        self.assertEqual(
            self.whole, [str(address) for address in handle.functions]
        )
        for card in self.cards:
            self.assertTrue(
                any(reason.startswith(card) for reason in inventory.refused)
            )

    def test_what_the_host_uses_is_published_as_faulty(self):
        """Three look usable: one is the console, one computes for the host."""
        self.add(
            *(
                self.a_gpu(f'0000:{bus}:00.0', class_code='030000')
                for bus in ('82', '83')
            )
        )
        self.fake.sysfs.set('0000:82:00.0', boot_vga='1')
        self.fake.sysfs.set('0000:83:00.0', drm__renderD128__dev='226:128')
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.gpu_nodes.opened',
                lambda: {'dri/renderD128': [(812, 'python3')]},
            )
        )
        inventory = self.discover(
            a_line(vendor_id='10de', driver='nvidia_gpu')
        )
        whole, console, computing = inventory.devices
        self.assertIsNone(whole.fault)
        self.assertIn('booted with', console.fault)
        self.assertIn('python3', computing.fault)

    def test_without_a_unit_it_is_refused_with_the_key_that_helps(self):
        inventory = self.discover(
            a_line(address=self.whole[0], driver='pci', type='GPU')
        )
        self.assertEqual((), inventory.devices)
        self.assert_refused(
            inventory,
            'IOMMU group 5',
            *self.whole[1:],
            '"unit": "slot" or "iommu_group"',
        )

    def test_a_refused_card_is_told_once(self):
        """Not for each of its functions, which the line matches too."""
        for driver, cause in (
            ('nvidia_vfio', '"vgpu_types"'),
            ('gpu_sriov', 'is no device of'),
            ('nvidia_gpu', 'virtual functions are enabled'),
        ):
            inventory = self.discover(
                a_line(address='0000:3d:*.*', driver=driver)
            )
            self.assertEqual((), inventory.devices)
            self.assert_refused(inventory, self.cards[0], cause)

    def test_a_line_that_does_not_match_the_card(self):
        inventory = self.discover(
            a_line(address='0000:3d:00.1', driver='nvidia_vfio'),
        )
        self.assert_refused(inventory, 'must match its card', self.cards[0])

    def test_functions_of_a_card_with_the_same_reason(self):
        inventory = self.discover(
            a_line(address='0000:3d:*.*', driver='pci', type='GPU')
        )
        self.assertEqual((), inventory.devices)
        card, parts = inventory.refused
        self.assertIn('35 virtual functions are enabled', card)
        self.assertIn('and 32 more', parts)

    def test_a_card_that_libvirt_does_not_describe(self):
        name = 'pci_' + self.cards[1].translate({58: 95, 46: 95})
        self.fake.connection.pci_info.devices[name].pci_device = '<device/>'
        for driver in ('mdev', 'nvidia_vfio'):
            inventory = self.discover(
                a_line(address='0000:3e:*.*', driver=driver, type='GPU')
            )
            self.assertEqual((), inventory.devices)
            self.assert_refused(inventory, name)

    def test_mdevs_of_the_carved(self):
        inventory = self.discover(
            a_line(address='0000:3e:*.*', driver='mdev', type='GPU')
        )
        (card,) = inventory.devices
        self.assertEqual(35, len(card.deployables[0].handles))
        self.assertEqual((), inventory.refused)


class TestIdentity(EmptyHostTestCase):
    def identities(self, *functions):
        self.add(*functions)
        (device,) = self.discover(
            a_line(address='3d:*.*', driver='gpu_sriov', pool=False)
        ).devices
        return [handle.identity for handle in device.handles]

    def test_the_serial_number_of_the_card(self):
        card, *parts = pci_functions.virtual_functions(
            pci_functions.function('0000:3d:00.0', '8086', '56c0'), 2, '56c0'
        )
        self.assertEqual(2 * ['8086:56c0'], self.identities(card, *parts))
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.host.pci_function.PciFunction.card_serial_number',
                property(
                    lambda function: (
                        300 * 'S' if function.address == card.address else None
                    )
                ),
            )
        )
        for identity in self.identities():
            self.assertEqual(255, len(identity))
            self.assertTrue(
                identity.startswith('8086:56c0 serial number SSS'), identity
            )

    def test_vendor_product_and_class(self):
        """Another GPU has the address after a change of the firmware."""
        line = a_line(address='3d:00.0', driver='pci', type='GPU')
        found = []
        for vendor_id, product_id, class_code in (
            ('10de', '2331', '030200'),
            ('1002', '74a1', '038000'),
            ('10de', '2331', None),
        ):
            self.add(
                pci_functions.function(
                    '0000:3d:00.0',
                    vendor_id,
                    product_id,
                    class_code=class_code,
                )
            )
            (device,) = self.discover(line).devices
            found += [handle.identity for handle in device.handles]
        self.assertEqual(
            ['10de:2331 class 0302', '1002:74a1 class 0380', '10de:2331'],
            found,
        )


class TestHostUse(EmptyHostTestCase):
    def setUp(self):
        super().setUp()
        self.card, *self.parts = pci_functions.virtual_functions(
            pci_functions.function('0000:3d:00.0', '8086', '56c0'), 2, '56c0'
        )
        self.add(self.card, *self.parts)

    def use(self, *functions):
        for function in functions:
            self.fake.sysfs.set(function.address, boot_vga='1')
        return self.discover(a_line(address='3d:00.0', driver='gpu_sriov'))

    def test_a_unit_of_several(self):
        inventory = self.use(self.parts[0])
        (device,) = inventory.devices
        self.assertEqual(
            [self.parts[1].address],
            [handle.address for handle in device.handles],
        )
        self.assertIsNone(device.fault)
        self.assert_refused(
            inventory, str(self.parts[0].address), 'booted with'
        )

    def test_all_units(self):
        inventory = self.use(*self.parts)
        (device,) = inventory.devices
        self.assertEqual(2, len(list(device.handles)))
        for part in self.parts:
            self.assertIn(str(part.address), device.fault)
        self.assertEqual((), inventory.refused)

    def test_the_card_itself_is_no_guests(self):
        (device,) = self.use(self.card).devices
        self.assertIsNone(device.fault)

    def test_it_cannot_be_read(self):
        """Which disks there are; only a function with a disk is lost."""
        for part in self.parts:
            self.fake.sysfs.set(part.address)
        path = self.fake.sysfs.root / 'class/block'
        path.parent.mkdir()
        path.symlink_to(path)
        (device,) = self.use().devices
        self.assertIsNone(device.fault)
        for number, part in enumerate(self.parts):
            disk = self.fake.sysfs.root.joinpath(
                'bus/pci/devices', str(part.address), 'vda'
            )
            disk.mkdir()
            (disk / 'subsystem').symlink_to('../class/block')
            inventory = self.use()
            (device,) = inventory.devices
            if number == 0:
                self.assertEqual(
                    [self.parts[1].address],
                    [handle.address for handle in device.handles],
                )
                told = '\n'.join(inventory.refused)
                self.assertIn('class/block cannot be read: ELOOP', told)
                self.assertIn('class/block cannot be listed: ELOOP', told)
                self.assertEqual(2, len(inventory.refused))
        self.assertIn('cannot find out', device.fault)

    def test_it_cannot_be_read_of_one_unit(self):
        path = (
            self.fake.sysfs.root / f'bus/pci/devices/{self.parts[0].address}'
        )
        self.fake.sysfs.set(self.parts[0].address)
        (path / 'boot_vga').mkdir()
        inventory = self.use()
        (device,) = inventory.devices
        self.assertEqual(
            [self.parts[1].address],
            [handle.address for handle in device.handles],
        )
        self.assert_refused(
            inventory, f'boot_vga of {self.parts[0].address}', 'EISDIR'
        )


class TestDualPortDrives(EmptyHostTestCase):
    """Two controllers of one drive; guests would share its namespaces."""

    ports = ['0000:3d:00.0', '0000:3e:00.0']
    line = a_line(vendor_id='144d', driver='nvme')

    def setUp(self):
        super().setUp()
        for port in self.ports:
            self.add(
                pci_functions.function(
                    port, '144d', 'a824', class_code='010802'
                )
            )
            self.bind(port)

    def bind(self, port, nqn='nqn.1994-11.com.samsung:S1', serial='S1'):
        self.fake.sysfs.set(
            port,
            nvme__nvme0__subsysnqn=nqn,
            nvme__nvme0__model='PM1733',
            nvme__nvme0__serial=serial,
        )

    def unbind(self, port):
        """libvirt takes it for a guest."""
        function = self.fake.sysfs.root / 'bus/pci/devices' / port
        shutil.rmtree(function / 'nvme')

    def hold(self, port, inventory):
        """An instance has it from now on."""
        (device,) = (
            each for each in inventory.devices if str(each.address) == port
        )
        (handle,) = device.handles
        self.holds = {handle.uuid}
        self.serials = {handle.address: handle.serial_number}

    def assert_only(self, port):
        inventory = self.discover(self.line)
        self.assertEqual([port], self.addresses(inventory))
        self.assert_refused(inventory, *self.ports, 'same SSD', 'PM1733')
        return inventory

    def test_one_is_offered(self):
        self.assert_only(self.ports[0])

    def test_the_operator_chooses_which(self):
        line = a_line(address=self.ports[1], driver='nvme')
        inventory = self.discover(line)
        self.assertEqual(self.ports[1:], self.addresses(inventory))
        self.assertEqual((), inventory.refused)

    def test_while_a_guest_has_it(self):
        for restart in (False, True):
            self.hold(self.ports[0], self.assert_only(self.ports[0]))
            self.unbind(self.ports[0])
            if restart:
                self.answers = last_answers.LastAnswers()
            self.assert_only(self.ports[0])
            self.bind(self.ports[0])

    def test_while_a_guest_has_the_second(self):
        line = a_line(address=self.ports[1], driver='nvme')
        self.hold(self.ports[1], self.discover(line))
        self.unbind(self.ports[1])
        self.answers = last_answers.LastAnswers()
        self.assert_only(self.ports[1])

    def test_while_it_comes_back(self):
        self.assert_only(self.ports[0])
        self.unbind(self.ports[0])
        self.assert_only(self.ports[0])

    def test_instances_keep_what_they_have(self):
        """Of two that were offered while they did not tell what they are."""
        first = self.discover(a_line(address=self.ports[0], driver='nvme'))
        second = self.discover(a_line(address=self.ports[1], driver='nvme'))
        self.holds = {
            handle.uuid
            for inventory in (first, second)
            for device in inventory.devices
            for handle in device.handles
        }
        inventory = self.discover(self.line)
        self.assertEqual(self.ports, self.addresses(inventory))

    def test_drives_that_are_no_such_pair(self):
        for facts in (
            # Some drives report the NQN of all of their kind.
            {'serial': 'S2'},
            {'nqn': 'nqn.1994-11.com.samsung:S2'},
            {'nqn': 'nqn.1994-11.com.samsung:S2', 'serial': 'S2'},
        ):
            self.bind(self.ports[1], **facts)
            inventory = self.discover(self.line)
            self.assertEqual(self.ports, self.addresses(inventory), facts)
            self.assertEqual((), inventory.refused)

    def test_drives_that_do_not_tell(self):
        for port in self.ports:
            self.unbind(port)
        inventory = self.discover(self.line)
        self.assertEqual(self.ports, self.addresses(inventory))


class TestUnits(EmptyHostTestCase):
    slot = ['0000:81:00.0', '0000:81:00.1']

    def setUp(self):
        super().setUp()
        self.add(
            *(
                self.a_gpu(
                    address,
                    *(other for other in self.slot if other != address),
                )
                for address in self.slot
            )
        )

    def test_other_functions_of_the_unit_are_no_devices(self):
        inventory = self.discover(
            a_line(vendor_id='10de', driver='pci', type='GPU', unit='slot')
        )
        self.assertEqual(self.slot[:1], self.addresses(inventory))
        self.assertEqual((), inventory.refused)

    def test_one_of_them_is_novas(self):
        theirs = a_line(address=self.slot[1])
        self.config.config(group='pci', device_spec=[theirs])
        inventory = self.discover(
            a_line(address=self.slot[0], driver='pci', type='GPU', unit='slot')
        )
        self.assertEqual((), inventory.devices)
        self.assert_refused(
            inventory, f'Nova claims {self.slot[1]} too', theirs
        )

    def test_one_of_them_is_another_device_s(self):
        first = a_line(
            address=self.slot[1], driver='pci', type='GPU', unit='iommu_group'
        )
        second = a_line(
            vendor_id='10de', driver='pci', type='GPU', unit='slot'
        )
        inventory = self.discover(first, second)
        self.assertEqual(self.slot[:1], self.addresses(inventory))
        self.assert_refused(
            inventory,
            f'{self.slot[1]} is a part of {self.slot[0]}',
            first,
            second,
        )


class TestInUse(DiscoveryTestCase):
    def test_a_function(self):
        self.in_use['0000:83:00.3'] = 'a guest has it'
        inventory = self.discover()
        self.assertNotIn('0000:83:00.3', self.addresses(inventory))
        self.assertEqual(9, len(inventory.devices))
        self.assert_refused(
            inventory,
            devices.QAT_SPEC,
            'a guest has it',
        )

    def test_one_of_a_card_s_units(self):
        before = self.discover()
        self.in_use['0000:82:00.1'] = 'a guest has it'
        inventory = self.discover()
        card_before, card = (
            next(
                device
                for device in found.devices
                if str(device.address) == FPGA
            )
            for found in (before, inventory)
        )
        self.assertEqual(card_before.deployables[1:], card.deployables)
        self.assert_refused(inventory, FPGA, 'a guest has it')

    def test_a_mediated_device_of_ours(self):
        (gpu,) = (
            device
            for device in self.discover().devices
            if str(device.address) == GPU
        )
        handle = gpu.deployables[0].handles[7]
        self.drivers['mdev'].plug(handle)
        self.in_use[handle.uuid] = 'a guest has it'
        inventory = self.discover()
        (gpu,) = (
            device
            for device in inventory.devices
            if str(device.address) == GPU
        )
        self.assertEqual(15, len(gpu.deployables[0].handles))
        self.assertNotIn(handle, gpu.deployables[0].handles)
        self.assert_refused(inventory, GPU, 'a guest has it')

    def test_a_card_full_of_another_service_s_devices_that_are_held(self):
        address = pci_address.PciAddress.parse(GPU)
        uuids = [uuidutils.generate_uuid() for _number in range(16)]
        for each in uuids:
            self.node_devices.create_mdev(each, address, 'nvidia-11')
        self.assert_refused(self.discover(), GPU, 'can make no more')
        self.held = tuple(
            pci_function.Mdev(each, 'nvidia-11', address) for each in uuids
        )
        inventory = self.discover()
        self.assertEqual((), inventory.refused)
        (gpu,) = (
            device
            for device in inventory.devices
            if str(device.address) == GPU
        )
        self.assertEqual(set(uuids), {handle.uuid for handle in gpu.handles})


class TestCarvedTwice(EmptyHostTestCase):
    def test_the_second_way_is_refused(self):
        """Mediated devices of one function, another function as it is."""
        card, one, two = pci_functions.virtual_functions(
            self.a_gpu('0000:3d:00.0'), 2, '2236'
        )
        self.add(
            card, dataclasses.replace(one, mdev_types={'nvidia-557': 1}), two
        )
        mdevs = a_line(address='0000:3d:00.1', driver='mdev', type='GPU')
        whole = a_line(address='0000:3d:00.2', driver='pci', type='GPU')
        inventory = self.discover(mdevs, whole)
        self.assertEqual(['0000:3d:00.1'], self.addresses(inventory))
        self.assert_refused(
            inventory,
            '0000:3d:00.2',
            'the card 0000:3d:00.0 is carved '
            f'otherwise for 0000:3d:00.1 ([nova_accel] device_spec = {mdevs})',
        )


class TestVirtualFunctionsOfALine(EmptyHostTestCase):
    line = a_line(
        address='0000:3d:00.0',
        driver='pci',
        type='NIC',
        sriov_numvfs=4,
        traits=['CUSTOM_RACK_7'],
    )

    def add_card(self, count):
        card = pci_functions.function(
            '0000:3d:00.0', '8086', '1572', max_virtual_functions=64
        )
        self.add(
            *pci_functions.virtual_functions(card, count, '154c')
            if count
            else [card]
        )

    def test_they_are_ruled_by_the_line_of_their_card(self):
        self.add_card(4)
        inventory = self.discover(self.line)
        self.assertEqual(
            [f'0000:3d:00.{number}' for number in range(1, 5)],
            self.addresses(inventory),
        )
        self.assertEqual(
            {frozenset({'CUSTOM_RACK_7'})},
            {device.operator_traits for device in inventory.devices},
        )
        self.assertEqual((), inventory.refused)

    def test_a_line_of_their_own_comes_first(self):
        self.add_card(4)
        inventory = self.discover(
            self.line,
            a_line(
                address='0000:3d:00.2', driver='pci', traits=['CUSTOM_OWN']
            ),
        )
        self.assertEqual(
            [{'CUSTOM_RACK_7'}, {'CUSTOM_OWN'}, *[{'CUSTOM_RACK_7'}] * 2],
            [device.operator_traits for device in inventory.devices],
        )

    def test_none(self):
        self.add_card(0)
        inventory = self.discover(self.line)
        self.assertEqual((), inventory.devices)
        self.assert_refused(inventory, self.line, 'asks for 4')

    def test_another_number(self):
        """Those that are there can be used, and the operator is told."""
        self.add_card(2)
        inventory = self.discover(self.line)
        self.assertEqual(2, len(inventory.devices))
        self.assert_refused(
            inventory, self.line, 'asks for 4 virtual functions, it has 2'
        )
