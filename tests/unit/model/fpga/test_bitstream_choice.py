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

from nova_accel import exceptions
from nova_accel.model.fpga import bitstream_choice
from nova_accel.model.fpga import fpga_bitstream
from unit.virt.fpga import fpga_card

DEVICE = fpga_card.DEVICE
REGION = DEVICE.regions[0]
MULTIPLY = fpga_bitstream.WantedBitstream(function_name='multiply')


def an_image(name, owner=None, **properties):
    return fpga_bitstream.Bitstream(
        str(uuid.uuid4()),
        name,
        4,
        owner=owner,
        **{'function_name': 'multiply', **properties},
    )


class TestChoice(testtools.TestCase):
    def only(self, *found):
        return bitstream_choice.only(MULTIPLY, found, 'mine', DEVICE, REGION)

    def fault(self, *found):
        """The text for administrators; tenants do not read of the card."""
        error = self.assertRaises(
            exceptions.BitstreamNotFound, self.only, *found
        )
        self.assertIn('region0 of 0000:81:00.0', str(error))
        self.assertIn('region0', error.public)
        self.assertNotIn('0000:81', error.public)
        return str(error)

    def test_the_one_that_fits(self):
        for owner in (None, 'mine'):
            found = an_image('a', owner)
            self.assertEqual(
                found,
                self.only(
                    an_image('b', owner, vendor='Xilinx'),
                    an_image('c', owner, function_name='divide'),
                    an_image('d', 'theirs'),
                    found,
                ),
            )

    def test_none(self):
        self.assertIn('no bitstream with', self.fault())
        text = self.fault(an_image('b', vendor='Xilinx'))
        self.assertIn('its vendor is Xilinx', text)
        self.assertNotIn("'d'", self.fault(an_image('d', 'theirs')))

    def test_several_are_listed_in_order(self):
        text = self.fault(an_image('b'), an_image('a', 'mine'))
        self.assertIn('2 bitstreams', text)
        self.assertLess(text.index("'a'"), text.index("'b'"))

    def test_a_named_one_that_does_not_fit(self):
        bitstream_choice.check_fits(an_image('a'), DEVICE, REGION)
        error = self.assertRaises(
            exceptions.BitstreamRefused,
            bitstream_choice.check_fits,
            an_image('a', vendor='Xilinx', board='U250'),
            DEVICE,
            REGION,
        )
        for part in ('region0 of 0000:81:00.0', 'Xilinx', 'U250'):
            self.assertIn(part, str(error))
        self.assertNotIn('0000:81', error.public)
