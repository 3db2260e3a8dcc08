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


import json

import testtools

from nova_accel import exceptions
from nova_accel.host import libvirt_devices
from nova_accel.model.devices import device_spec
from nova_accel.testing import pci_functions
from nova_accel.virt.publishing import refusals


class TestRefusals(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.card, *self.parts = pci_functions.virtual_functions(
            pci_functions.function('0000:3d:00.0', '8086', '37c8'), 5, '37c9'
        )
        self.host = libvirt_devices.HostDevices(
            {each.address: each for each in (self.card, *self.parts)}
        )
        self.refused = refusals.Refusals(self.host)
        (self.spec,) = device_spec.parse(
            [json.dumps({'address': '0000:3d:00.0', 'driver': 'pci'})], ['pci']
        )

    def test_functions_of_a_card_share_a_text(self):
        for part in self.parts:
            self.refused.add(
                part.address, self.spec, f'{part.address} is in no group'
            )
        self.refused.add(self.card.address, self.spec, 'a bridge')
        shared, other = self.refused.texts
        self.assertIn('0000:3d:00.1, 0000:3d:00.2, 0000:3d:00.3', shared)
        self.assertNotIn('0000:3d:00.4', shared)
        self.assertIn(self.spec.text, shared)
        self.assertTrue(other.endswith(': a bridge'))

    def test_a_refusal_names_all_of_its_functions(self):
        for part in (*self.parts, self.parts[0]):
            self.refused.add(part.address, self.spec, 'why')
        (found,) = self.refused.found
        self.assertEqual(
            tuple(str(each.address) for each in self.parts), found.addresses
        )
        self.assertEqual((self.spec.text, 'why'), (found.line, found.why))
        self.assertFalse(found.is_until_start)

    def test_what_is_made_at_the_start(self):
        self.refused.add(
            self.card.address, self.spec, exceptions.NotMadeYet('none yet')
        )
        (found,) = self.refused.found
        self.assertTrue(found.is_until_start)
        self.assertEqual('none yet', found.why)

    def test_what_was_refused(self):
        address = self.card.address
        self.assertFalse(self.refused.has(address, self.spec))
        self.refused.add(address, self.spec, 'why')
        self.assertTrue(self.refused.has(address, self.spec))
        (another,) = device_spec.parse(
            [json.dumps({'vendor_id': '8086', 'driver': 'pci'})], ['pci']
        )
        self.assertFalse(self.refused.has(address, another))
