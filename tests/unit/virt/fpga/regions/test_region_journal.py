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
import uuid

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model.fpga import programming_record
from nova_accel.model.fpga import region_entry
from nova_accel.virt.fpga.regions import region_journal
from unit.virt.fpga import fpga_card
from unit.virt.fpga import regions_case

BITSTREAM = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c11'
FUNCTION = '11111111-0b5a-4d59-9d3b-3a1b8f0a5c11'
RECORD = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c01'
DEVICE = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c02'
INSTANCE = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c03'
SHA256 = 'a' * 64
STARTED = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)


def an_entry(step=region_entry.RegionStep.PROGRAMMED, name='region0'):
    return region_entry.RegionEntry(
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
        self.journal = region_journal.RegionJournal(self.directory, 'boot')

    def reopened(self):
        return region_journal.RegionJournal(self.directory, 'boot')

    def read(self, journal, name='region0'):
        return journal.read('pci_0000_81_00_0', name)

    def test_what_is_written_is_there_after_a_restart(self):
        begun = an_entry(region_entry.RegionStep.PROGRAMMING)
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

    def test_the_kernel_names_its_boots(self):
        self.assertEqual(
            region_journal.boot_id(), str(uuid.UUID(region_journal.boot_id()))
        )

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


class TestAttempt(regions_case.RegionsTestCase):
    def refused(self, fault, **properties):
        error = self.assertRaises(fault, self.program, **properties)
        self.assertIn('region0 of 0000:81:00.0 is not prog', str(error))
        (entry,) = self.host.journal.entries()
        self.assertIs(region_entry.RegionStep.BAD, entry.step)
        self.assertIn(entry.record.failure, str(error))
        return error

    def test_a_failure_makes_the_region_bad(self):
        self.host.card.faults = [exceptions.DeviceError('CRC error')] * 2
        self.assertIn('CRC', str(self.refused(exceptions.DeviceError)))
        # It may be a project's own bitstream that is at fault.
        self.refused(exceptions.BitstreamUnusable, owner='project')

    def test_it_says_the_same_as_before(self):
        self.program()
        error = self.refused(exceptions.DeviceError, sha256='another')
        self.assertIn('as before', str(error))

    def test_somebody_has_got_it_meanwhile(self):
        for expected in (0, 1):
            before = self.host.journal.entries()
            self.assertEqual(expected, len(before))
            answers = iter([None, exceptions.Conflict('it is in use')])

            def check_free(answers=answers):
                answer = next(answers)
                if answer is not None:
                    raise answer

            self.assertRaises(
                exceptions.Conflict, self.program, check_free=check_free
            )
            self.assertEqual(before, self.host.journal.entries())
            self.assertEqual(expected, self.host.card.programmed)
            self.program()


class TestRecover(regions_case.RegionsTestCase):
    def test_it_was_done(self):
        self.die_while_programming()
        self.device_says('new')
        (record,) = self.recover()
        self.assertIsNone(record.failure)
        self.assertIsNotNone(record.finished_at)
        self.assertEqual('new', self.host.known().contents.loaded)
        # Told again, for the API may not have heard of it.
        self.assertEqual([record], self.recover())

    def test_the_device_is_in_an_error(self):
        self.die_while_programming()
        self.check_bad(self.recover())

    def test_the_device_says_the_same(self):
        self.program()
        self.die_while_programming()
        self.device_says(self.host.journal.entries()[0].loaded)
        self.check_bad(self.recover())

    def test_the_device_does_not_tell(self):
        self.die_while_programming()
        self.device_says('new')
        self.check_bad(self.recover(tells_contents=False))

    def test_the_host_has_lost_power(self):
        self.die_while_programming()
        self.device_says('as delivered')
        self.check_bad(self.recover(boot='boot2'))

    def test_the_device_is_gone(self):
        self.die_while_programming()
        self.device_says('new')
        host = fpga_card.Host(self.directory)
        host.regions.overlaid([])
        (record,) = host.regions.recover()
        self.assertIn('died', record.failure)
        self.host.regions.overlaid(
            [dataclasses.replace(fpga_card.DEVICE, regions=())]
        )
        self.assertEqual([], list(self.host.regions.targets()))

    def test_the_disk_refuses(self):
        self.die_while_programming()
        self.device_says('new')

        def refuse(path, text):
            raise exceptions.DiskError('No space left on device')

        with fixtures.MonkeyPatch(
            'nova_accel.state.durable_file.write', refuse
        ):
            self.assertEqual([], self.recover())
        self.assertIn('cut short', self.host.known().fault)
        self.assertIn('stays bad', self.log.output)

    def check_bad(self, records):
        (record,) = records
        self.assertIn('died', record.failure)
        self.assertIn('died', self.host.known().fault)
        (entry,) = self.host.journal.entries()
        self.assertIs(region_entry.RegionStep.BAD, entry.step)
        first = self.host.published().deployables[0]
        self.assertIn('died', first.fault)
