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

import mmap
import struct
import uuid

from nova_accel import exceptions
from nova_accel.drivers import fpga_dfl
from unit.drivers import base
from unit.drivers import fake_fpga

TYPE = 'ce48969398f05f33946d560708be108a'
OTHER_TYPE = '69528db6eb31577a8c3668f9faa081f6'
AFU = 'd8424dc4a4a3c413f89e433683f9040b'
AFU_ID = 'd8424dc4-a4a3-c413-f89e-433683f9040b'
OTHER_AFU_ID = '331db30c-9885-41ea-9081-f88b8f655caa'
ENGINE = 'fpga_region__region0__dfl-fme.0'


class CardMixin:
    """The files of the kernel's driver."""

    def have_regions(self, *types):
        for number, type_uuid in enumerate(types):
            self.sysfs.set(
                self.CARD,
                **{
                    f'{ENGINE}__dfl-fme-region.{number}__fpga_region__'
                    f'region{number + 1}__compat_id': type_uuid
                },
            )


class TestFpgaDfl(CardMixin, base.DriverTestCase):
    """The tree of the kernel's Documentation/fpga/dfl.rst."""

    driver = fpga_dfl.FpgaDflDriver
    spec = {'vendor_id': '8086', 'product_id': '09c4'}

    def functions(self):
        self.sysfs.set(
            self.CARD,
            **{
                f'{ENGINE}__bitstream_id': '0x23000410010309',
                f'{ENGINE}__ports_num': '1',
                f'{ENGINE}__errors__catfatal_errors': '0x0',
            },
        )
        self.have_regions(TYPE)
        self.have_port(1, AFU)
        return [
            *base.sriov(self.CARD, '8086', '09c4', '09c5', 2),
            base.a_function('0000:4d:00.0', '8086', '0b30'),
        ]

    def have_port(self, number, afu_id):
        port = f'fpga_region__region{number + 8}__dfl-port.{number}'
        self.sysfs.set(base.the_address(number), **{f'{port}__afu_id': afu_id})

    def test_region(self):
        device = self.discover()
        self.assertEqual(('FPGA', None), (device.type, device.fault))
        self.assertEqual(
            {'bitstream_id': '0x23000410010309', 'ports_num': '1'},
            device.attributes,
        )
        region = (
            'CUSTOM_FPGA_INTEL_REGION_CE489693_98F0_5F33_946D_560708BE108A'
        )
        card = 'CUSTOM_FPGA_INTEL_PAC_ARRIA10'
        self.assertEqual(
            [
                {
                    card,
                    region,
                    'CUSTOM_FPGA_INTEL_FUNCTION_'
                    'D8424DC4_A4A3_C413_F89E_433683F9040B',
                },
                {card, region},
            ],
            self.traits(device),
        )

    def test_a_port_that_a_guest_has(self):
        """What it does is hidden; it is the same unit."""
        before = self.discover()
        self.sysfs.remove(base.the_address(1))
        after = self.discover()
        self.assertEqual(self.handles(before), self.handles(after))
        self.assertEqual(
            [each.name for each in before.deployables],
            [each.name for each in after.deployables],
        )

    def test_several_regions(self):
        self.have_regions(TYPE, OTHER_TYPE)
        self.have_port(2, AFU)
        device = self.discover()
        self.assertEqual(
            ['region0', 'region1'], [each.name for each in device.deployables]
        )
        self.assertEqual(
            [base.the_address(1), base.the_address(2)], self.addresses(device)
        )

    def test_errors_of_the_card(self):
        self.sysfs.set(
            self.CARD, **{f'{ENGINE}__errors__catfatal_errors': '0x10'}
        )
        self.assertIn('0x10', self.discover().fault)

    def test_a_card_without_its_driver(self):
        self.assert_refused('fpga_region', address='0000:4d:00.0')


