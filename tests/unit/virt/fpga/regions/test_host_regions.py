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

import fixtures

from nova_accel import exceptions
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import region_contents
from nova_accel.model.fpga import region_entry
from unit.virt.fpga import fpga_card
from unit.virt.fpga import regions_case

BITSTREAM = regions_case.BITSTREAM
INSTANCE = regions_case.INSTANCE


class TestRegions(regions_case.RegionsTestCase):
    def test_what_was_programmed_is_published(self):
        contents = self.program()
        self.assertEqual(
            programmable.Contents(
                BITSTREAM,
                regions_case.SHA256,
                self.host.card.really_loaded(),
                (fpga_card.FUNCTION,),
                owner=None,
            ),
            contents,
        )
        first = self.host.published().deployables[0]
        self.assertEqual(BITSTREAM, first.bitstream_id)
        self.assertIn(fpga_card.FUNCTION_TRAIT, first.traits)
        (record,) = self.recover()
        self.assertEqual(BITSTREAM, record.bitstream_id)
        self.assertEqual(first, self.host.published().deployables[0])

    def test_whose_image_it_is_outlives_a_restart(self):
        for owner in (None, 'project'):
            self.assertEqual(owner, self.program(owner=owner).owner)
            self.recover()
            self.assertEqual(owner, self.host.known().contents.owner)

    def test_nothing_is_known_of_what_is_being_programmed(self):
        seen = []
        self.host.card.program = lambda *args: (
            seen.append((self.host.published(), self.host.known())),
            self.device_says('new'),
        )
        self.program()
        self.assertEqual(
            [
                (
                    fpga_card.DEVICE,
                    region_contents.KnownContents(is_changing=True),
                )
            ],
            seen,
        )

    def test_its_image_says_something_else_by_now(self):
        self.program(owner=programmable.UNKNOWN_OWNER)
        self.assertNotIn(
            fpga_card.FUNCTION_TRAIT,
            self.host.published().deployables[0].traits,
        )
        contents = self.host.regions.serve(
            self.host.target(),
            None,
            fpga_bitstream.Bitstream(
                BITSTREAM,
                'image',
                4,
                function_uuids=(fpga_card.FUNCTION,),
                owner=None,
            ),
        )
        self.assertIsNone(contents.owner)
        self.recover()
        self.assertEqual(contents, self.host.known().contents)
        self.assertIn(
            fpga_card.FUNCTION_TRAIT,
            self.host.published().deployables[0].traits,
        )

    def test_one_card_does_not_hide_the_others(self):
        self.program()
        bad = dataclasses.replace(
            fpga_card.DEVICE, name='bad', attributes=None
        )
        self.host.journal.write(
            dataclasses.replace(
                self.host.journal.entries()[0],
                device='bad',
                step=region_entry.RegionStep.BAD,
            )
        )
        found, good = self.host.regions.overlaid([bad, fpga_card.DEVICE])
        self.assertIn('not known', found.fault)
        self.assertEqual(self.host.published(), good)
        self.assertIn(fpga_card.FUNCTION_TRAIT, good.deployables[0].traits)

    def test_who_was_given_it_is_remembered(self):
        self.program()
        circuit = programmable.Circuit(
            BITSTREAM, regions_case.SHA256, (fpga_card.FUNCTION,), owner=None
        )
        self.assertEqual(circuit, self.last().circuit_of(INSTANCE))
        for instance in (None, regions_case.DEVICE):
            self.assertIsNone(self.last().circuit_of(instance))
        self.host.regions.serve(self.host.target(), regions_case.DEVICE)
        self.recover()
        for instance in (INSTANCE, regions_case.DEVICE):
            self.assertEqual(circuit, self.last().circuit_of(instance))

    def last(self):
        return self.host.regions.last(self.host.target())

    def test_no_time_left(self):
        self.device_says('as delivered')
        self.useFixture(fixtures.MonkeyPatch('time.monotonic', lambda: 0))
        error = self.assertRaises(
            exceptions.DeviceError,
            self.host.regions.program,
            self.host.target(),
            None,
            None,
            self.file,
            regions_case.SHA256,
            0,
            lambda: None,
        )
        self.assertIn('no time left', str(error))
        self.assertFalse(self.host.regions.is_journaled(self.host.target()))

    def test_after_a_boot_it_says_nothing(self):
        """Its manager has not programmed anything yet."""
        self.program()
        self.recover(boot='boot2')
        (self.host.card.directory / 'region0').unlink()
        self.assertEqual(region_contents.KnownContents(), self.host.known())
        self.recover(boot='boot1')
        self.assertIsNotNone(self.host.known().fault)
