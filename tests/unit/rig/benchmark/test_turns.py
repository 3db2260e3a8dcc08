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

import itertools

from oslotest import base

from rig.benchmark import turns


class TestMedians(base.BaseTestCase):
    def test_in_turns(self) -> None:
        order: list[str] = []
        turns.medians(
            {name: lambda name=name: order.append(name) for name in 'ab'}, 2
        )
        # The first round fills caches.
        self.assertEqual(list('ababab'), order)

    def test_median(self) -> None:
        now = [0.0]
        lengths = itertools.chain([50.0, 1.0, 9.0, 2.0])

        def take() -> None:
            now[0] += next(lengths)

        self.assertEqual(
            {'it': 2.0}, turns.medians({'it': take}, 3, lambda: now[0])
        )


class TestStopwatch(base.BaseTestCase):
    def test_a_call_within_a_call_counts_once(self) -> None:
        ticks = itertools.count()
        watch = turns.Stopwatch(lambda: float(next(ticks)))
        for _time in range(2):
            with watch, watch:
                pass
        self.assertEqual(2.0, watch.seconds)
