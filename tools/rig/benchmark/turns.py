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

"""Measure several things in turns, so that each meets the same machine."""

from collections.abc import Callable
from collections.abc import Mapping
import statistics
import time
from typing import Any


def medians(
    subjects: Mapping[str, Callable[[], Any]],
    rounds: int,
    clock: Callable[[], float] = time.thread_time,
) -> dict[str, float]:
    """The median time of each subject, in the unit of the clock.

    Each round measures every subject once. A round before the first one fills
    caches, and does not count.

    :param subjects: by their names
    :param clock: by default the CPU time of this thread
    """
    for subject in subjects.values():
        subject()
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for _round in range(rounds):
        for name, subject in subjects.items():
            begin = clock()
            subject()
            times[name].append(clock() - begin)
    return {name: statistics.median(found) for name, found in times.items()}


class Stopwatch:
    """Adds up the time of the calls that it wraps.

    A call within a wrapped call counts once.

    :ivar seconds: the sum
    """

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._depth = 0

    def __enter__(self) -> 'Stopwatch':
        if not self._depth:
            self._begin = self._clock()
        self._depth += 1
        return self

    def __exit__(self, *_fault: object) -> None:
        self._depth -= 1
        if not self._depth:
            self.seconds += self._clock() - self._begin
