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

GPU, AUDIO, BRIDGE = machines.GPU, machines.GPU_AUDIO, machines.BRIDGE


class TestIommu(base.HostTestCase):
    """A group goes to one guest as a whole, or not at all."""

    machine = machines.EVERY_KIND

    def test_a_part_of_a_group(self):
        self.assert_refused(
            base.a_line(GPU),
            GPU.address,
            'shares the IOMMU group 1',
            AUDIO.address,
        )

    def test_the_functions_of_a_slot(self):
        for unit in ('slot', 'iommu_group'):
            device = self.discover_one(base.a_line(GPU, unit=unit))
            (handle,) = device.deployables[0].handles
            self.assertEqual(
                tuple(map(base.address, (GPU, AUDIO))), handle.functions
            )

    def test_a_group_of_several_slots(self):
        one, other = machines.CROWDED
        self.assert_refused(base.a_line(one, unit='slot'), other.address)
        device = self.discover_one(base.a_line(one, unit='iommu_group'))
        (handle,) = device.deployables[0].handles
        self.assertEqual(
            {base.address(one), base.address(other)}, set(handle.functions)
        )

    def test_a_bridge(self):
        self.assert_refused(
            base.a_line(BRIDGE, type='NIC'), BRIDGE.address, 'PCI class 0604'
        )

    def test_no_iommu(self):
        self.assert_refused(
            base.a_line(machines.NO_IOMMU), 'in no IOMMU group'
        )
