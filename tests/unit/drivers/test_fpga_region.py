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

import testtools

from nova_accel import exceptions
from nova_accel.drivers import fpga_region
from nova_accel.testing import simulated_mdevs
from unit.drivers import base
from unit.drivers import fake_fpga

TYPE = 'ce48969398f05f33946d560708be108a'
OTHER_TYPE = '69528db6eb31577a8c3668f9faa081f6'


class FpgaTests:
    """Cards whose accelerators are virtual functions."""

    driver = fpga_region.FpgaRegionDriver
    spec = {'vendor_id': '10ee', 'product_id': '5000'}
    bitstreams = (b'LABF first', b'LABF second')

    def functions(self):
        self.have_regions(TYPE)
        self.sysfs.set(
            self.CARD,
            fpga_manager__fpga0__state='operating',
            fpga_manager__fpga0__name='Slot 0',
            fpga_manager__fpga0__firmware='',
        )
        return [
            *base.sriov(self.CARD, '10ee', '5000', '5001', 2),
            base.a_function('0000:4d:00.0', '10ee', '5000'),
        ]

    def have_regions(self, *types, card=None):
        for number, type_uuid in enumerate(types):
            self.sysfs.set(
                card or self.CARD,
                **{f'fpga_region__region{number}__compat_id': type_uuid},
            )


class TestFpgaRegion(FpgaTests, fake_fpga.FpgaTestCase):
    def test_several_functions_in_a_region(self):
        device = self.discover()
        self.assertEqual(
            ('FPGA', False, None, {'manager': 'Slot 0'}),
            (device.type, device.pooled, device.fault, device.attributes),
        )
        self.assertEqual(
            ['region0_function0', 'region0_function1'],
            [each.name for each in device.deployables],
        )
        self.assertEqual(
            [base.the_address(1), base.the_address(2)], self.addresses(device)
        )
        for traits in self.traits(device):
            self.assertEqual(
                {
                    'CUSTOM_FPGA_XILINX_ALVEO_U200',
                    'CUSTOM_FPGA_XILINX_REGION_'
                    'CE489693_98F0_5F33_946D_560708BE108A',
                },
                traits,
            )

    def test_one_id_may_have_several_region_types(self):
        self.have_regions(TYPE, OTHER_TYPE)
        device = self.discover()
        self.assertEqual(
            ['region0', 'region1'], [each.name for each in device.deployables]
        )
        first, second = self.traits(device)
        self.assertEqual(1, len(first - second))
        self.assertEqual(1, len(second - first))

    def test_the_type_is_optional(self):
        self.have_regions('')
        for traits in self.traits(self.discover()):
            self.assertEqual({'CUSTOM_FPGA_XILINX_ALVEO_U200'}, traits)

    def test_no_uuid(self):
        self.have_regions('none')
        device = self.assert_noted('compat_id', "'none'")
        self.assertIsNone(device.regions[0].type_uuid)

    def test_regions_that_cannot_be_told_apart(self):
        self.have_regions(TYPE, OTHER_TYPE, TYPE)
        self.assert_refused('3 regions and 2 virtual functions')

    def test_programming_failed(self):
        self.sysfs.set(self.CARD, fpga_manager__fpga0__state='write error')
        self.assertIn('write error', self.discover().fault)

    def test_the_kernel_reads_a_file_of_roots(self):
        device, region, (first, _second) = self._to_program()
        self.a_driver().program(device, region, first, 60)
        self.assertEqual('600', self.tools.mode)
        self.assertEqual([], list(self.tools.firmware.iterdir()))

    def test_a_state_of_error(self):
        self.assert_not_programmed(
            'region0 of 0000:3d:00.0',
            'exit status 1',
            'Invalid argument',
            bitstream=b'garbage',
        )
        self.assertEqual([], list(self.tools.firmware.iterdir()))
        device = self.discover()
        error = self.assertRaises(
            exceptions.DeviceError,
            self.a_driver().loaded,
            device,
            device.regions[0],
        )
        self.assertIn('write init error', str(error))

    def test_written_and_not_operating(self):
        self.sysfs.set(self.CARD, fpga_manager__fpga0__state='write complete')
        self.tools.fail('lie')
        self.assert_not_programmed('"write complete"')

    def test_a_manager_that_hangs(self):
        self.tools.fail('hang')
        self.assert_not_programmed('not finished after 0.5 s', timeout_s=0.5)
        self.assertEqual([], list(self.tools.firmware.iterdir()))

    def test_a_manager_that_takes_no_firmware(self):
        (
            self.sysfs.root
            / 'devices/pci0000:00'
            / self.CARD
            / 'fpga_manager/fpga0/firmware'
        ).unlink()
        self.assert_not_programmed('no attribute "firmware"')

    def test_regions_whose_manager_is_not_known(self):
        self.have_regions(TYPE, OTHER_TYPE)
        self.assert_not_programmed('1 FPGA managers for 2 regions')

    def test_a_manager_that_was_taken_away_meanwhile(self):
        """The guest that had the whole card may have programmed it."""
        device = self.discover()
        before = self.a_driver().loaded(device, device.regions[0])
        managers = (
            self.sysfs.root / 'devices/pci0000:00' / self.CARD / 'fpga_manager'
        )
        (managers / 'fpga0').rename(managers.parent / 'gone')
        self.sysfs.set(self.CARD, fpga_manager__fpga0__state='operating')
        self.assertNotEqual(
            before, self.a_driver().loaded(device, device.regions[0])
        )

    def test_an_attribute_that_tells(self):
        device = self.discover(contents_attribute='contents')
        (region,) = device.regions
        driver = self.a_driver()
        self.assertRaises(
            exceptions.DeviceError, driver.loaded, device, region
        )
        _device, _region, bitstreams = self._to_program()
        told = set()
        for file in bitstreams:
            driver.program(device, region, file, 60)
            told.add(driver.loaded(device, region))
        self.assertEqual(2, len(told))

    def test_an_attribute_for_several_regions(self):
        self.have_regions(TYPE, OTHER_TYPE)
        self.assert_refused('2 regions', contents_attribute='contents')

    def test_a_card_that_the_kernel_does_not_know(self):
        self.assert_refused('fpga_region', address='0000:4d:00.0')

    def test_a_virtual_function(self):
        self.assert_refused(self.CARD, address=base.the_address(1))

    def test_whole_excludes_its_regions(self):
        self.assert_refused('2 virtual functions', whole=True)


