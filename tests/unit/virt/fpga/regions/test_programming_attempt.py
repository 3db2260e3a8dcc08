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
from nova_accel.virt.fpga.regions import region_journal
from unit.virt.fpga import fpga_card
from unit.virt.fpga import regions_case


class TestAttempt(regions_case.RegionsTestCase):
    def refused(self, fault, **properties):
        error = self.assertRaises(fault, self.program, **properties)
        self.assertIn('region0 of 0000:81:00.0 is not prog', str(error))
        (entry,) = self.host.journal.entries()
        self.assertIs(region_journal.Step.BAD, entry.step)
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
        self.assertIs(region_journal.Step.BAD, entry.step)
        first = self.host.published().deployables[0]
        self.assertIn('died', first.fault)
