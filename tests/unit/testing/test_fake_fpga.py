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

import hashlib
import pathlib

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.host import libvirt_devices
from nova_accel.model.devices import device_spec
from nova_accel.testing import devices
from nova_accel.testing import fake_fpga
from nova_accel.testing import libvirt
from unit.drivers import base

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'


class TestFakeFpgaDriver(testtools.TestCase):
    def setUp(self):
        super().setUp()
        fake = self.useFixture(
            libvirt.Libvirt(
                devices.pci_info(gpus=0, fpgas=2, fpga_vfs=3, qats=0)
            )
        )
        self.host = libvirt_devices.NodeDevices(fake.host).look()
        self.driver = fake_fpga.FakeFpgaDriver(None, None, NODE_UUID)
        (self.spec,) = device_spec.parse([devices.FPGA_SPEC], ['fake'])

    def discover(self):
        return [
            self.driver.discover(function, self.spec, self.host)
            for function in self.host.functions.values()
            if function.product_id == '09c4'
        ]

    def test_each_virtual_function_is_a_region(self):
        for device in self.discover():
            card = self.host.functions[device.address]
            self.assertEqual(
                ['region0', 'region1', 'region2'],
                [region.name for region in device.deployables],
            )
            self.assertEqual(
                card.virtual_functions,
                tuple(
                    handle.address
                    for region in device.deployables
                    for handle in region.handles
                ),
            )

    def test_regions_are_told_apart_alike_on_all_cards(self):
        first, second = (
            [region.traits for region in device.deployables]
            for device in self.discover()
        )
        self.assertEqual(first, second)
        self.assertEqual(3, len(set(first)))

    def test_handles_are_not_alike(self):
        uuids = [
            handle.uuid
            for device in self.discover()
            for region in device.deployables
            for handle in region.handles
        ]
        self.assertEqual(6, len(set(uuids)))

    def test_no_regions(self):
        region = next(
            function
            for function in self.host.functions.values()
            if function.parent_address is not None
        )
        self.assertRaises(
            exceptions.DeviceError,
            self.driver.discover,
            region,
            self.spec,
            self.host,
        )

    def test_cleaning_as_a_test_wants_it(self):
        handle = next(self.discover()[0].handles)
        cleaning = self.useFixture(fake_fpga.Cleaning())
        self.assertTrue(
            all(
                region.is_cleaned
                for device in self.discover()
                for region in device.deployables
            )
        )
        self.driver.clean(handle)
        self.assertEqual([handle.uuid], cleaning.cleaned)
        cleaning.refusal = 'stuck'
        error = self.assertRaises(
            exceptions.DeviceError, self.driver.clean, handle
        )
        self.assertEqual('stuck', str(error))

    def test_a_fault_of_a_card(self):
        faults = {'0000:81:00.0': 'it burns'}
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.testing.fake_fpga.FakeFpgaDriver.faults', faults
            )
        )
        self.assertEqual(
            ['it burns', None], [device.fault for device in self.discover()]
        )


class TestProgramming(base.DriverTestCase):
    driver = fake_fpga.FakeFpgaDriver
    spec = {'vendor_id': '8086'}
    bitstreams = (b'first', b'second')

    def setUp(self):
        super().setUp()
        self.programming = self.useFixture(fake_fpga.Programming())

    def break_programming(self):
        self.programming.faults.append(fake_fpga.Fault.FAILS)

    def functions(self):
        return base.sriov(self.CARD, '8086', '09c4', '09c5', 3)

    def loaded(self):
        device = self.discover()
        return self.a_driver().loaded(device, device.regions[0])

    def test_nothing(self):
        self.assertEqual('nothing', self.loaded())

    def test_regions_are_programmed_apart(self):
        device, region, (first, _second) = self._to_program()
        self.a_driver().program(device, region, first, 60)
        self.assertEqual(
            'nothing', self.a_driver().loaded(device, device.regions[1])
        )
        self.assertEqual(
            [(self.CARD, 'region0', hashlib.sha256(b'first').hexdigest())],
            self.programming.programmed,
        )

    def test_faults(self):
        device, region, (first, _second) = self._to_program()
        for fault in (fake_fpga.Fault.HANGS, fake_fpga.Fault.LOSES_POWER):
            self.programming.faults.append(fault)
            self.assert_not_programmed(timeout_s=0.01)
            self.assertRaises(exceptions.DeviceError, self.loaded)
        self.programming.faults.append(fake_fpga.Fault.LIES)
        self.a_driver().program(device, region, first, 60)
        told = self.loaded()
        self.a_driver().program(device, region, first, 60)
        self.assertNotEqual(told, self.loaded())

    def test_a_duration_beyond_the_limit(self):
        self.programming.duration_s = 5
        self.assert_not_programmed('not finished after 0.01 s', timeout_s=0.01)

    def test_not_allowed_to_end(self):
        self.programming.may_end.clear()
        self.assert_not_programmed('not finished after 0.01 s', timeout_s=0.01)

    def test_a_shell(self):
        device, region, (first, _second) = self._to_program()
        shell = first.with_name('shell')
        shell.write_text('its id')
        self.a_driver().program(device, region, first, 60)
        self.a_driver().load_shell(device, shell, 60)
        self.assertEqual('its id', self.a_driver().loaded_shell(device))
        self.assertEqual('nothing', self.loaded())
        self.programming.faults = [fake_fpga.Fault.LOSES_POWER]
        self.assertRaises(
            exceptions.DeviceError,
            self.a_driver().load_shell,
            device,
            shell,
            60,
        )
        self.assertRaises(
            exceptions.DeviceError, self.a_driver().loaded_shell, device
        )

    def test_what_it_holds_outlives_the_process(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        with fake_fpga.Programming(directory):
            device, region, (first, _second) = self._to_program()
            self.a_driver().program(device, region, first, 60)
            told = self.loaded()
        with fake_fpga.Programming(directory):
            self.assertEqual(told, self.loaded())


class TestConformance(base.DriverTestCase):
    driver = fake_fpga.FakeFpgaDriver
    spec = {'vendor_id': '8086'}

    def functions(self):
        return base.sriov(self.CARD, '8086', '09c4', '09c5', 3)
