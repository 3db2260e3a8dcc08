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

import uuid

import testtools

from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice
from nova_accel.model.devices import hardware
from nova_accel.model.devices import unit_words

CARD = pci_address.PciAddress.parse('0000:3d:00.0')
AUDIO = pci_address.PciAddress.parse('0000:3d:00.1')


def words(*facts):
    return unit_words.of(
        hardware.Deployable(
            'part',
            'VGPU',
            frozenset(),
            tuple(
                attach_handle.AttachHandle(str(uuid.uuid4()), CARD, **each)
                for each in facts
            ),
        )
    )


class TestOf(testtools.TestCase):
    def test_functions(self):
        self.assertEqual('2 x function', words({}, {}))
        self.assertEqual(
            '1 x 2 functions together', words({'further_functions': (AUDIO,)})
        )

    def test_parts_of_gpus(self):
        self.assertEqual(
            '2 x nvidia-592, 1 x vGPU type 558',
            words(
                {'mdev_type': 'nvidia-592'},
                {'vgpu_type': '558'},
                {'mdev_type': 'nvidia-592'},
            ),
        )

    def test_shapes(self):
        self.assertEqual(
            '1 x whole, 2 x mig:1g.10gb',
            words(
                {'slice': card_slice.CardSlice('whole', 'whole', 0, 8)},
                {'slice': card_slice.CardSlice('mig:1g.10gb', 'mig', 0, 1)},
                {'slice': card_slice.CardSlice('mig:1g.10gb', 'mig', 1, 1)},
            ),
        )

    def test_no_units(self):
        self.assertEqual('none', words())
