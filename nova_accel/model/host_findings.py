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

"""The present findings of all parts of a host."""

from collections.abc import Iterable

from nova_accel.model import finding


class Findings:
    """The findings of one host, from all its parts.

    A finding that a part has left alone is here until the part does not find
    it any more. A repaired one is here until the end of the next round. A
    round is a comparison of the whole host.

    Several threads may call it.
    """

    def __init__(self) -> None:
        self._left: dict[str, tuple[finding.Finding, ...]] = {}
        self._repaired: dict[finding.Finding, int] = {}
        self._round = 0

    def put(self, part: str, found: Iterable[finding.Finding]) -> None:
        """Note all that a part has found, in place of what it found before.

        :param part: a name that no other part has
        """
        left = []
        for each in found:
            if each.is_repaired:
                self._repaired[each] = self._round
            else:
                left.append(each)
        self._left[part] = tuple(left)

    def end_round(self) -> None:
        """Forget what was repaired before this round."""
        for each, number in list(self._repaired.items()):
            if number < self._round:
                self._repaired.pop(each, None)
        self._round += 1

    def of(self, part: str) -> tuple[finding.Finding, ...]:
        """The findings that a part has left alone."""
        return self._left.get(part, ())

    def all(self) -> frozenset[finding.Finding]:
        return frozenset(
            each for found in list(self._left.values()) for each in found
        ).union(list(self._repaired))
