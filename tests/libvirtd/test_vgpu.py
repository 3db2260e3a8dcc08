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

from libvirtd import base
from libvirtd import machines
from nova_accel import exceptions
from nova_accel.host import vfio_vgpu

CARD = machines.VFIO_GPU
Q12, Q24, Q48 = (
    str(each.number) for each in CARD.virtual_functions.vgpu_types
)


class TestVgpu(base.HostTestCase):
    """vGPUs on virtual functions, set by writing to sysfs."""

    machine = machines.EVERY_KIND

    def setUp(self):
        super().setUp()
        self.vgpus = vfio_vgpu.VfioVgpu(self.sysfs)
        self.functions = [
            base.address(CARD.virtual(index)) for index in range(4)
        ]
        for function in self.functions:
            self.addCleanup(self.vgpus.set_type, function, vfio_vgpu.NO_TYPE)

    def creatable(self, index):
        return set(self.vgpus.types(self.functions[index]).values())

    def assert_not_set(self, index, vgpu_type):
        error = self.assertRaises(
            exceptions.DeviceError,
            self.vgpus.set_type,
            self.functions[index],
            vgpu_type,
        )
        self.assertIn(str(self.functions[index]), str(error))

    def test_types(self):
        self.assertEqual(
            {
                each.name: str(each.number)
                for each in CARD.virtual_functions.vgpu_types
            },
            self.vgpus.types(self.functions[0]),
        )
        self.assertEqual(
            vfio_vgpu.NO_TYPE, self.vgpus.current(self.functions[0])
        )

    def test_no_vgpus(self):
        for function in (CARD, machines.SSD, machines.NIC.virtual(0)):
            self.assertIsNone(self.vgpus.current(base.address(function)))
            self.assertRaises(
                exceptions.DeviceError,
                self.vgpus.types,
                base.address(function),
            )

    def test_set_and_cleared(self):
        for _time in range(2):
            self.vgpus.set_type(self.functions[0], Q12)
            self.assertEqual(Q12, self.vgpus.current(self.functions[0]))
        for _time in range(2):
            self.vgpus.set_type(self.functions[0], vfio_vgpu.NO_TYPE)
            self.assertEqual(
                vfio_vgpu.NO_TYPE, self.vgpus.current(self.functions[0])
            )

    def test_the_others_can_be_of_the_same_size(self):
        self.vgpus.set_type(self.functions[0], Q24)
        self.assertEqual(
            [set(), {Q24}, {Q24}, {Q24}],
            [self.creatable(index) for index in range(4)],
        )
        self.assert_not_set(1, Q12)

    def test_the_card_is_full(self):
        for index in range(2):
            self.vgpus.set_type(self.functions[index], Q24)
        self.assertEqual(set(), self.creatable(2))
        self.assert_not_set(2, Q24)
        self.vgpus.set_type(self.functions[0], vfio_vgpu.NO_TYPE)
        self.vgpus.set_type(self.functions[2], Q24)

    def test_another_type(self):
        self.vgpus.set_type(self.functions[0], Q12)
        self.assert_not_set(0, Q24)
        self.assertEqual(Q12, self.vgpus.current(self.functions[0]))

    def test_the_host_reboots(self):
        self.vgpus.set_type(self.functions[0], Q48)
        self.reboot()
        self.assertEqual(
            [vfio_vgpu.NO_TYPE] * 4,
            list(map(self.vgpus.current, self.functions)),
        )
        self.vgpus.set_type(self.functions[0], Q48)