class TestProgramming(CardMixin, fake_fpga.FpgaTestCase):
    driver = fpga_dfl.FpgaDflDriver
    name = 'fpga_dfl'
    bound = {'0': 'dfl-pci'}
    spec = {'vendor_id': '8086', 'product_id': '09c4'}
    bitstreams = (
        fake_fpga.gbs(AFU_ID),
        fake_fpga.gbs(OTHER_AFU_ID, signed=True),
    )

    def functions(self):
        self.have_regions(TYPE)
        self.have_ports(AFU_ID)
        return base.sriov(self.CARD, '8086', '09c4', '09c5', 2)

    def have_ports(self, afu_id):
        for number in (1, 2):
            port = f'fpga_region__region{number + 8}__dfl-port.{number}'
            self.sysfs.set(
                base.the_address(number),
                **{f'{port}__afu_id': afu_id.replace('-', '')},
            )

    def test_opae_is_told_the_cards_full_address(self):
        device, region, (_first, second) = self._to_program()
        self.a_driver().program(device, region, second, 60)
        (call,) = self.tools.log
        self.assertTrue(call.startswith('fpgasupdate --yes /'), call)
        self.assertTrue(call.endswith('/bitstream.gbs 0000:3d:00.0'), call)
        self.assertEqual(OTHER_AFU_ID, self.a_driver().loaded(device, region))

    def test_opae_fails(self):
        self.tools.fail()
        self.assert_not_programmed(
            'exit status 5',
            'Error writing bitstream to FPGA: exception',
            'Partial Reconfiguration failed',
        )

    def test_opae_hangs(self):
        self.tools.fail('hang')
        self.assert_not_programmed('not finished after 0.5 s', timeout_s=0.5)

    def test_opae_says_that_it_is_done_and_it_is_not(self):
        self.have_ports(OTHER_AFU_ID)
        self.tools.fail('lie')
        self.assert_not_programmed(OTHER_AFU_ID, AFU_ID)

    def test_images_of_the_card_itself(self):
        """fpgasupdate would write its static part, or its controller."""
        for image in (
            b'',
            b'\x19\xfd\xea\xb6' + bytes(2000),
            b'XeonFPGA\xb7GBSv001\x02\x00\x00\x00{}',
        ):
            self.assert_not_programmed('region0', bitstream=image)
        self.assertEqual([], self.tools.log)

    def test_a_second_region_is_not_programmed(self):
        self.have_regions(TYPE, OTHER_TYPE)
        self.assert_not_programmed('one region only')

    def test_what_a_port_holds_that_a_guest_has(self):
        device = self.discover()
        self.sysfs.remove(base.the_address(2))
        error = self.assertRaises(
            exceptions.DeviceError,
            self.a_driver().loaded,
            device,
            device.regions[0],
        )
        self.assertIn(base.the_address(2), str(error))


class TestOpenFpgaStack(fake_fpga.FpgaTestCase):
    """Its virtual functions have no port, but a header in their BAR 0."""

    driver = fpga_dfl.FpgaDflDriver
    name = 'fpga_dfl'
    bound = {'0': 'dfl-pci'}
    spec = {'vendor_id': '8086'}
    bitstreams = (fake_fpga.gbs(AFU_ID), fake_fpga.gbs(OTHER_AFU_ID))
    VIRTUAL = base.the_address(1)

    def functions(self):
        self.sysfs.set(
            self.CARD,
            **{
                f'{ENGINE}__dfl-fme-region.1__fpga_region__region1__'
                'compat_id': TYPE
            },
        )
        self.have_accelerator(AFU_ID)
        return base.sriov(self.CARD, '8086', 'bcce', 'bccf', 1)

    def have_accelerator(self, afu_id, header=1 << 60):
        self.sysfs.set(self.VIRTUAL)
        value = uuid.UUID(afu_id).int
        self.bar().write_bytes(
            struct.pack(
                '<3Q', header, value & (1 << 64) - 1, value >> 64
            ).ljust(mmap.PAGESIZE, b'-')
        )

    def bar(self):
        return self.sysfs.root / 'bus/pci/devices' / self.VIRTUAL / 'resource0'

    def test_programming(self):
        device, region, (first, _second) = self._to_program()
        self.a_driver().program(device, region, first, 60)
        self.assertEqual(AFU_ID, self.a_driver().loaded(device, region))
        self.assert_not_programmed(
            AFU_ID, OTHER_AFU_ID, bitstream=self.bitstreams[1]
        )
        self.assertEqual(2, len(self.tools.log))

    def test_no_header(self):
        for header in (0, (1 << 64) - 1, 3 << 60):
            self.have_accelerator(AFU_ID, header)
            self.assert_not_programmed('BAR 0', 'no header')

    def test_nothing_that_would_tell(self):
        """It is refused before the card is touched."""
        self.sysfs.bind(self.VIRTUAL, 'vfio-pci')
        self.assert_not_programmed(self.VIRTUAL, 'Unbind it from vfio-pci')
        (
            self.sysfs.root / 'bus/pci/devices' / self.VIRTUAL / 'driver'
        ).unlink()
        self.bar().unlink()
        self.assert_not_programmed(self.VIRTUAL, 'neither a dfl-port nor')
        self.assertEqual([], self.tools.log)
