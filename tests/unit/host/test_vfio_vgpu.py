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

import testtools

from nova_accel import exceptions
from nova_accel.host import vfio_vgpu
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs

VF = pci_address.PciAddress.parse('0000:3d:00.4')

# As in the documentation of NVIDIA's vGPU software.
TYPES = '''ID    : vGPU Name
557   : NVIDIA A40-1Q
558   : NVIDIA A40-2Q
1428 : NVIDIA H200X-1-18C'''


class VfioVgpuTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        self.fake.set(
            VF,
            nvidia__creatable_vgpu_types=TYPES,
            nvidia__current_vgpu_type='0',
        )
        self.vgpu = vfio_vgpu.VfioVgpu(self.fake.sysfs)

    def assert_refused(self, text, method, *arguments):
        error = self.assertRaises(exceptions.DeviceError, method, *arguments)
        self.assertIn(text, str(error))


class TestTypes(VfioVgpuTestCase):
    def test_names_and_ids(self):
        self.assertEqual(
            {
                'NVIDIA A40-1Q': '557',
                'NVIDIA A40-2Q': '558',
                'NVIDIA H200X-1-18C': '1428',
            },
            self.vgpu.types(VF),
        )

    def test_a_card_that_is_full(self):
        for text in ('', 'ID    : vGPU Name'):
            self.fake.set(VF, nvidia__creatable_vgpu_types=text)
            self.assertEqual({}, self.vgpu.types(VF))

    def test_a_function_without(self):
        other = pci_address.PciAddress(0, 0x3D, 0, 5)
        self.assertRaises(exceptions.DeviceError, self.vgpu.types, other)

    def test_what_is_no_type(self):
        self.fake.set(VF, nvidia__creatable_vgpu_types='nvidia-557')
        self.assert_refused("'nvidia-557'", self.vgpu.types, VF)


class TestSetType(VfioVgpuTestCase):
    def test_it_has_it_then(self):
        self.assertEqual(vfio_vgpu.NO_TYPE, self.vgpu.current(VF))
        self.vgpu.set_type(VF, '557')
        self.assertEqual('557', self.vgpu.current(VF))
        self.vgpu.set_type(VF, vfio_vgpu.NO_TYPE)
        self.assertEqual(vfio_vgpu.NO_TYPE, self.vgpu.current(VF))

    def test_again(self):
        """A guest may have it, and the file would refuse."""
        self.vgpu.set_type(VF, '557')
        written = []
        self.fake.on_write['nvidia/current_vgpu_type'] = lambda *arguments: (
            written.append(arguments)
        )
        self.vgpu.set_type(VF, '557')
        self.assertEqual([], written)

    def test_it_did_not_take(self):
        self.fake.on_write['nvidia/current_vgpu_type'] = (
            lambda address, _value: self.fake.set(
                address, nvidia__current_vgpu_type='0'
            )
        )
        self.assert_refused(
            'given the vGPU type 557, but has 0', self.vgpu.set_type, VF, '557'
        )

    def test_a_function_that_cannot_be_given_one(self):
        other = pci_address.PciAddress(0, 0x3D, 0, 5)
        self.assertIsNone(self.vgpu.current(other))
        self.assert_refused('No such file', self.vgpu.set_type, other, '557')


class TestSetParameters(VfioVgpuTestCase):
    def setUp(self):
        super().setUp()
        self.fake.set(VF, nvidia__vgpu_params='')

    def test_it_has_them_then(self):
        self.vgpu.set_parameters(VF, 'enable_uvm=1,disable_vnc=1')
        self.assertEqual(
            'enable_uvm=1,disable_vnc=1', self.vgpu.parameters(VF)
        )
        self.vgpu.set_parameters(VF, '')
        self.assertEqual('', self.vgpu.parameters(VF))

    def test_again(self):
        """A guest may have it, and the file would refuse."""
        self.vgpu.set_parameters(VF, 'enable_uvm=1')
        self.fake.on_write['nvidia/vgpu_params'] = self.fail
        self.vgpu.set_parameters(VF, 'enable_uvm=1')

    def test_it_kept_less(self):
        self.fake.on_write['nvidia/vgpu_params'] = lambda address, value: (
            self.fake.set(address, nvidia__vgpu_params=value[:-1])
        )
        self.assert_refused(
            "set to 'enable_uvm=1', but is 'enable_uvm='",
            self.vgpu.set_parameters,
            VF,
            'enable_uvm=1',
        )

    def test_a_function_without(self):
        other = pci_address.PciAddress(0, 0x3D, 0, 5)
        self.vgpu.set_parameters(other, '')
        self.assert_refused(
            'enable_uvm=1 cannot be written to nvidia/vgpu_params',
            self.vgpu.set_parameters,
            other,
            'enable_uvm=1',
        )
