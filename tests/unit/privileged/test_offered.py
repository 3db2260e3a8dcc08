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

from nova_accel.privileged import offered
from unit.privileged import tree

ADDRESS = tree.ADDRESS
NIC = '0000:3d:00.1'


class TestCheck(tree.TreeTestCase):
    def check(self, address=ADDRESS, driver=None):
        return offered.check(self.root, address, driver)

    def assert_refused(self, text, address=ADDRESS, driver=None):
        error = self.assertRaises(ValueError, self.check, address, driver)
        # No other one reaches the process that has called.
        self.assertIs(ValueError, type(error))
        self.assertIn(f'address {address}', str(error))
        self.assertIn(text, str(error))

    def test_its_line(self):
        self.assertEqual(ADDRESS, self.check().address)

    def test_by_its_ids(self):
        tree.offer(self, {'vendor_id': '144D', 'product_id': 'a824'})
        self.check()
        tree.offer(self, {'vendor_id': '144d', 'product_id': 'a825'})
        self.assert_refused('device_spec')

    def board(self, function, vendor='0x144d', product='0xa801'):
        (function / 'subsystem_vendor').write_text(f'{vendor}\n')
        (function / 'subsystem_device').write_text(f'{product}\n')

    def test_by_its_board(self):
        line = {'vendor_id': '144d', 'subsystem_product_id': 'a801'}
        tree.offer(self, line)
        self.assert_refused('device_spec')
        self.board(self.function)
        self.check()
        tree.offer(self, line | {'subsystem_vendor_id': '8086'})
        self.assert_refused('device_spec')

    def test_by_the_board_of_its_card(self):
        part = '0000:3d:00.4'
        self.board(self.function)
        function = self.add(part, physfn=ADDRESS)
        tree.offer(
            self, {'address': '*:3d:00.4', 'subsystem_product_id': 'a801'}
        )
        self.check(part)
        self.board(function, product='0x0000')
        self.check(part)
        self.board(function, product='0xa802')
        self.assert_refused('device_spec', part)

    def test_a_board_that_is_none(self):
        tree.offer(self, {'address': ADDRESS, 'subsystem_product_id': 'a801'})
        self.board(self.function)
        for text in ('', 'a801', '0xa801' + 64 * ' ' + 'x', '\0' * 70000):
            (self.function / 'subsystem_device').write_text(text)
            self.assert_refused('device_spec')
        (self.function / 'subsystem_device').write_bytes(b'\xff\xfe')
        self.assert_refused('device_spec')
        tree.offer(self, {'address': ADDRESS})
        self.check()

    def test_what_is_not_there(self):
        tree.offer(self, {'vendor_id': '*', 'address': '*:*:*.*'})
        self.assert_refused('no such PCI function', '0000:99:00.0')

    def test_another_function_of_the_slot(self):
        """The host's own NIC may be beside the accelerator."""
        self.add(NIC, 'i40e')
        self.assert_refused('device_spec', NIC)
        for line in (
            {'unit': 'slot'},
            {'driver': 'xrt'},
            {'driver': 'fpga_region', 'whole': True},
        ):
            tree.offer(self, {'address': ADDRESS, **line})
            self.check(NIC)

    def test_another_function_of_the_iommu_group(self):
        other = self.add('0000:3d:01.0', 'i40e')
        group = self.root / 'kernel/iommu_groups/7'
        (group / 'devices').mkdir(parents=True)
        for name in (ADDRESS, '0000:3d:01.0', 'platform'):
            (group / 'devices' / name).touch()
        (other / 'iommu_group').symlink_to(group)
        for unit in ('function', 'slot'):
            tree.offer(self, {'address': ADDRESS, 'unit': unit})
            self.assert_refused('device_spec', '0000:3d:01.0')
        tree.offer(self, {'address': ADDRESS, 'unit': 'iommu_group'})
        self.check('0000:3d:01.0')

    def test_a_virtual_function(self):
        self.add('0000:3d:00.4', physfn=ADDRESS)
        self.check('0000:3d:00.4')
        tree.offer(self, {'address': NIC})
        self.assert_refused('device_spec', '0000:3d:00.4')

    def test_the_driver(self):
        self.add(NIC, 'i40e')
        tree.offer(self, {'address': '*:3d:*.*'})
        self.check(NIC, 'i40e')
        self.assert_refused('its driver is i40e, not xocl', NIC, 'xocl')
        self.assert_refused('its driver is None, not xocl', driver='xocl')

    def test_no_lines(self):
        tree.offer(self)
        self.assert_refused('device_spec')

    def test_a_malformed_line(self):
        tree.configure(self, device_spec=['{'])
        error = self.assertRaises(ValueError, self.check)
        self.assertIs(ValueError, type(error))
        self.assertIn('device_spec', str(error))
