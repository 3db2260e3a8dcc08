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

from oslotest import base

from rig.benchmark import scale


class TestFigures(base.BaseTestCase):
    def test_latencies(self) -> None:
        found = [number / 1000 for number in range(200, 0, -1)]
        self.assertEqual(
            {'median': 101, 'p99': 199, 'longest': 200},
            scale.latencies(found),
        )
        self.assertIsNone(scale.latencies([]))

    def test_rows_of_tables_that_have_had_any(self) -> None:
        self.assertEqual(
            {
                'arqs': {'before': 3, 'after': 0},
                'bindings': {'before': 0, 'after': 4},
                'hosts': {'before': 2, 'after': 2},
            },
            scale.rows(
                {'arqs': 3, 'bindings': 0, 'hosts': 2, 'leases': 0},
                {'arqs': 0, 'bindings': 4, 'hosts': 2, 'leases': 0},
            ),
        )

    def test_shares(self) -> None:
        self.assertEqual(2.5, scale.percent(3, 120))
        self.assertEqual(
            {
                'cpu_percent_undisturbed': 2.5,
                'cpu_percent_of_10000_hosts': 12.5,
            },
            scale.shares(2.5, 2000),
        )


class Clock:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Event(threading.Event):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        self.clock.now += timeout or 0
        return self.is_set()


class TestPaced(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.stopped = Event(self.clock)
        self.called: list[tuple[int, float]] = []

    def call(self, number: int) -> None:
        self.called.append((number, self.clock.now))

    def run_paced(self, seconds: float) -> None:
        scale.paced(self.call, 2, seconds, self.clock, self.stopped)

    def test_at_fixed_times(self) -> None:
        self.run_paced(5)
        self.assertEqual([(0, 100), (1, 102), (2, 104)], self.called)

    def test_late_calls_do_not_delay_others(self) -> None:
        def call(number: int) -> None:
            self.call(number)
            self.clock.now += 3 if number == 0 else 0

        scale.paced(call, 2, 8, self.clock, self.stopped)
        self.assertEqual([(0, 100), (1, 103), (2, 104), (3, 106)], self.called)

    def test_ends_when_stopped(self) -> None:
        self.stopped.set()
        self.run_paced(5)
        self.assertEqual([], self.called)