class TestWhole(FpgaTests, fake_fpga.FpgaTestCase):
    address = '0000:4d:00.0'
    spec = {'vendor_id': '10ee', 'whole': True}
    # It has two regions, which its guest programs.
    bitstreams = ()

    def functions(self):
        self.have_regions(TYPE, OTHER_TYPE, card=self.address)
        return [
            base.a_function(self.address, '10ee', '5000'),
            base.a_function('0000:4d:00.1', '10ee', '5001'),
        ]

    def test_one_accelerator(self):
        (handle,) = self.handles(self.discover())
        self.assertEqual(
            [self.address, '0000:4d:00.1'],
            [str(each) for each in handle.functions],
        )

    def test_it_cannot_be_programmed_blank(self):
        self.assert_refused(
            '"clean": "program"',
            clean='program',
            clean_bitstream='6a8ee9d1-5d0f-4f5e-9f5b-2a4d1f0a7c33',
        )

    def test_it_has_to_be_said(self):
        self.assert_refused('"whole": true', whole=None)


class TestWholeOfOneRegion(FpgaTests, fake_fpga.FpgaTestCase):
    address = '0000:4d:00.0'
    spec = {'vendor_id': '10ee', 'whole': True}

    def functions(self):
        self.have_regions(TYPE, card=self.address)
        self.sysfs.set(
            self.address,
            fpga_manager__fpga0__state='operating',
            fpga_manager__fpga0__firmware='',
        )
        return [base.a_function(self.address, '10ee', '5000')]

    def test_it_is_programmed_as_a_region(self):
        device = self.discover()
        (card,) = device.deployables
        self.assertEqual(('card', 'region0'), (card.name, card.region))
        self.assertEqual(['region0'], [each.name for each in device.regions])
        self.assertIn(
            'CUSTOM_FPGA_XILINX_REGION_CE489693_98F0_5F33_946D_560708BE108A',
            card.traits,
        )

    def test_a_card_that_a_guest_has(self):
        """The kernel's driver is away; it is the same unit."""
        before = self.discover()
        self.node_devices = simulated_mdevs.SimulatedMdevs(
            [
                dataclasses.replace(function, driver='vfio-pci')
                for function in self.functions()
            ]
        )
        self.sysfs.remove(self.address)
        after = self.discover()
        self.assertEqual(self.handles(before), self.handles(after))
        self.assertEqual('region0', after.deployables[0].region)
        self.assertRaises(
            exceptions.DeviceError,
            self.a_driver().loaded,
            after,
            after.regions[0],
        )


class TestInOrder(testtools.TestCase):
    def test_numbers(self):
        self.assertEqual(
            ['region2', 'region10'],
            fpga_region.in_order(['region10', 'region2']),
        )
