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
import threading

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model import finding
from nova_accel.model import host_findings
from nova_accel.virt.publishing import periodic_work

LONG_S = 3600


class TestCycle(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.cycles = 0
        self.findings = host_findings.Findings()

    def begun(self, interval_s=LONG_S):
        """A worker that has taken its step once."""
        made = periodic_work.Cycle(interval_s, self.findings)
        made.begin([('Not counted', self.count)])
        self.end(made)
        return made

    def count(self):
        self.cycles += 1

    def end(self, made):
        self.assertTrue(made._idle.wait(10))

    def test_it_comes_after_its_interval_only(self):
        patient, eager = self.begun(), self.begun(interval_s=0)
        self.assertEqual(2, self.cycles)
        for _time in range(2):
            for made in (patient, eager):
                made.start()
                self.end(made)
        self.assertEqual(4, self.cycles)
        patient.hurry()
        self.end(patient)
        self.assertEqual(5, self.cycles)

    def test_one_that_is_asked_for_while_another_runs_follows(self):
        """What it is about may have come too late for that one."""
        may_end = threading.Event()
        self.addCleanup(may_end.set)
        waiting = periodic_work.Cycle(LONG_S, self.findings)
        waiting.begin(
            [
                ('Not awaited', lambda: may_end.wait(10)),
                ('Not counted', self.count),
            ]
        )
        for _time in range(3):
            waiting.hurry()
        waiting.start()
        may_end.set()
        self.end(waiting)
        self.assertEqual(2, self.cycles)
        waiting.start()
        self.end(waiting)
        self.assertEqual(2, self.cycles)

    def test_it_may_run_in_the_thread_that_asks(self):
        """As in Nova's tests, and those of crashes."""
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.nova_releases.spawn', lambda work: work()
            )
        )
        periodic_work.Cycle(LONG_S, self.findings).begin(
            [('Not counted', self.count)]
        )
        self.assertEqual(1, self.cycles)

    def test_nova_ends(self):
        """A server that is deleted then does not fail for it."""

        def end(_work):
            raise RuntimeError('shutdown has been started')

        made = self.begun()
        with fixtures.MonkeyPatch('nova_accel.nova_releases.spawn', end):
            made.hurry()
        self.assertIn('shutdown', self.log.output)
        made.hurry()
        self.end(made)
        self.assertEqual(2, self.cycles)

    def test_each_step_is_on_its_own(self):
        done = []

        def failing(name, error):
            def step():
                done.append(name)
                raise error

            return f'Not {name}', step

        errors = (
            OSError(28, 'No space left on device'),
            KeyError('x'),
            exceptions.ServiceUnavailable('away'),
        )
        names = ('one', 'two', 'three')
        made = periodic_work.Cycle(LONG_S, self.findings)
        made.begin(
            [failing(*each) for each in zip(names, errors, strict=True)]
        )
        self.end(made)
        made.run()
        self.assertEqual([*names, *names], done)
        for name, error in zip(names, errors, strict=True):
            self.assertIn(f'Not {name}, trying again later', self.log.output)
            self.assertIn(str(error), self.log.output)
        # A service that does not answer is no fault of the host.
        self.assertEqual(
            {
                (
                    finding.Kind.NOT_DONE,
                    'Not one: OSError(28, \'No space left on device\')',
                ),
                (finding.Kind.NOT_DONE, "Not two: KeyError('x')"),
            },
            {(each.kind, each.words) for each in self.findings.all()},
        )
        made.begin([('Not counted', self.count)])
        self.end(made)
        self.assertEqual(frozenset(), self.findings.all())

    def test_what_ends_a_thread_does_not_end_the_cycles(self):
        def leave():
            self.count()
            raise SystemExit()

        made = periodic_work.Cycle(LONG_S, self.findings)
        with fixtures.MonkeyPatch(
            'nova_accel.nova_releases.spawn', lambda work: work()
        ):
            self.assertRaises(SystemExit, made.begin, [('Not left', leave)])
            self.assertRaises(SystemExit, made.hurry)
        self.assertEqual(2, self.cycles)
