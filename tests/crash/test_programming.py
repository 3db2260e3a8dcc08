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

"""A process that programs an FPGA region is killed at random points."""

import itertools
import os
import pathlib
import random
import signal
import time
import uuid

import fixtures
import testtools
from unit.virt.fpga import fpga_card

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from nova_accel.model.fpga import region_entry
from nova_accel.virt.fpga.regions import region_journal

#: How often it is killed.
_POINTS = 1000 if os.environ.get('CRASH_POINTS') == 'all' else 40

#: Seconds that the card takes.
_DURATION_S = 0.02

_RECOVERY_S = 2


class ProgrammingTestCase(testtools.TestCase):
    """What outlives the process is in files: card, journal and guest."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.guest = self.directory / 'guest'
        self.begun = self.directory / 'begun'
        self.images = {}
        for _image in range(3):
            host = self.host()
            host.bitstreams.add()
            self.images |= host.bitstreams.images

    def host(self):
        """The parts of a process that starts."""
        host = fpga_card.Host(self.directory)
        host.card.duration_s = _DURATION_S
        host.card.tells_contents = self.tells_contents
        host.bitstreams.images = dict(self.images)
        return host

    def work(self, first):
        """Start guests with one bitstream after the other, for ever."""
        host = self.host()
        self.begun.touch()
        for number in itertools.count(first):
            bitstream_id = list(self.images)[number % len(self.images)]
            host.held_by.clear()
            host.boot(
                str(uuid.UUID(int=number)), fpga_card.wants(bitstream_id)
            )
            started = self.directory / 'guest.new'
            started.write_text(bitstream_id)
            started.rename(self.guest)
            time.sleep(random.random() * _DURATION_S)
            self.guest.unlink()

    def kill_after(self, seconds, first):
        pid = os.fork()
        if pid == 0:
            try:
                self.work(first)
            finally:
                os._exit(1)
        while not self.begun.exists():
            time.sleep(0.001)
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        _pid, status = os.waitpid(pid, 0)
        self.assertEqual(signal.SIGKILL, status)

    def check_point(self, generator, number):
        """:returns: how far the programming had come"""
        self.guest.unlink(missing_ok=True)
        self.begun.unlink(missing_ok=True)
        self.kill_after(generator.random() * 3 * self.needed_s, number)
        before = region_journal.RegionJournal(
            self.directory / 'journal', 'boot1'
        ).entries()
        begin = time.monotonic()
        host = self.host()
        host.regions.recover()
        self.assertLess(time.monotonic() - begin, _RECOVERY_S)
        known = host.known()
        really = host.card.really_loaded()
        for entry in host.journal.entries():
            # Known to be good, or to be bad.
            self.assertIsNot(region_entry.RegionStep.PROGRAMMING, entry.step)
            if entry.contents is not None:
                self.assertEqual(entry.sha256, really)
                self.assertEqual(
                    host.bitstreams.sha256(known.contents.bitstream_id), really
                )
            else:
                self.assert_refused(host, known)
        if self.guest.exists():
            self.assertEqual(
                self.guest.read_text(), known.contents.bitstream_id
            )
        return before[0].step if before else None

    def check(self):
        generator = random.Random(str(self.tells_contents))
        begin = time.monotonic()
        self.host().boot('first', fpga_card.wants(next(iter(self.images))))
        self.needed_s = time.monotonic() - begin
        steps = {
            self.check_point(generator, number)
            for number in range(_POINTS // 2)
        }
        # Else this would be about nothing.
        self.assertLessEqual(
            {
                region_entry.RegionStep.PROGRAMMING,
                region_entry.RegionStep.PROGRAMMED,
            },
            steps,
        )
        host = self.host()
        host.boot('last', fpga_card.wants(next(iter(self.images))))
        self.assertIsNotNone(host.known().contents)

    def assert_refused(self, host, known):
        """Nothing boots with a region of which nobody knows what it has."""
        self.assertIn('died', known.fault)
        self.assertRaises(
            exceptions.DeviceError, host.boot, 'other', fpga_card.an_arq()
        )


class TestShell(ProgrammingTestCase):
    """The shell of a card is loaded, again and again."""

    tells_contents = True

    def setUp(self):
        super().setUp()
        host = self.host()
        self.shells = [
            host.bitstreams.add(shell_id, provides_shell_id=shell_id)
            for shell_id in ('one', 'two', 'three')
        ]
        self.images = host.bitstreams.images

    def load(self, host, number):
        host.programmer.program(
            naming.derived_uuid(
                fpga_card.NODE, fpga_card.DEVICE.name, 'deployable', 'region0'
            ),
            fpga_bitstream.WantedBitstream(
                self.shells[number % len(self.shells)]
            ),
            programming_record.Asker(),
            'user',
            programming_record.ShellLoading.ALLOWED,
        )

    def work(self, first):
        host = self.host()
        self.begun.touch()
        for number in itertools.count(first):
            self.load(host, number)

    def test_killed_at_any_point(self):
        generator = random.Random('shell')
        bad = 0
        for number in range(_POINTS // 2):
            self.begun.unlink(missing_ok=True)
            self.kill_after(generator.random() * 4 * _DURATION_S, number)
            host = self.host()
            begin = time.monotonic()
            host.regions.recover()
            self.assertLess(time.monotonic() - begin, _RECOVERY_S)
            (shell,) = host.regions.targets(is_shell=True)
            known = host.regions.known(shell)
            if known.contents is not None:
                image, _data = self.images[known.contents.bitstream_id]
                self.assertEqual(
                    image.provides_shell_id, host.card.really_loaded('shell')
                )
            elif host.regions.last(shell) is not None:
                bad += 1
                self.assert_refused(host, known)
        # Else this would be about nothing.
        self.assertGreater(bad, 0)
        self.load(host, 0)
        self.load(host, 1)
        self.assertIsNone(host.published().fault)


class TestDeviceThatTells(ProgrammingTestCase):
    tells_contents = True

    def test_killed_at_any_point(self):
        self.check()


class TestDeviceThatDoesNotTell(ProgrammingTestCase):
    tells_contents = False

    def test_killed_at_any_point(self):
        self.check()
