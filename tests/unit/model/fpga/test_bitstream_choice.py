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

import dataclasses
import uuid

import testtools

from nova_accel import exceptions
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import bitstream_choice
from nova_accel.model.fpga import fpga_bitstream
from rig import sample_devices
from unit.virt.fpga import fpga_card

DEVICE = fpga_card.DEVICE
REGION = DEVICE.regions[0]
MULTIPLY = fpga_bitstream.WantedBitstream(function_name='multiply')

REGION_TYPE = '9eb88c8c-981c-59f8-9ada-574fd16d4d18'
OTHER_TYPE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'

CARD = sample_devices.fpga(0x81, product='PAC Arria10')
CARDS_REGION = programmable.Region('region1', REGION_TYPE, 'Shell-2.1')
FITTING = fpga_bitstream.Bitstream(
    str(uuid.uuid4()),
    'matrix',
    10,
    vendor='intel',
    board='pac arria10',
    shell_id='shell-2.1',
    region_uuid=REGION_TYPE,
)


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


class TestMisfits(testtools.TestCase):
    def misfits(self, **changes):
        return bitstream_choice.misfits(
            dataclasses.replace(FITTING, **changes), CARD, CARDS_REGION
        )

    def test_fits(self):
        self.assertEqual([], self.misfits())
        self.assertEqual([], self.misfits(vendor='8086', board='0x09C4'))
        self.assertEqual(
            [], self.misfits(vendor=None, board=None, shell_id=None)
        )

    def test_a_shell(self):
        shell = programmable.Region(
            programmable.SHELL, shell_id='base', is_shell=True
        )

        def misfits(**changes):
            return ', '.join(
                bitstream_choice.misfits(
                    dataclasses.replace(
                        FITTING,
                        **{
                            'region_uuid': None,
                            'shell_id': 'base',
                            'provides_shell_id': 'new',
                            **changes,
                        },
                    ),
                    CARD,
                    shell,
                )
            )

        self.assertEqual('', misfits())
        self.assertEqual('', misfits(shell_id=None))
        self.assertIn('no shell', misfits(provides_shell_id=None))
        self.assertIn('shell_id is other', misfits(shell_id='other'))
        self.assertIn('has no vendor', misfits(vendor=None))
        self.assertIn('has no board', misfits(board=None))
        self.assertIn('its board is', misfits(board='other'))
        # Nor is it for a region, whoever asks for it.
        self.assertIn(
            'it is a shell, not for a region',
            self.misfits(provides_shell_id='new'),
        )

    def test_each(self):
        for name, value, actual in (
            ('region_uuid', OTHER_TYPE, REGION_TYPE),
            ('vendor', 'Xilinx', 'Intel'),
            ('board', 'U250', 'PAC'),
            ('shell_id', 'shell-2', 'Shell-2.1'),
        ):
            (why,) = self.misfits(**{name: value})
            for text in (f'its {name} is {value}', actual, 'region1'):
                self.assertIn(text, why)
            # Tenants read it.
            self.assertNotIn('0000:81:00.0', why)

    def test_all(self):
        self.assertEqual(
            5,
            len(
                self.misfits(
                    region_uuid=OTHER_TYPE,
                    vendor='a',
                    board='b',
                    shell_id='c',
                    status='deactivated',
                )
            ),
        )

    def test_a_typed_region_wants_its_type(self):
        (why,) = self.misfits(region_uuid=None)
        self.assertIn('it has no region_uuid', why)
        self.assertIn(REGION_TYPE, why)

    def test_a_region_that_says_nothing(self):
        """What is stated and cannot be compared does not fit."""
        silent = programmable.Region('region1')
        self.assertEqual(
            ['its region_uuid', 'its shell_id'],
            [
                why.partition(' is ')[0]
                for why in bitstream_choice.misfits(FITTING, CARD, silent)
            ],
        )
        self.assertEqual(
            [],
            bitstream_choice.misfits(
                dataclasses.replace(FITTING, region_uuid=None, shell_id=None),
                CARD,
                silent,
            ),
        )

    def test_the_regions_type_in_another_spelling(self):
        for spelled in (REGION_TYPE.upper(), REGION_TYPE.replace('-', '')):
            shouted = programmable.Region('region1', spelled, 'SHELL-2.1')
            self.assertEqual(
                [], bitstream_choice.misfits(FITTING, CARD, shouted)
            )
