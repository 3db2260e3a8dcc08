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
import json
import pathlib

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model import programmable
from nova_accel.model import programming_record
from nova_accel.virt.fpga.regions import region_journal

BITSTREAM = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c11'
FUNCTION = '11111111-0b5a-4d59-9d3b-3a1b8f0a5c11'
RECORD = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c01'
DEVICE = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c02'
INSTANCE = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c03'
SHA256 = 'a' * 64
STARTED = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)


def an_entry(step=region_journal.Step.PROGRAMMED, name='region0'):
    return region_journal.Entry(
        'pci_0000_81_00_0',
        step,
        programming_record.Record(
            RECORD,
            DEVICE,
            name,
            BITSTREAM,
            programming_record.Asker('project', 'user', INSTANCE),
            STARTED,
        ),
        SHA256,
        (FUNCTION,),
        'boot',
        'text',
        (INSTANCE,),
        'project',
    )


class TestRegionJournal(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.directory = (
            pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'regions'
        )
        self.journal = region_journal.RegionJournal(self.directory)

    def reopened(self):
        return region_journal.RegionJournal(self.directory)

    def read(self, journal, name='region0'):
        return journal.read('pci_0000_81_00_0', name)

    def test_what_is_written_is_there_after_a_restart(self):
        begun = an_entry(region_journal.Step.PROGRAMMING)
        ended = dataclasses.replace(
            an_entry(name='region1'),
            record=(
                dataclasses.replace(
                    an_entry(name='region1').record,
                    failure='CRC error',
                    finished_at=STARTED + datetime.timedelta(seconds=8),
                )
            ),
        )
        for entry in (begun, ended):
            self.journal.write(entry)
        self.assertEqual(begun, self.read(self.reopened()))
        self.assertEqual(ended, self.read(self.reopened(), 'region1'))
        self.assertIsNone(self.read(self.reopened(), 'region2'))
        self.assertCountEqual([begun, ended], self.reopened().entries())

    def test_contents_are_those_of_what_was_programmed_alone(self):
        self.assertEqual(
            programmable.Contents(
                BITSTREAM, SHA256, 'text', (FUNCTION,), owner='project'
            ),
            an_entry().contents,
        )
        for step in (region_journal.Step.PROGRAMMING, region_journal.Step.BAD):
            self.assertIsNone(an_entry(step).contents)

    def test_the_last_of_the_operators_is_remembered(self):
        circuit = programmable.Circuit(RECORD, 'b' * 64, (FUNCTION,), None)
        entry = dataclasses.replace(an_entry(), fallback=circuit)
        self.journal.write(entry)
        self.assertEqual(entry, self.read(self.reopened()))
        self.assertEqual(circuit, entry.operators)
        own = dataclasses.replace(entry, owner=None)
        self.assertEqual(own.circuit, own.operators)
        self.assertEqual(
            circuit,
            dataclasses.replace(own, step=region_journal.Step.BAD).operators,
        )

    def test_a_damaged_file_is_replaced_when_it_is_programmed(self):
        self.journal.write(an_entry())
        (path,) = self.directory.iterdir()
        for text in ('{"dev', '[]', '{"device": 1}', '{"record": {}}'):
            path.write_text(text)
            journal = self.reopened()
            error = self.assertRaises(
                exceptions.DeviceError, self.read, journal
            )
            self.assertIn(str(path), str(error))
            self.assertIn(str(path), self.log.output)
            self.assertEqual([], journal.entries())
        journal.write(an_entry())
        self.assertEqual(an_entry(), self.read(journal))

    def test_a_file_under_the_name_of_another_region(self):
        self.journal.write(an_entry())
        self.journal.write(an_entry(name='region1'))
        one, other = self.directory.iterdir()
        one.write_bytes(other.read_bytes())
        journal = self.reopened()
        self.assertEqual(1, len(journal.entries()))
        ((_nobody, why),) = journal.damaged()
        self.assertIn(str(one), why)

    def test_what_is_wrong_is_named(self):
        self.journal.write(an_entry())
        (path,) = self.directory.iterdir()
        good = an_entry().to_dict()
        for name, wrong, fault in (
            ('sha256', '../../etc/passwd', 'not a sha256'),
            ('record', None, 'record is None'),
            ('served', 'abc', "served is 'abc', not a list"),
            ('step', None, 'step is None'),
            ('owner', [], 'owner is []'),
            ('fallback', {}, 'fallback.bitstream_id is missing'),
            ('function_uuids', {}, 'function_uuids is {}'),
            ('function_uuids', ['---'], "function_uuids[0] is '---'"),
            ('function_uuids', [FUNCTION] * 17, 'function_uuids'),
        ):
            path.write_text(json.dumps({**good, name: wrong}))
            ((_nobody, why),) = self.reopened().damaged()
            self.assertIn(fault, why)

    def test_a_name_chooses_no_path(self):
        self.journal.write(an_entry(name='../../etc'))
        (path,) = self.directory.iterdir()
        self.assertEqual('.json', path.suffix)

    def test_the_disk_refuses(self):
        self.directory.rmdir()
        error = self.assertRaises(
            exceptions.DeviceError, self.journal.write, an_entry()
        )
        self.assertIn('cannot be written', str(error))
        self.assertIsNone(self.read(self.journal))
