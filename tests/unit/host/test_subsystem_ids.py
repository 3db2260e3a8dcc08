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

from nova_accel.host import subsystem_ids
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs
from nova_accel.testing import pci_functions
from unit.drivers import failing_files

CARD, *PARTS = pci_functions.virtual_functions(
    pci_functions.function('0000:08:00.0', '10de', '25b6'), 2, '25b6'
)


class TestAdded(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        self.tell(CARD, '0x10de', '0x157e')
        for part in PARTS:
            self.tell(part, '0x10de', '0x0000')

    def tell(self, function, vendor, product):
        self.fake.set(
            function.address, subsystem_vendor=vendor, subsystem_device=product
        )

    def added(self, *functions):
        found = subsystem_ids.added(
            {each.address: each for each in functions or (CARD, *PARTS)},
            self.fake.sysfs,
        )
        return [
            each.subsystem and str(each.subsystem) for each in found.values()
        ]

    def test_a_card_and_its_virtual_functions(self):
        self.tell(PARTS[1], '0x10de', '0x1234')
        self.assertEqual(['10de:157e', '10de:157e', '10de:1234'], self.added())

    def test_a_card_that_libvirt_does_not_describe(self):
        self.assertEqual(['10de:0000', '10de:0000'], self.added(*PARTS))

    def test_no_function(self):
        self.fake.remove(CARD.address)
        self.assertEqual([None], self.added(CARD))

    def test_a_file_that_fails_costs_the_board_only(self):
        files = self.useFixture(failing_files.FailingFiles(self.fake.root))
        for name in ('subsystem_vendor', 'subsystem_device'):
            for trouble in (*failing_files.ERRORS, *failing_files.CONTENTS):
                files.failing = f'bus/pci/devices/{CARD.address}/{name}'
                files.trouble = trouble
                with sysfs_tree.noting() as notes:
                    self.assertEqual([None], self.added(CARD))
                told = ' '.join(notes.texts())
                self.assertEqual(trouble != 'ENOENT', bool(told), trouble)
                if told:
                    self.assertIn(f'{CARD.address}: {name}', told)
                self.assertLess(len(told), 200)

    def test_an_unreadable_card(self):
        other = pci_address.PciAddress.parse('0000:09:00.0')
        self.fake.set(other, subsystem_vendor='what?')
        with sysfs_tree.noting() as notes:
            self.assertEqual(
                [None],
                self.added(pci_functions.function(str(other), '1', '2')),
            )
        self.assertEqual(
            ["0000:09:00.0: subsystem_vendor has no id: 'what?'"],
            notes.texts(),
        )
