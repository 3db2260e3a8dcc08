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

"""Whether one host could serve several groups, by its free units.

It tries no second way after the first, so it may deny what could be served.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nova_accel.model.links import link_division
from nova_accel.model.units import host_links
from nova_accel.model.units import known_groups

#: (Provider, group) -> resource class -> units that suit the group.
Room = Callable[[str, known_groups.WantedGroup], Mapping[str, int]]


@dataclasses.dataclass
class Fit:
    """The providers of a host, of which groups take units.

    :ivar is_isolated: whether each group needs a provider of its own
    """

    rp_uuids: Collection[str]
    room: Room
    is_isolated: bool
    _taken: dict[tuple[str, str], int] = dataclasses.field(
        default_factory=dict
    )
    _used: set[str] = dataclasses.field(default_factory=set)

    def serves(
        self,
        groups: Sequence[known_groups.WantedGroup],
        links: Callable[[], host_links.HostLinks],
    ) -> bool:
        """Whether all groups find providers; joined ones choose first."""
        of_links: dict[str, list[known_groups.WantedGroup]] = {}
        others = []
        for wanted in groups:
            if wanted.group.link is None:
                others.append(wanted)
            else:
                of_links.setdefault(wanted.group.link, []).append(wanted)
        return all(
            self._join(link, members, links())
            for link, members in of_links.items()
        ) and self._place(others, self.rp_uuids)

    def _join(
        self,
        link: str,
        groups: Sequence[known_groups.WantedGroup],
        links: host_links.HostLinks,
    ) -> bool:
        """Place the groups within one set that can join them."""
        size = link_division.amount(wanted.group for wanted in groups)
        before = dict(self._taken), set(self._used)
        for place in links.places(link, size):
            if self._place(groups, place.rp_uuids):
                return True
            self._taken, self._used = dict(before[0]), set(before[1])
        return False

    def _place(
        self,
        groups: Iterable[known_groups.WantedGroup],
        rp_uuids: Collection[str],
    ) -> bool:
        """Give each group the first provider that has room for it."""
        for wanted in groups:
            for rp_uuid in tuple(rp_uuids):
                if self._take(wanted, rp_uuid):
                    break
            else:
                return False
        return True

    def _take(self, wanted: known_groups.WantedGroup, rp_uuid: str) -> bool:
        if rp_uuid in self._used:
            return False
        room = self.room(rp_uuid, wanted)
        asked = wanted.group.resources.items()
        if any(
            room[name] - self._taken.get((rp_uuid, name), 0) < amount
            for name, amount in asked
        ):
            return False
        if self.is_isolated:
            self._used.add(rp_uuid)
        for name, amount in asked:
            key = rp_uuid, name
            self._taken[key] = self._taken.get(key, 0) + amount
        return True
