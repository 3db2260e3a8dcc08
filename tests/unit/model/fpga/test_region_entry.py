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
import datetime

import testtools

from nova_accel import exceptions
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from nova_accel.model.fpga import region_contents
from nova_accel.model.fpga import region_entry

BITSTREAM = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c11'
FUNCTION = '11111111-0b5a-4d59-9d3b-3a1b8f0a5c11'
INSTANCE = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c03'
OTHER = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c04'
SHA256 = 'a' * 64
TIME = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
CIRCUIT = programmable.Circuit(OTHER, 'b' * 64, (FUNCTION,), None)
UNCLEAN = region_contents.Unclean('project', 'why')


def an_entry(**properties):
    region = properties.pop('region', 'region0')
    return region_entry.RegionEntry(
        **{
            'device': 'pci_0000_81_00_0',
            'step': region_entry.RegionStep.PROGRAMMED,
            'record': programming_record.Record(
                OTHER,
                OTHER,
                region,
                BITSTREAM,
                programming_record.Asker('project', 'user', INSTANCE),
                TIME,
            ),
            'sha256': SHA256,
            'function_uuids': (FUNCTION,),
            'boot_id': 'boot',
            'loaded': 'text',
            'served': (INSTANCE,),
            'owner': 'project',
            **properties,
        }
    )


class TestEntry(testtools.TestCase):
    def test_it_is_read_as_it_was_written(self):
        for entry in (an_entry(), an_entry(fallback=CIRCUIT, owner=None)):
            self.assertEqual(entry, region_entry.from_dict(entry.to_dict()))

    def test_contents_are_those_of_what_was_programmed_alone(self):
        self.assertEqual(
            programmable.Contents(
                BITSTREAM, SHA256, 'text', (FUNCTION,), owner='project'
            ),
            an_entry().contents,
        )
        self.assertTrue(an_entry(region=programmable.SHELL).contents.is_shell)
        for step in (
            region_entry.RegionStep.PROGRAMMING,
            region_entry.RegionStep.BAD,
        ):
            self.assertIsNone(an_entry(step=step).contents)

    def test_the_last_of_the_operators_is_remembered(self):
        entry = an_entry(fallback=CIRCUIT)
        self.assertEqual(CIRCUIT, entry.operators)
        own = dataclasses.replace(entry, owner=None)
        self.assertEqual(own.circuit, own.operators)
        self.assertEqual(
            CIRCUIT,
            dataclasses.replace(
                own, step=region_entry.RegionStep.BAD
            ).operators,
        )

    def test_how_it_ends(self):
        begun = an_entry(
            step=region_entry.RegionStep.PROGRAMMING, served=(OTHER,)
        )
        done = begun.ended(TIME, None, 'new')
        self.assertEqual(
            ('new', (INSTANCE,), TIME, None),
            (
                done.contents.loaded,
                done.served,
                done.record.finished_at,
                done.record.failure,
            ),
        )
        bad = begun.ended(TIME, 'CRC error')
        self.assertEqual(
            (region_entry.RegionStep.BAD, None, 'CRC error'),
            (bad.step, bad.loaded, bad.record.failure),
        )

    def test_who_was_given_it(self):
        entry = an_entry()
        self.assertEqual(entry.circuit, entry.circuit_of(INSTANCE))
        self.assertIsNone(entry.circuit_of(OTHER))
        self.assertIsNone(entry.circuit_of(None))
        for step in (
            region_entry.RegionStep.PROGRAMMING,
            region_entry.RegionStep.BAD,
        ):
            self.assertIsNone(an_entry(step=step).circuit_of(INSTANCE))
        for instance in (None, INSTANCE):
            self.assertEqual(entry, entry.give_to(instance, None))
        for number in range(100):
            entry = entry.give_to(str(number), None)
        self.assertEqual(64, len(entry.served))
        self.assertIsNotNone(entry.circuit_of('99'))

    def test_its_image_states_something_else_by_now(self):
        image = fpga_bitstream.Bitstream(BITSTREAM, 'image', 4, owner=None)
        self.assertEqual(
            an_entry(owner=None, function_uuids=(), served=(INSTANCE, OTHER)),
            an_entry().give_to(OTHER, image),
        )


class TestKnown(testtools.TestCase):
    def test_who_may_not_get_it(self):
        self.assertIsNone(an_entry(owner=None).unclean('blank'))
        self.assertIsNone(an_entry(region=programmable.SHELL).unclean(None))
        for entry, blank, told in (
            (an_entry(), None, 'clean_bitstream'),
            (an_entry(), 'blank', 'before another project'),
            (an_entry(fallback=CIRCUIT), None, 'before another project'),
        ):
            found = entry.unclean(blank)
            self.assertEqual('project', found.owner)
            self.assertIn(told, found.reason)

    def test_what_failed(self):
        bad = an_entry().ended(TIME, 'CRC error')
        self.assertIn('CRC error', bad.contents_after_failure(None).fault)
        # That bitstream is at fault; another one may work.
        known = bad.contents_after_failure(UNCLEAN)
        self.assertIsNone(known.fault)
        self.assertEqual(programmable.UNKNOWN_OWNER, known.unclean.owner)
        self.assertIn('CRC error', known.unclean.reason)
        cut_short = an_entry(step=region_entry.RegionStep.PROGRAMMING)
        self.assertIn(
            'cut short', cut_short.contents_after_failure(UNCLEAN).fault
        )

    def test_what_its_device_says(self):
        entry = an_entry()
        good = region_contents.KnownContents(entry.contents, unclean=UNCLEAN)
        nothing = region_contents.KnownContents()
        unclean = region_contents.KnownContents(unclean=UNCLEAN)
        for said, is_same_boot, tells, expected in (
            ('text', True, True, good),
            ('text', True, False, good),
            ('text', False, True, good),
            # It says so of whatever it holds.
            ('text', False, False, unclean),
            ('other', False, True, nothing),
            ('other', False, False, unclean),
        ):
            self.assertEqual(
                expected,
                entry.contents_after_success(
                    said, is_same_boot, tells, UNCLEAN
                ),
            )
        for tells in (True, False):
            self.assertIn(
                'by others',
                entry.contents_after_success(
                    'other', True, tells, UNCLEAN
                ).fault,
            )

    def test_what_it_cannot_say_of_a_new_bitstream(self):
        before = an_entry(sha256='c' * 64).contents
        same = an_entry().contents
        begun = an_entry(step=region_entry.RegionStep.PROGRAMMING)
        plain = fpga_bitstream.Bitstream(BITSTREAM, 'image', 4)
        shell = dataclasses.replace(plain, provides_shell_id='shell')
        for good in (
            (before, True, plain, 'new'),
            (before, False, plain, 'text'),
            (same, True, plain, 'text'),
            (None, True, plain, 'text'),
            (None, True, shell, 'shell'),
        ):
            begun.check_loaded(*good)
        for wrong, why in (
            ((before, True, plain, 'text'), 'as before'),
            ((None, True, shell, 'other'), 'it is other, not shell'),
        ):
            error = self.assertRaises(
                exceptions.DeviceError, begun.check_loaded, *wrong
            )
            self.assertIn(why, str(error))
