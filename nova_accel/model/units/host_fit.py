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
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import host_links

#: (Provider, group) -> resource class -> units that suit the group.
Room = Callable[[str, device_profile.Group], Mapping[str, int]]


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
        groups: Sequence[device_profile.Group],
        links: Callable[[], host_links.HostLinks],
    ) -> bool:
        """Whether all groups find providers; joined ones choose first."""
        of_links: dict[str, list[device_profile.Group]] = {}
        others = []
        for group in groups:
            if group.link is None:
                others.append(group)
            else:
                of_links.setdefault(group.link, []).append(group)
        return all(
            self._join(link, members, links())
            for link, members in of_links.items()
        ) and self._place(others, self.rp_uuids)

    def _join(
        self,
        link: str,
        groups: Sequence[device_profile.Group],
        links: host_links.HostLinks,
    ) -> bool:
        """Place the groups within one set that can join them."""
        size = link_division.amount(groups)
        before = dict(self._taken), set(self._used)
        for place in links.places(link, size):
            if self._place(groups, place.rp_uuids):
                return True
            self._taken, self._used = dict(before[0]), set(before[1])
        return False

    def _place(
        self,
        groups: Iterable[device_profile.Group],
        rp_uuids: Collection[str],
    ) -> bool:
        """Give each group the first provider that has room for it."""
        for group in groups:
            for rp_uuid in tuple(rp_uuids):
                if self._take(group, rp_uuid):
                    break
            else:
                return False
        return True

    def _take(self, group: device_profile.Group, rp_uuid: str) -> bool:
        if rp_uuid in self._used:
            return False
        room = self.room(rp_uuid, group)
        asked = group.resources.items()
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
