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

from concurrent import futures
import contextlib
import hashlib
import pathlib
import threading
import time
import uuid

import fixtures

from nova_accel import exceptions
from nova_accel.bitstreams import bitstream_cache
from nova_accel.drivers import guard
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from nova_accel.model.fpga import region_entry
from nova_accel.state import durable_file
from nova_accel.virt.fpga.programming import programming_job
from nova_accel.virt.fpga.programming import region_loader
from unit.virt.fpga import fpga_card
from unit.virt.fpga import programming_case

ONE, TWO = programming_case.ONE, programming_case.TWO


class TestBlank(programming_case.ProgrammingTestCase):
    """Regions are cleaned by a bitstream."""

    def blank(self, name='region0', bitstream_id=None):
        self.host.loader.blank(
            programming_job.Job(
                self.host.target(name),
                region_loader.NOBODY,
                time.monotonic() + 30,
            ),
            bitstream_id or self.other,
        )

    def refused(self, error, why, *args):
        error = self.assertRaises(error, self.blank, *args)
        self.assertIn(why, str(error))

    def test_after_a_guest(self):
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.host.held_by.clear()
        self.blank()
        self.holds(self.other)
        self.assertEqual(
            programming_record.Asker(), self.host.records[-1].asker
        )
        self.assertEqual('service', self.host.bitstreams.asked[-1][1])

    def test_what_it_holds_already(self):
        """The guest may have left something in it."""
        self.host.boot(ONE, fpga_card.wants(self.other))
        self.host.held_by.clear()
        before = self.host.card.programmed
        self.blank()
        self.assertEqual(before + 1, self.host.card.programmed)
        self.holds(self.other)

    def test_another_guest_has_something_of_the_region(self):
        self.host.boot(ONE, fpga_card.wants(self.image, 'region1_function0'))
        self.refused(exceptions.Conflict, 'a server has', 'region1')
        self.holds(self.image, 'region1')

    def test_what_fails(self):
        self.refused(
            exceptions.BitstreamNotFound, '0 are', 'region0', fpga_card.NODE
        )
        self.host.card.faults = [exceptions.DeviceError('CRC error')]
        self.refused(exceptions.DeviceError, 'CRC error')
        self.is_bad('CRC error')
        self.blank()
        self.holds(self.other)


class TestFailures(programming_case.ProgrammingTestCase):
    def fail(self, *faults):
        self.host.card.faults = list(faults)

    def test_no_such_bitstream(self):
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.refused(
            exceptions.BitstreamNotFound,
            '0 are',
            ONE,
            fpga_card.wants(fpga_card.NODE),
        )
        self.holds(self.image)

    def test_no_download(self):
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.host.bitstreams.fault = exceptions.BitstreamRefused.for_all(
            'bad hash'
        )
        self.refused(
            exceptions.BitstreamRefused,
            'bad hash',
            ONE,
            fpga_card.wants(self.other),
        )
        self.holds(self.image)
        self.assertEqual((self.other, True, 'bad hash'), self.steps()[-1])

    def test_the_device_refuses(self):
        self.fail(exceptions.DeviceError('CRC error'))
        self.refused(
            exceptions.DeviceError,
            'CRC error',
            ONE,
            fpga_card.wants(self.image),
        )
        self.is_bad('CRC error')
        self.assertEqual(1, self.host.card.programmed)
        (_begun, (_id, has_ended, failure)) = self.steps()
        self.assertTrue(has_ended)
        self.assertIn('CRC error', failure)
        self.assertEqual(1, self.host.changes)

    def test_a_bad_region_is_given_to_nobody_until_it_is_programmed(self):
        self.fail(exceptions.DeviceError('CRC error'))
        self.refused(
            exceptions.DeviceError, 'CRC', ONE, fpga_card.wants(self.image)
        )
        self.restarted()
        for act in (self.host.boot, self.host.reboot):
            self.refused(
                exceptions.DeviceError,
                'CRC error',
                TWO,
                fpga_card.an_arq(),
                act=act,
            )
        self.host.boot(TWO, fpga_card.wants(self.image))
        self.holds(self.image)
        self.host.boot(TWO, fpga_card.an_arq())

    def test_a_plugin_that_is_broken(self):
        self.host.regions._drivers['card'] = guard.Guard(
            'card', lambda: self.host.card
        )
        self.fail(ZeroDivisionError('oops'))
        self.refused(
            exceptions.DeviceError, 'oops', ONE, fpga_card.wants(self.image)
        )
        self.is_bad('oops')

    def test_once_more_if_the_driver_says_so(self):
        self.host.card.repeats_programming = True
        self.fail(exceptions.DeviceError('CRC error'))
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.holds(self.image)
        self.host.held_by.clear()
        self.fail(*[exceptions.DeviceError('CRC error')] * 2)
        self.refused(
            exceptions.DeviceError, 'CRC', ONE, fpga_card.wants(self.other)
        )
        self.assertEqual(4, self.host.card.programmed)
        self.is_bad('CRC error')

    def test_the_device_says_nothing_afterwards(self):
        self.host.card.program = lambda *args: None
        self.refused(
            exceptions.DeviceError,
            'it holds nothing',
            ONE,
            fpga_card.wants(self.image),
        )
        self.is_bad('it holds nothing')

    def test_the_device_says_the_same_afterwards(self):
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.host.card.program = lambda *args: None
        self.refused(
            exceptions.DeviceError,
            'as before',
            ONE,
            fpga_card.wants(self.other),
        )
        self.is_bad('as before')

    def test_somebody_else_has_programmed_it(self):
        self.host.boot(ONE, fpga_card.wants(self.image))
        (self.host.card.directory / 'region0').write_text('by hand')
        self.is_bad('by others')
        self.refused(
            exceptions.DeviceError, 'by others', ONE, fpga_card.an_arq()
        )
        self.host.reboot(ONE, fpga_card.wants(self.image))
        self.holds(self.image)

    def test_the_disk_is_full_before(self):
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.fail_journal(0)
        self.refused(
            exceptions.DeviceError,
            'No space',
            ONE,
            fpga_card.wants(self.other),
        )
        self.assertEqual(1, self.host.card.programmed)
        self.holds(self.image)

    def test_the_disk_is_full_afterwards(self):
        self.fail_journal(1)
        self.refused(
            exceptions.DeviceError,
            'No space',
            ONE,
            fpga_card.wants(self.image),
        )
        self.is_bad('cut short')
        self.refused(
            exceptions.DeviceError, 'cut short', TWO, fpga_card.an_arq()
        )

    def fail_journal(self, after):
        write = durable_file.write
        writes = []

        def fail(path, text):
            writes.append(path)
            if len(writes) > after:
                raise exceptions.DiskError('No space left on device')
            write(path, text)

        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.state.durable_file.write', fail)
        )

    def test_a_damaged_journal(self):
        self.host.boot(ONE, fpga_card.wants(self.image))
        (path,) = self.host.journal.directory.iterdir()
        path.write_text('{"device')
        self.restarted()
        self.is_bad('is damaged')
        self.refused(
            exceptions.DeviceError,
            'is damaged',
            ONE,
            fpga_card.an_arq(),
            act=self.host.reboot,
        )
        self.host.reboot(ONE, fpga_card.wants(self.image))
        self.holds(self.image)


