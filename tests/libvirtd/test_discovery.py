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

from lab import fake_sys
from libvirtd import base
from libvirtd import machines


class TestDiscovery(base.HostTestCase):
    machine = machines.EVERY_KIND

    def test_functions(self):
        """Each is seen, with what the machine says of it."""
        found = self.node_devices.look()
        self.assertEqual((), found.unreadable)
        wanted = list(self.machine.at_boot())
        self.assertEqual(set(map(base.address, wanted)), set(found.functions))
        for function in wanted:
            seen = found.functions[base.address(function)]
            self.assertEqual(
                (
                    f'{function.vendor:04x}',
                    f'{function.product:04x}',
                    f'{function.device_class:06x}',
                    function.driver,
                    function.numa_node,
                    function.group,
                    function.is_bridge,
                ),
                (
                    seen.vendor_id,
                    seen.product_id,
                    seen.class_code,
                    seen.driver,
                    seen.numa_node,
                    seen.iommu_group,
                    seen.is_bridge,
                ),
            )
            self.assertEqual(
                {
                    base.address(other)
                    for other in wanted
                    if None is not function.group == other.group
                },
                set(seen.iommu_members),
            )
            self.assertEqual(
                tuple(map(base.address, function.at_boot())),
                seen.virtual_functions,
            )
            self.assertEqual(
                {each.name for each in function.mdev_types},
                set(seen.mdev_types),
            )
            for virtual in seen.virtual_functions:
                self.assertEqual(
                    seen.address, found.functions[virtual].parent_address
                )

    def test_what_the_hardware_says_of_itself(self):
        gpu = self.function(machines.GPU)
        self.assertEqual(
            ('16 GT/s x16', '2.5 GT/s x8', base.address(machines.BRIDGE)),
            (str(gpu.link_max), str(gpu.link), gpu.upstream),
        )
        self.assertEqual(
            {
                'card_name': machines.GPU.product_data.name,
                'part_number': machines.GPU.product_data.part_number,
                'serial_number': machines.GPU.product_data.serial_number,
            },
            gpu.vpd,
        )

    def test_nothing_changes_from_look_to_look(self):
        self.assertEqual(self.node_devices.look(), self.node_devices.look())

    def test_parents_that_are_no_pci_functions(self):
        """What they have made is no accelerator, and harms nothing."""
        before = self.node_devices.look()
        for parent in (machines.MTTY, machines.AP_MATRIX):
            self.a_foreign_mdev(parent, parent.mdev_types[0].name)
        self.assert_soon(2, lambda: len(self.host.list_mediated_devices()))
        self.assertEqual(before, self.node_devices.look())

    def test_a_device_is_pulled_out_and_put_in_again(self):
        line = base.a_line(machines.SSD)
        before = self.discover(line)
        self.file(machines.SSD, 'remove').write_text('1')
        self.assert_soon(None, self.function, machines.SSD)
        self.assertEqual((), self.discover(line).devices)
        (self.server.sysfs / 'bus/pci/rescan').write_text('1')
        self.assert_soon(before, self.discover, line)

    def test_a_device_that_libvirt_cannot_read(self):
        """The rest of the host works."""
        tree = fake_sys.Tree(self.server.tree)
        config = f'{machines.SSD.path}/config'
        content = (tree.root / config).read_bytes()
        self.addCleanup(tree.request, config, content)
        tree.request(config, b'')
        inventory = self.discover(
            base.a_line(machines.SSD), base.a_line(machines.TIME_CARD)
        )
        self.assertIn(
            base.address(machines.TIME_CARD),
            [device.address for device in inventory.devices],
        )
