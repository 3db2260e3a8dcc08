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

"""The drain of a host: why, since when, until when, and who wants it."""

from collections.abc import Mapping
import datetime
from typing import Any
from typing import NamedTuple

from nova_accel import reason as reason_words


class HostDrain(NamedTuple):
    """Why a host is drained. Times are aware, in UTC.

    ``until`` is the end that was announced, None if there is none. An overdue
    drain goes on after it.
    """

    reason: str
    until: datetime.datetime | None
    is_overdue: bool

    @property
    def words(self) -> str:
        """The drain in one line, for administrators."""
        if self.until is None:
            told = 'its host is drained'
        else:
            # No one plans by the second.
            end = f'{self.until:%Y-%m-%d %H:%M} UTC'
            told = f'its host is drained until {end}' + (
                ', which is over' if self.is_overdue else ''
            )
        return f'{told}: {reason_words.printable(self.reason)}'

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            **self._asdict(),
            'until': None if self.until is None else self.until.isoformat(),
        }


def from_dict(value: Mapping[str, Any]) -> HostDrain:
    """The reverse of :meth:`HostDrain.to_dict`.

    :raises KeyError, TypeError, ValueError: the value is none.
    """
    until = value['until']
    return HostDrain(
        value['reason'],
        None if until is None else datetime.datetime.fromisoformat(until),
        value['is_overdue'],
    )
