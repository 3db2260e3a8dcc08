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

"""The numbers of the whole fleet that a monitoring system asks for.

Each is bounded: by few words, or by how many series are wanted.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import datetime
import math
from typing import NamedTuple

from nova_accel.model.units import unit_state

_State = unit_state.UnitState

#: How many of the newest bindings and programmings are looked at.
RECENT = 1000

#: How many resource classes have numbers of their own. Hosts report them, and
#: a host may be mad.
MAX_CLASSES = 200

#: The name of the sum of all other resource classes. No class can have it, as
#: Placement's names are large.
OTHERS = 'others'

#: How many per cent of the recent ones took no longer.
PERCENTILES = (50, 90, 100)


#: Why no one can have a unit that no one has.
UNUSABLE = tuple(
    state for state in _State if state not in (_State.USED, _State.FREE)
)


@dataclasses.dataclass(frozen=True)
class HostNumbers:
    """A host, and when it last reported, in UTC."""

    hostname: str
    reported_at: datetime.datetime
    is_silent: bool


@dataclasses.dataclass(frozen=True)
class BoundArq:
    """An ARQ that has a unit, and the device of that unit.

    ``address`` is that of the device in sysfs' form. ``role`` is None for an
    ARQ that Nova's Cyborg client has bound and no host has adopted.
    """

    uuid: str
    instance_uuid: str | None
    project_id: str | None
    hostname: str | None
    role: str | None
    resource_class: str
    device_uuid: str
    address: str
    product: str


class HeldUnits(NamedTuple):
    """How many units of a kind a project holds now.

    ``shape`` is empty unless the device is handed out in parts.
    """

    project_id: str | None
    product: str
    resource_class: str
    shape: str
    amount: int


@dataclasses.dataclass(frozen=True)
class Numbers:
    """The numbers of one reading of the database.

    ``units`` has the number of units of a resource class in a state.
    ``faulty_devices`` are devices with a fault. ``arqs`` has the number of
    ARQs in a state. ``bound`` are the oldest of those with a unit, no more
    than were asked for. ``held`` are all units that projects have.
    ``bind_failures`` are the reasons of BindFailed ARQs.
    The others are those of the last while, at most :data:`RECENT` of each:
    how long bindings took, how long programmings that ended well took, how
    many programmings are not over, and why others failed. ``findings`` has
    the number of the hosts' findings of a kind, repaired or not.
    """

    hosts: Sequence[HostNumbers]
    units: Mapping[tuple[str, _State], int]
    devices: int
    faulty_devices: int
    arqs: Mapping[str, int]
    bound: Sequence[BoundArq]
    held: Sequence[HeldUnits]
    bind_failures: Sequence[str | None]
    bind_s: Sequence[float]
    programming_s: Sequence[float]
    programmings_running: int
    programming_failures: Sequence[str]
    findings: Mapping[tuple[str, bool], int]

    @property
    def in_use(self) -> int:
        """How many units guests have."""
        return sum(
            amount
            for (_class, state), amount in self.units.items()
            if state is _State.USED
        )


def by_class(
    units: Mapping[tuple[str, _State], int], most: int = MAX_CLASSES
) -> dict[str, dict[_State, int]]:
    """The number of units in each state, by resource class.

    Only the classes with most units have a line of their own if there are too
    many; :data:`OTHERS` then has the sum of the rest.
    """
    totals: dict[str, int] = {}
    for (resource_class, _state), amount in units.items():
        totals[resource_class] = totals.get(resource_class, 0) + amount
    ordered = sorted(totals, key=lambda name: (-totals[name], name))
    own = set(ordered[:most])
    found = {
        name: dict.fromkeys(_State, 0)
        for name in (*ordered[:most], *([OTHERS] if ordered[most:] else []))
    }
    for (resource_class, state), amount in units.items():
        found[resource_class if resource_class in own else OTHERS][state] += (
            amount
        )
    return found


def percentiles(seconds: Iterable[float]) -> dict[int, float]:
    """For each of :data:`PERCENTILES` the time that so many took at most.

    The nearest rank is taken: each is one of the times. Empty if there are
    none.
    """
    ordered = sorted(seconds)
    if not ordered:
        return {}
    return {
        percent: ordered[math.ceil(percent * len(ordered) / 100) - 1]
        for percent in PERCENTILES
    }


def duration_s(
    began: datetime.datetime, ended: datetime.datetime
) -> float | None:
    """The seconds from one time of a host's clock to another one.

    :returns: None if the clock was set back in between
    """
    seconds = (ended - began).total_seconds()
    return seconds if seconds >= 0 else None
