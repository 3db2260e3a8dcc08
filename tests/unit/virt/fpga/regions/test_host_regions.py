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

import fixtures

from nova_accel import exceptions
from nova_accel.model import fpga_bitstream
from nova_accel.model import programmable
from nova_accel.model import region_contents
from nova_accel.virt.fpga.regions import host_regions
from nova_accel.virt.fpga.regions import region_journal
from unit.virt.fpga import fpga_card
from unit.virt.fpga import regions_case

BITSTREAM = regions_case.BITSTREAM


class TestRegions(regions_case.RegionsTestCase):
    def test_the_kernel_names_its_boots(self):
        self.assertEqual(
            host_regions.boot_id(), str(uuid.UUID(host_regions.boot_id()))
        )

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
            [(fpga_card.DEVICE, region_contents.Known(is_changing=True))], seen
        )

    def test_its_image_says_something_else_by_now(self):
        self.program(owner=programmable.UNKNOWN_OWNER)
        self.assertNotIn(
            fpga_card.FUNCTION_TRAIT,
            self.host.published().deployables[0].traits,
        )
        contents = self.host.regions.restate(
            self.host.target(),
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
                step=region_journal.Step.BAD,
            )
        )
        found, good = self.host.regions.overlaid([bad, fpga_card.DEVICE])
        self.assertIn('not known', found.fault)
        self.assertEqual(self.host.published(), good)
        self.assertIn(fpga_card.FUNCTION_TRAIT, good.deployables[0].traits)

    def test_who_was_given_it_is_remembered(self):
        self.program()
        served = self.host.regions.served
        circuit = programmable.Circuit(
            BITSTREAM, regions_case.SHA256, (fpga_card.FUNCTION,), owner=None
        )
        self.assertEqual(
            circuit, served(self.host.target(), regions_case.INSTANCE)
        )
        for instance in (None, regions_case.DEVICE):
            self.assertIsNone(served(self.host.target(), instance))
        self.host.regions.serve(self.host.target(), regions_case.DEVICE)
        self.recover()
        for instance in (regions_case.INSTANCE, regions_case.DEVICE):
            self.assertEqual(
                circuit, self.host.regions.served(self.host.target(), instance)
            )
        for number in range(100):
            self.host.regions.serve(self.host.target(), str(number))
        self.assertEqual(
            64, len(self.host.regions.entry(self.host.target()).served)
        )

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
        self.assertEqual(region_contents.Known(), self.host.known())
        self.recover(boot='boot1')
        self.assertIsNotNone(self.host.known().fault)

    def test_while_a_guest_has_the_whole_card(self):
        """The next one comes before the host looks again."""
        told = dataclasses.replace(
            fpga_card.DEVICE,
            regions=tuple(
                dataclasses.replace(each, type_uuid=BITSTREAM)
                for each in fpga_card.DEVICE.regions
            ),
        )
        for found in (told, fpga_card.DEVICE):
            self.host.regions.overlaid([found])
            self.assertEqual(BITSTREAM, self.host.target().region.type_uuid)
        # Nor does it tell a nova-compute that is started meanwhile.
        for boot, type_uuid in (
            ('boot1', BITSTREAM),
            ('boot2', None),
        ):
            self.recover(boot=boot)
            self.assertEqual(type_uuid, self.host.target().region.type_uuid)
