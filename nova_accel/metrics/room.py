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


"""How many servers find room now, and if all others were packed anew."""

from collections.abc import Iterable
from collections.abc import Sequence
import functools
import time
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.db import device_profile as device_profile_db
from nova_accel.db import free_units
from nova_accel.db import held_units
from nova_accel.model.fleet import room_guest
from nova_accel.model.fleet import room_plan
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import known_units

#: Seconds. It takes about two of them for each profile and 1,000 hosts.
_KEPT_S = 300


class RoomNumbers(NamedTuple):
    """How many servers with a device profile could start.

    ``if_moved`` is how many at least, if all servers could move at once.
    """

    profile: str
    now: int
    if_moved: int


def read(names: Iterable[str]) -> Sequence[RoomNumbers]:
    """The numbers of each device profile that exists, some minutes old.

    :raises ServiceUnavailable: the database cannot be used.
    """
    wanted = tuple(names)
    return _read(wanted, time.monotonic() // _KEPT_S) if wanted else ()


@functools.lru_cache(maxsize=1)
def _read(names: Sequence[str], _period: float) -> Sequence[RoomNumbers]:
    """By three statements."""
    known = known_units.KnownUnits()
    known.apply(free_units.read(None), 0)
    held = held_units.get_all()
    guests = room_guest.gather(
        held,
        dict.fromkeys((arq.instance_uuid for arq in held), 0),
        known.parts,
    )
    return [
        _numbers(
            known,
            guests,
            row['name'],
            device_profile.parse_groups(row['groups']),
        )
        for row in device_profile_db.get_all(names)
    ]


def _numbers(
    known: known_units.KnownUnits,
    guests: Sequence[room_guest.Guest],
    name: str,
    groups: Sequence[device_profile.Group],
) -> RoomNumbers:
    try:
        wanted = known.parts(groups)
    except exceptions.NotFound:
        # A group is larger than all pools.
        return RoomNumbers(name, 0, 0)
    return RoomNumbers(
        name,
        sum(known.count_servers(groups).values()),
        room_plan.count_if_moved(known.pools(), guests, wanted),
    )
