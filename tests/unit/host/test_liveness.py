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
from nova_accel.host import liveness
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs

CARD = pci_address.PciAddress.parse('0000:81:00.0')
VIRTUAL = pci_address.PciAddress.parse('0000:81:00.4')


class TestAnswering(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        self.fake.set(CARD, vendor='0x10de')

    def fault(self, address=CARD):
        return liveness.fault(self.fake.sysfs, address)

    def config(self, content):
        path = self.fake.root / 'bus/pci/devices' / str(CARD) / 'config'
        path.write_bytes(content)

    def test_all_ones(self):
        self.fake.lose(CARD)
        self.assertIn(f'{CARD} does not answer', self.fault())
        error = self.assertRaises(
            exceptions.DeviceError,
            liveness.check,
            self.fake.sysfs,
            [VIRTUAL, CARD],
        )
        self.assertIn('vendor id reads as ffff', str(error))

    def test_it_is_back(self):
        self.fake.lose(CARD)
        self.fake.revive(CARD, '10de')
        self.assertIsNone(self.fault())
        liveness.check(self.fake.sysfs, [CARD])

    def test_what_sysfs_does_not_say(self):
        self.assertIsNone(self.fault())
        for content in (b'', b'\xff', 64 * b'\0'):
            self.config(content)
            self.assertIsNone(self.fault())

    def test_an_unreadable_config_is_told(self):
        path = self.fake.root / 'bus/pci/devices' / str(CARD) / 'config'
        path.mkdir()
        with sysfs_tree.noting() as notes:
            self.assertIsNone(self.fault())
        self.assertIn('config cannot be read: EISDIR', notes.texts()[0])

    def test_a_virtual_function_has_no_vendor_id_of_its_own(self):
        self.fake.lose(VIRTUAL)
        link = self.fake.root / 'bus/pci/devices' / str(VIRTUAL) / 'physfn'
        link.symlink_to(f'../{CARD}')
        self.fake.revive(CARD, '10de')
        self.assertIsNone(self.fault(VIRTUAL))
        self.fake.lose(CARD)
        self.assertIn(f'{CARD} does not answer', self.fault(VIRTUAL))

    def test_it_stays_without_power(self):
        for status in (None, 'active', 'error'):
            self.fake.set(CARD, power_state='D3cold')
            if status is not None:
                self.fake.set(CARD, power__runtime_status=status)
            self.assertIn('D3cold', self.fault())

    def test_it_sleeps(self):
        for state in ('D3hot', 'D3cold', 'unknown', 'D0'):
            for status in ('suspended', 'suspending', 'resuming'):
                self.fake.set(
                    CARD, power_state=state, power__runtime_status=status
                )
                self.assertIsNone(self.fault())

    def test_it_has_power(self):
        for state in ('D0', 'D3hot', 'unknown', 'error'):
            self.fake.set(
                CARD, power_state=state, power__runtime_status='active'
            )
            self.assertIsNone(self.fault())
