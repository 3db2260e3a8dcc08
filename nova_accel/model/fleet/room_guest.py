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


"""The servers that may move so that others find room."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model.cards import card_slice
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units

#: The price of a move, to which its trouble is added.
MOVE = 10_000

#: The most trouble of a move. All trouble together costs less than one move.
MAX_TROUBLE = 9

Groups = Sequence[device_profile.Group]


class HeldArq(NamedTuple):
    """An ARQ, and the unit that its server has.

    ``is_usable`` says that another server could have the unit afterwards.
    """

    instance_uuid: str
    hostname: str
    role: str | None
    group_id: int
    group: Mapping[str, str]
    rp_uuid: str
    deployable_uuid: str
    card_slice: card_slice.CardSlice | None
    is_usable: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Guest:
    """A server that has units of a host, and may move.

    ``groups`` are those that it needs on another host, as
    :meth:`.known_units.KnownUnits.parts` gives them. ``held`` has what it
    gives back: provider -> deployable uuid -> units. ``trouble`` is that of
    its move, from 0 to :data:`MAX_TROUBLE`.
    """

    uuid: str
    hostname: str
    groups: Groups
    held: Mapping[str, Mapping[str, free_units.HeldUnits]]
    trouble: int = 0

    @property
    def price(self) -> int:
        return MOVE + self.trouble

    @functools.cached_property
    def amounts(self) -> collections.Counter[str]:
        """Resource class -> how many units it needs."""
        return amounts_of(self.groups)


def gather(
    held: Iterable[HeldArq],
    troubles: Mapping[str, int],
    parts: Callable[[Groups], Groups],
) -> list[Guest]:
    """The servers that may move.

    A server that Nova is moving has ARQs on two hosts, or of other roles. Nova
    moves no server that has an ARQ for a port.

    :param troubles: uuid of each server that may move -> its trouble
    :param parts: as :meth:`.known_units.KnownUnits.parts`
    """
    of_servers: dict[str, list[HeldArq]] = {}
    for arq in held:
        if arq.instance_uuid in troubles:
            of_servers.setdefault(arq.instance_uuid, []).append(arq)
    guests = []
    for uuid, arqs in of_servers.items():
        hostname, *others = {arq.hostname for arq in arqs}
        if others or any(arq.role != arq_types.Role.ACTIVE for arq in arqs):
            continue
        groups = {arq.group_id: arq.group for arq in arqs}
        try:
            wanted = parts(device_profile.parse_groups([*groups.values()]))
        except (exceptions.NotFound, exceptions.InvalidDeviceProfile):
            # No host could serve it today.
            continue
        guests.append(
            Guest(uuid, hostname, wanted, _given_back(arqs), troubles[uuid])
        )
    return guests


def _given_back(
    arqs: Iterable[HeldArq],
) -> dict[str, dict[str, free_units.HeldUnits]]:
    """Provider -> deployable -> the units that others can have then."""
    found: dict[str, dict[str, free_units.HeldUnits]] = {}
    for arq in arqs:
        if arq.is_usable:
            of_provider = found.setdefault(arq.rp_uuid, {})
            before = of_provider.get(
                arq.deployable_uuid, free_units.HeldUnits(0)
            )
            slices = () if arq.card_slice is None else (arq.card_slice,)
            of_provider[arq.deployable_uuid] = free_units.HeldUnits(
                before.amount + 1, before.slices + slices
            )
    return found


def amounts_of(groups: Groups) -> collections.Counter[str]:
    """Resource class -> units of all groups."""
    found: collections.Counter[str] = collections.Counter()
    for group in groups:
        found.update(group.resources)
    return found
