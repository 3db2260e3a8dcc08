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

from nova_accel import exceptions
from nova_accel.drivers import xrt
from nova_accel.testing import driver_conformance
from unit.drivers import base
from unit.drivers import fake_fpga

USER = '0000:3d:00.1'
SHELL = 'fb2b2c5a19ed63593fea95f51fbc8eb9'
INTERFACES = '4c8d1b3cb1f5eb2ee9e3b85f8c4f7d1a\n' + SHELL
IMAGE = 'd8424dc4-a4a3-c413-f89e-433683f9040b'
BASE = '0a3f5c1e7b0a4c1e8a551f0b6c3d7e02'
BASE_UUID = '0a3f5c1e-7b0a-4c1e-8a55-1f0b6c3d7e02'
OTHER_IMAGE = '54754387-411c-4c16-8265-245b0241d0a2'


class TestXrt(fake_fpga.FpgaTestCase):
    driver = xrt.XrtDriver
    spec = {'vendor_id': '10ee'}
    name = 'xrt'
    bound = {'0': 'xclmgmt', '1': 'xocl'}
    bitstreams = (fake_fpga.xclbin(IMAGE), fake_fpga.xclbin(OTHER_IMAGE))

    def functions(self):
        self.sysfs.set(
            self.CARD,
            interface_uuids=INTERFACES,
            logic_uuids=SHELL,
            dev_offline='0',
            **{
                'rom.m.4194304__VBNV': 'xilinx_u250_gen3x16_base_4',
                'rom.m.4194304__ddr_bank_count_max': '4',
                'rom.m.4194304__ddr_bank_size': '16',
            },
        )
        self.sysfs.set(USER, xclbinuuid=IMAGE)
        return [
            base.a_function(self.CARD, '10ee', '5004'),
            base.a_function(USER, '10ee', '5005'),
            base.a_function('0000:4d:00.0', '10ee', 'd004'),
        ]

    def test_the_guest_gets_the_user_function(self):
        device = self.discover()
        self.assertEqual([USER], self.addresses(device))
        self.assertEqual(
            [
                {
                    'CUSTOM_FPGA_XILINX_ALVEO_U250',
                    'CUSTOM_FPGA_XILINX_REGION_FB2B2C5A_19ED_6359_3FEA_95F51FBC8EB9',
                    'CUSTOM_FPGA_XILINX_FUNCTION_D8424DC4_A4A3_C413_F89E_433683F9040B',
                }
            ],
            self.traits(device),
        )

    def test_attributes(self):
        self.assertEqual(
            {
                'logic_uuids': 'fb2b2c5a-19ed-6359-3fea-95f51fbc8eb9',
                'VBNV': 'xilinx_u250_gen3x16_base_4',
                'ddr_bank_count_max': '4',
                'ddr_bank_size': '16',
            },
            self.discover().attributes,
        )

    def test_memory_is_told_to_people_alone(self):
        """Not to Placement, by no class and no trait, nor to a guest."""
        before = self.discover()
        self.sysfs.set(
            self.CARD,
            **{
                'rom.m.4194304__ddr_bank_count_max': '1',
                'rom.m.4194304__ddr_bank_size': '64',
            },
        )
        after = self.discover()
        self.assertNotEqual(before.attributes, after.attributes)
        self.assertEqual(
            before, dataclasses.replace(after, attributes=before.attributes)
        )

    def test_not_ready(self):
        """By the word of either function, unless it has its factory image."""
        for address in (self.CARD, USER):
            for ready, is_faulty in (('1', False), ('', False), ('0', True)):
                self.sysfs.set(address, ready=ready)
                fault = self.discover().fault
                self.assertEqual(
                    f'{address} is not ready: see "xrt-smi examine"'
                    if is_faulty
                    else None,
                    fault,
                )
            self.sysfs.set(address, mfg='1')
            self.assertIsNone(self.discover().fault)

    def test_uuids_are_optional(self):
        self.sysfs.remove(self.CARD)
        self.sysfs.remove(USER)
        self.assertEqual(
            [{'CUSTOM_FPGA_XILINX_ALVEO_U250'}], self.traits(self.discover())
        )

    def test_whole(self):
        (handle,) = self.handles(self.discover(whole=True))
        self.assertEqual(
            [self.CARD, USER], [str(each) for each in handle.functions]
        )

    def test_a_design_that_xrt_does_not_know(self):
        for product in ('903f', '9038', '913f'):
            error = self.assertRaises(
                exceptions.DeviceError,
                self.a_driver().check,
                base.a_function('0000:5d:00.0', '10ee', product),
            )
            self.assertIn(product, str(error))
            self.assertIn('"pci"', str(error))

    def test_xrt_is_told_the_users_full_address(self):
        device, region, (_first, second) = self._to_program()
        self.a_driver().program(device, region, second, 60)
        (call,) = self.tools.log
        self.assertTrue(
            call.startswith('xrt-smi program --device 0000:3d:00.1 --user /'),
            call,
        )
        self.assertEqual(OTHER_IMAGE, self.a_driver().loaded(device, region))

    def test_by_its_former_name(self):
        (self.tools.tools / 'xrt-smi').rename(self.tools.tools / 'xbutil')
        device, region, (_first, second) = self._to_program()
        self.a_driver().program(device, region, second, 60)
        self.assertTrue(self.tools.log[0].startswith('xbutil program'))

    def test_xrt_is_not_installed(self):
        (self.tools.tools / 'xrt-smi').unlink()
        self.assert_not_programmed('xrt-smi or xbutil is not installed')

    def test_xrt_fails(self):
        self.tools.fail()
        self.assert_not_programmed(
            'exit status 1', 'failed to load xclbin: Invalid argument'
        )

    def test_xrt_hangs(self):
        self.tools.fail('hang')
        self.assert_not_programmed('not finished after 0.5 s', timeout_s=0.5)

    def test_xrt_says_that_it_is_done_and_it_is_not(self):
        self.sysfs.set(USER, xclbinuuid=OTHER_IMAGE)
        self.tools.fail('lie')
        self.assert_not_programmed(OTHER_IMAGE, IMAGE)

    def test_what_is_no_xclbin(self):
        for image in (b'', b'xclbin2\x00', bytes(500)):
            self.assert_not_programmed('no xclbin', bitstream=image)
        self.assertEqual([], self.tools.log)

    def test_nothing_loaded(self):
        device = self.discover()
        for nothing in ('', '00000000-0000-0000-0000-000000000000'):
            self.sysfs.set(USER, xclbinuuid=nothing)
            self.assertRaises(
                exceptions.DeviceError,
                self.a_driver().loaded,
                device,
                device.regions[0],
            )

    def test_offline(self):
        self.sysfs.set(self.CARD, dev_offline='1')
        self.assertIn('offline', self.discover().fault)

    def test_no_uuid(self):
        self.sysfs.set(self.CARD, interface_uuids='0 1')
        device = self.assert_noted('interface_uuids', "'0'")
        self.assertIsNone(device.regions[0].type_uuid)

    def a_card_with_its_base(self, **more):
        """It is in the flash, and there is no shell yet."""
        card = '0000:4d:00.0'
        self.sysfs.set(
            card, logic_uuids=BASE, interface_uuids=BASE, dev_offline='0'
        )
        self.sysfs.identify(card, '10ee', 'd004')
        self.sysfs.bind(card, 'xclmgmt')
        return self.discover(card, **more)

    def load_shell(self, device, shell=None, timeout_s=60):
        path = driver_conformance.cached(
            self.cache, fake_fpga.xclbin(IMAGE) if shell is None else shell
        )
        self.a_driver().load_shell(device, path, timeout_s)

    def test_without_a_shell_it_is_there_for_one(self):
        device = self.a_card_with_its_base(
            clean='program', clean_bitstream=IMAGE
        )
        self.assertEqual([], self.handles(device))
        self.assertEqual(1, len(device.deployables))
        self.assertEqual((), device.regions)
        self.assertIn('no shell', device.fault)
        self.assertEqual(BASE_UUID, device.shell.shell_id)
        self.assertEqual(BASE_UUID, self.a_driver().loaded_shell(device))

    def test_a_shell_is_loaded(self):
        device = self.a_card_with_its_base()
        self.load_shell(device)
        (call,) = self.tools.log
        self.assertTrue(
            call.startswith('xbmgmt program --device 0000:4d:00.0 --shell /'),
            call,
        )
        self.assertEqual(IMAGE, self.a_driver().loaded_shell(device))

    def test_another_shell(self):
        device = self.discover()
        self.assertEqual(
            'fb2b2c5a-19ed-6359-3fea-95f51fbc8eb9', device.shell.shell_id
        )
        self.assertEqual(device.shell.shell_id, device.regions[0].shell_id)
        self.load_shell(device)
        self.assertEqual(IMAGE, self.a_driver().loaded_shell(device))

    def test_no_shell_is_loaded(self):
        device = self.a_card_with_its_base()
        for fault, timeout_s, why in (
            ('fail', 60, 'uuid does not match BLP'),
            ('hang', 0.5, 'not finished after 0.5 s'),
        ):
            self.tools.fail(fault)
            error = self.assertRaises(
                exceptions.DeviceError,
                self.load_shell,
                device,
                timeout_s=timeout_s,
            )
            self.assertIn(why, str(error))
        (self.tools.tools / 'xbmgmt').unlink()
        error = self.assertRaises(
            exceptions.DeviceError, self.load_shell, device
        )
        self.assertIn('xbmgmt is not installed', str(error))

    def test_what_is_no_shell(self):
        device = self.a_card_with_its_base()
        error = self.assertRaises(
            exceptions.DeviceError, self.load_shell, device, b'no xsabin'
        )
        self.assertIn('no xclbin', str(error))
        self.assertEqual([], self.tools.log)

    def test_a_card_that_does_not_say_its_shell(self):
        device = self.a_card_with_its_base()
        self.sysfs.set(str(device.address), dev_offline='1')
        self.assertRaises(
            exceptions.DeviceError, self.a_driver().loaded_shell, device
        )
        self.sysfs.remove(self.CARD)
        self.assertIsNone(self.discover().shell)

    def test_a_whole_card_gets_no_shell(self):
        self.assertIsNone(self.discover(whole=True).shell)

    def test_factory_image(self):
        self.assert_refused('factory image', address='0000:4d:00.0')

    def test_the_user_function_alone(self):
        self.assert_refused('function 0', address=USER)