class TestAServerComesMeanwhile(programming_case.ProgrammingTestCase):
    """Whoever asks is about to program what a server is about to get.

    A server that asks for no bitstream holds the region, and then looks
    whether it is programmed.
    """

    def program(self):
        return self.host.loader.put(
            programming_job.Job(
                self.host.target(),
                programming_case.STRANGER,
                time.monotonic() + 30,
            ),
            fpga_bitstream.WantedBitstream(self.image),
            'user',
        )

    def a_server_comes(self):
        self.host.held_by[fpga_card.handle_uuid('region0')] = ONE

    def a_server_starts(self):
        """:returns: what its guest finds"""
        asker = programming_record.Asker('project', 'user', ONE)
        arqs = [fpga_card.an_arq()]
        self.host.programmer.start(arqs, asker, {}, 'user')
        self.host.programmer.ready(arqs, asker, {})
        return self.host.card.really_loaded()

    def when_it_is_journaled(self, before=None, after=None):
        """Do something before, or after, the intent is written."""
        write = self.host.journal.write

        def interleaved(entry):
            if entry.step is not region_entry.RegionStep.PROGRAMMING:
                return write(entry)
            if before is not None:
                before()
            write(entry)
            if after is not None:
                after()

        self.host.journal.write = interleaved

    def is_refused(self):
        error = self.assertRaises(exceptions.Conflict, self.program)
        self.assertIn('a server has region0', str(error))
        self.assertEqual(0, self.host.card.programmed)
        # It is as if no one had asked.
        self.assertEqual([], self.host.journal.entries())
        self.restarted()
        self.assertEqual(
            (None, None), (self.host.known().contents, self.host.known().fault)
        )
        self.assertIsNone(self.a_server_starts())

    def test_it_looks_before_the_intent_is_journaled(self):
        found = []
        self.when_it_is_journaled(
            before=lambda: (
                self.a_server_comes(),
                found.append(self.a_server_starts()),
            )
        )
        self.is_refused()
        self.assertEqual([None], found)

    def test_it_looks_after_the_intent_is_journaled(self):
        """Both see each other."""
        waits = []

        def come():
            self.a_server_comes()
            waits.append(threading.Thread(target=self.a_server_starts))
            waits[0].start()
            waits[0].join(0.2)
            self.assertTrue(waits[0].is_alive())

        self.when_it_is_journaled(after=come)
        self.is_refused()
        waits[0].join(10)
        self.assertFalse(waits[0].is_alive())

    def test_it_comes_when_the_card_is_touched(self):
        found = []
        program = self.host.card.program

        def touched(*args):
            self.a_server_comes()
            starts = threading.Thread(
                target=lambda: found.append(self.a_server_starts())
            )
            starts.start()
            self.addCleanup(starts.join)
            starts.join(0.2)
            self.assertEqual([], found)
            program(*args)

        self.host.card.program = touched
        self.program()
        self.doCleanups()
        self.assertEqual([self.host.bitstreams.sha256(self.image)], found)

    def test_what_was_programmed_before_stays_known(self):
        self.host.boot(TWO, fpga_card.wants(self.other))
        self.host.held_by.clear()
        (before,) = self.host.journal.entries()
        self.when_it_is_journaled(after=self.a_server_comes)
        self.assertRaises(exceptions.Conflict, self.program)
        self.assertEqual([before], self.host.journal.entries())
        self.holds(self.other)

    def test_a_journal_that_was_damaged_is_not_trusted_again(self):
        self.host.boot(TWO, fpga_card.wants(self.other))
        self.host.held_by.clear()
        (path,) = self.host.journal.directory.iterdir()
        path.write_text('{"device')
        self.restarted()
        self.when_it_is_journaled(after=self.a_server_comes)
        self.assertRaises(exceptions.Conflict, self.program)
        self.assertIsNotNone(self.host.known().fault)


