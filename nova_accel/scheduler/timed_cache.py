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

"""Answers that are used again for a while. Threads may share them."""

from collections.abc import Iterable
import math
import time
from typing import Generic
from typing import TypeVar

#: Seconds for which an answer is used.
KEPT_S = 180.0

#: How many answers are kept; then all of them are forgotten.
MOST = 4096

_V = TypeVar('_V')

#: When there was no answer.
_NEVER = -math.inf, None


class ShortMemory(Generic[_V]):
    """A question -> its answer, for a while."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[float, _V]] = {}

    def get(self, asked: str) -> _V | None:
        """The answer, None if there is none that is new enough."""
        at, answer = self._answers.get(asked, _NEVER)
        return None if at <= time.monotonic() - KEPT_S else answer

    def missing(self, asked: Iterable[str]) -> list[str]:
        """The questions that have no answer that is new enough."""
        too_old = time.monotonic() - KEPT_S
        answers = self._answers
        return [
            each for each in asked if answers.get(each, _NEVER)[0] <= too_old
        ]

    def put(self, asked: str, answer: _V) -> None:
        if len(self._answers) >= MOST:
            self._answers.clear()
        self._answers[asked] = time.monotonic(), answer
