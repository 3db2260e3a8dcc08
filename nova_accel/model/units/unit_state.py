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

"""Whether a unit can be given to a guest, and why not."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import enum
import functools
from typing import NamedTuple

from nova_accel.model.devices import hardware


class UnitState(enum.StrEnum):
    """The states of a unit. A unit in several is in the first of them."""

    USED = 'used'
    #: An administrator has disabled its device, or drains its host.
    DISABLED = 'disabled'
    HOST_SILENT = 'host_silent'
    #: Its host finds its device sick.
    FAULTY = 'faulty'
    CLEANING_FAILED = 'cleaning_failed'
    BEING_CLEANED = 'being_cleaned'
    #: Its host does not report it any more.
    GONE = 'gone'
    #: Other units of its card leave no room for it.
    EXCLUDED = 'excluded'
    #: The next guest can have it.
    FREE = 'free'


class Meaning(NamedTuple):
    """The meaning of a state.

    A unit is in it if all fields of its condition named ``bad`` differ from
    those of :data:`GOOD`. ``text`` is for administrators, with fields of the
    condition. ``public`` is for tenants, who read nothing that a host says;
    empty where they are told of no such unit. ``shown`` is the word of the
    fleet, which has one for several states.
    """

    bad: tuple[str, ...]
    shown: str
    text: str = ''
    public: str = ''


#: The meaning of each state; ``db/rows/unit_states.py`` makes SQL of it.
MEANINGS: Mapping[UnitState, Meaning] = {
    UnitState.USED: Meaning(('is_held',), 'used', 'in use', 'in use'),
    UnitState.DISABLED: Meaning(
        ('status',), 'drained', 'disabled by an administrator', 'disabled'
    ),
    UnitState.HOST_SILENT: Meaning(
        ('is_silent',), 'unknown', 'its host is silent'
    ),
    UnitState.FAULTY: Meaning(
        ('fault',), 'faulty', 'faulty: {0.fault}', 'faulty'
    ),
    UnitState.CLEANING_FAILED: Meaning(
        ('is_clean', 'unclean_reason'),
        'unclean',
        'not cleaned: {0.unclean_reason}',
        'not clean',
    ),
    UnitState.BEING_CLEANED: Meaning(
        ('is_clean',), 'unclean', 'being cleaned', 'not clean'
    ),
    UnitState.GONE: Meaning(('is_present',), 'gone', 'gone from its host'),
    UnitState.EXCLUDED: Meaning(
        ('has_room',),
        'excluded',
        'other units of its card leave no room for it',
        'excluded by others of their cards',
    ),
    UnitState.FREE: Meaning((), 'free'),
}


#: The states of a unit that is to be cleaned.
UNCLEAN = (UnitState.CLEANING_FAILED, UnitState.BEING_CLEANED)


@dataclasses.dataclass(frozen=True)
class Condition:
    """The facts about a unit that decide about its state.

    ``is_present`` says that its host reports it. ``status`` is the device's
    :class:`nova_accel.model.devices.hardware.Status`, ``fault`` the device's
    fault. An unclean unit has an ``unclean_reason`` if its cleaning has
    failed. ``has_room`` is false if ARQs have units of its card that exclude
    it. ``is_held`` says that an ARQ has it, and ``is_silent`` that its host
    does not report. By default, the next guest can have the unit.
    """

    is_present: bool = True
    status: str = hardware.Status.ENABLED
    fault: str | None = None
    is_clean: bool = True
    unclean_reason: str | None = None
    has_room: bool = True
    is_held: bool = False
    is_silent: bool = False

    def state(self, among: Iterable[UnitState] = UnitState) -> UnitState:
        """The first of some states in which the unit is, FREE if in none."""
        if self._bad:
            for state in among:
                if self._bad.issuperset(MEANINGS[state].bad):
                    return state
        return UnitState.FREE

    @functools.cached_property
    def _bad(self) -> frozenset[str]:
        """The fields that differ from those of :data:`GOOD`."""
        differing = vars(self).items() - vars(GOOD).items()
        return frozenset(field for field, _value in differing)

    def reason(self, among: Iterable[UnitState] = UnitState) -> str | None:
        """Why no guest can have it, for administrators; None if one can."""
        state = self.state(among)
        if state is UnitState.BEING_CLEANED and not self.is_present:
            return 'gone from its host before it was cleaned'
        return MEANINGS[state].text.format(self) or None


#: The condition of a unit that the next guest can have.
GOOD = Condition()