class TestRoomInTheCache(programming_case.ProgrammingTestCase):
    """Programmings that wait for one card leave it to others."""

    ROOM, QUEUED = 3, 8

    def setUp(self):
        super().setUp()
        self.cache = bitstream_cache.Cache(
            pathlib.Path(self.directory) / 'cache', self.ROOM * 8
        )
        self.may_fetch = threading.Event()
        self.host.bitstreams.fetched = self.fetched
        self.host.bitstreams.kept = self.kept
        self.host.card.may_end = threading.Event()
        self.addCleanup(self.host.card.may_end.set)
        self.addCleanup(self.may_fetch.set)

    @contextlib.contextmanager
    def fetched(self, found, context):
        self.assertTrue(self.may_fetch.wait(30))
        entry = self.cache.pin(found) or self.cache.add(found, self.download)
        try:
            yield entry
        finally:
            self.cache.release(entry)

    def download(self, file):
        data = uuid.uuid4().bytes[:8]
        file.write(data)
        return hashlib.sha256(data).hexdigest()

    @contextlib.contextmanager
    def kept(self, sha256):
        self.assertTrue(self.may_fetch.wait(30))
        entry = self.cache.pin_kept(sha256)
        try:
            yield entry
        finally:
            if entry is not None:
                self.cache.release(entry)

    def circuit(self):
        """Of a file that is in the cache."""
        image = self.host.bitstreams.images[self.host.bitstreams.add()][0]
        entry = self.cache.add(image, self.download)
        self.cache.release(entry)
        return programmable.Circuit(image.id, entry.sha256, (), None)

    def load(self, act):
        """:returns: why it failed, None if it did not"""
        job = programming_job.Job(
            self.host.target(), region_loader.NOBODY, time.monotonic() + 60
        )
        try:
            act(job)
        except exceptions.AcceleratorError as error:
            return str(error)
        return None

    def acts(self):
        """One for each way in which a region is programmed."""
        add, loader = self.host.bitstreams.add, self.host.loader
        return {
            'put': lambda job: loader.put(
                job,
                fpga_bitstream.WantedBitstream(add()),
                'user',
            ),
            'blank': lambda job: loader.blank(job, add()),
            'stock': lambda job: loader.stock(job, add()),
        }

    def test_whatever_waits(self):
        for name, act in self.acts().items():
            self.check(name, [act] * self.QUEUED)

    def test_circuits_that_are_here(self):
        self.may_fetch.set()
        circuits = [self.circuit() for _number in range(self.ROOM)]
        self.check(
            'load again',
            [
                lambda job, circuit=circuit: self.host.loader.load_again(
                    job, circuit
                )
                for circuit in circuits
            ],
        )

    def check(self, name, acts):
        self.may_fetch.clear()
        self.host.card.may_end.clear()
        before = self.host.card.programmed
        with futures.ThreadPoolExecutor(len(acts)) as executor:
            running = [executor.submit(self.load, act) for act in acts]
            # Each has come as far as it can without the cache.
            time.sleep(0.5)
            self.may_fetch.set()
            while self.host.card.programmed == before:
                time.sleep(0.01)
            time.sleep(0.2)
            # Another project's, for another card.
            image = self.host.bitstreams.images[self.image][0]
            fault = None
            try:
                with self.fetched(image, 'another'):
                    pass
            except exceptions.DeviceError as error:
                fault = str(error)
            self.host.card.may_end.set()
            self.assertIsNone(fault, name)
            self.assertEqual(
                [None] * len(acts),
                [each.result() for each in running],
                name,
            )
