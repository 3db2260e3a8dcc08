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
import json
import pathlib

import testtools

from nova_accel import exceptions
from nova_accel.drivers import pci
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.testing import fake_sysfs
from nova_accel.testing import pci_functions
from unit.drivers import base

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
NO_SYSFS = sysfs_tree.Sysfs(pathlib.Path('/nowhere'))


def an_address(function):
    return pci_address.PciAddress(0, 0x3D, 1, function)


def a_function(number, **more):
    address = an_address(number)
    return pci_function.PciFunction(
        address.node_device, address, '8086', '37c9', **more
    )


def discover(function, *others, node_uuid=NODE_UUID, sysfs=NO_SYSFS, **keys):
    host = libvirt_devices.HostDevices(
        {each.address: each for each in (function, *others)}
    )
    (spec,) = device_spec.parse(
        [json.dumps({'vendor_id': '*', 'driver': 'pci', **keys})], ['pci']
    )
    driver = pci.PciDriver(None, sysfs, node_uuid)
    return driver.discover(function, spec, host)


def handle_of(device):
    ((handle,),) = (each.handles for each in device.deployables)
    return handle


class TestPciDriver(testtools.TestCase):
    def test_virtual_function(self):
        device = discover(a_function(1, parent_address=an_address(0)))
        self.assertEqual(an_address(1), device.address)
        self.assertEqual(an_address(1), handle_of(device).address)
        self.assertIsNone(handle_of(device).mdev_type)

    def test_physical_function_without_virtual_ones(self):
        self.assertEqual(
            an_address(0), handle_of(discover(a_function(0))).address
        )

    def test_a_function_that_manages_its_card(self):
        manager, user = (
            dataclasses.replace(
                a_function(number), vendor_id='10ee', product_id=product
            )
            for number, product in ((0, '5004'), (1, '5005'))
        )
        error = self.assertRaises(
            exceptions.DeviceError, discover, manager, user
        )
        self.assertIn('"unit": "slot"', str(error))
        whole = discover(manager, user, unit='slot')
        self.assertEqual(2, len(handle_of(whole).functions))
        discover(user, manager)
        # With its factory image it is the whole card.
        discover(manager)

    def test_physical_function_with_virtual_ones(self):
        error = self.assertRaises(
            exceptions.DeviceError,
            discover,
            a_function(0, virtual_functions=(an_address(1), an_address(2))),
        )
        self.assertIn('2 virtual functions', str(error))

    def test_pool(self):
        for keys, pooled in (
            ({}, True),
            ({'pool': True}, True),
            ({'pool': False}, False),
        ):
            self.assertIs(pooled, discover(a_function(1), **keys).pooled)

    def test_physical_network(self):
        self.assertIsNone(handle_of(discover(a_function(1))).physical_network)
        device = discover(a_function(1), physical_network='physnet1')
        self.assertEqual('physnet1', handle_of(device).physical_network)
        self.assertIn('CUSTOM_PHYSNET_PHYSNET1', device.operator_traits)
        (deployable,) = device.deployables
        self.assertIn('CUSTOM_PHYSNET_PHYSNET1', deployable.traits)

    def test_virtual_functions_that_its_line_asks_for(self):
        """The card is no device then; they are."""
        card, *_parts = pci_functions.virtual_functions(
            a_function(0), 2, '37c9'
        )
        self.assertIsNone(discover(card, sriov_numvfs=2))

    def test_a_unit_of_several_functions(self):
        functions = [
            dataclasses.replace(
                a_function(number),
                iommu_members=tuple(map(an_address, (0, 2))),
            )
            for number in range(3)
        ]
        for unit, expected in (
            ('function', ()),
            ('slot', (1, 2)),
            ('iommu_group', (2,)),
        ):
            handle = handle_of(discover(*functions, unit=unit))
            self.assertEqual(an_address(0), handle.address)
            self.assertEqual(
                tuple(map(an_address, expected)), handle.further_functions
            )

    def test_what_needs_a_vgpu_type(self):
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        for address in (an_address(0), an_address(1)):
            self.fake.set(address)
        self.fake.set(an_address(1), nvidia__current_vgpu_type='0')
        functions = [a_function(0), a_function(1)]
        for unit in ('function', 'slot'):
            error = self.assertRaises(
                exceptions.DeviceError,
                discover,
                *functions[::-1],
                sysfs=self.fake.sysfs,
                unit=unit,
            )
            self.assertIn('0000:3d:01.1', str(error))
            self.assertIn('vGPU', str(error))
        discover(functions[0], sysfs=self.fake.sysfs)

    def test_handles_uuid(self):
        """The same at every look, unique in the cloud."""
        handles = [
            handle_of(discover(a_function(number), node_uuid=node_uuid)).uuid
            for _look in range(2)
            for number in (1, 2)
            for node_uuid in (NODE_UUID, NODE_UUID[:-1] + '2')
        ]
        self.assertEqual(handles[:4], handles[4:])
        self.assertEqual(4, len(set(handles)))

    def test_plug_and_unplug_leave_it_to_libvirt(self):
        driver = pci.PciDriver(None, NO_SYSFS, NODE_UUID)
        handle = handle_of(discover(a_function(1)))
        driver.plug(handle)
        driver.unplug(handle)


class TestCheckMigratable(testtools.TestCase):
    def check(self, driver, second=None, is_stated=None):
        class NodeDevices:
            @staticmethod
            def function(address):
                return a_function(
                    address.function,
                    driver=(driver if address == an_address(1) else second),
                )

        pci.PciDriver(NodeDevices, None, NODE_UUID).check_migratable(
            attach_handle.AttachHandle(
                'handle',
                an_address(1),
                further_functions=(an_address(2),) if second else (),
                live_migratable=is_stated,
            )
        )

    def test_each_function_of_a_unit(self):
        self.check('mlx5_vfio_pci', 'mlx5_vfio_pci')
        error = self.assertRaises(
            exceptions.DeviceError, self.check, 'mlx5_vfio_pci', 'vfio-pci'
        )
        self.assertIn('0000:3d:01.2 is bound to vfio-pci', str(error))

    def test_a_driver_that_saves_the_devices_state(self):
        for driver in (
            'mlx5_vfio_pci',
            'qat_vfio_pci',
            'hisi-acc-vfio-pci',
            'hisi_acc_vfio_pci',
            'pds_vfio_pci',
            'xe_vfio_pci',
            'virtio_vfio_pci',
            'nvidia-vgpu-vfio',
        ):
            self.check(driver)

    def test_a_driver_that_only_the_line_knows(self):
        self.check('acme_vfio_pci', is_stated=True)
        for driver in ('vfio-pci', 'c6xxvf', None):
            self.assertRaises(
                exceptions.DeviceError, self.check, driver, is_stated=True
            )

    def test_any_other(self):
        for driver, text in (
            ('vfio-pci', 'bound to vfio-pci'),
            ('c6xxvf', 'bound to c6xxvf'),
            (None, 'bound to no driver'),
            ('nvgrace_gpu_vfio_pci', 'bound to nvgrace_gpu_vfio_pci'),
            ('acme_vfio_pci', 'bound to acme_vfio_pci'),
        ):
            error = self.assertRaises(
                exceptions.DeviceError, self.check, driver
            )
            self.assertIn(f'0000:3d:01.1 is {text}', str(error))


class TestConformance(base.DriverTestCase):
    driver = pci.PciDriver
    spec = {'vendor_id': '8086', 'product_id': '37c9'}
    address = base.the_address(1)

    def functions(self):
        return base.sriov(self.CARD, '8086', '37c8', '37c9', 4)
