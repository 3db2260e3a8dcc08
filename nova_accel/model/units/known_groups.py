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

"""The groups that were asked for: one object for all that are the same."""

from nova_accel.model.profiles import device_profile

#: How many groups are remembered; then all of them are forgotten.
_REMEMBERED = 256

# A group is prefetched or not by its host, and served alike.
_Contents = tuple[
    frozenset[tuple[str, int]],
    frozenset[str],
    frozenset[str],
    frozenset[tuple[str, str]],
    bool,
    str | None,
]


class WantedGroup:
    """A group, by which pools remember what they have found out."""

    __slots__ = ('group',)

    def __init__(self, group: device_profile.Group) -> None:
        self.group = group


class KnownGroups:
    """Finds the one object of a group. Threads may share it."""

    def __init__(self) -> None:
        self._by_contents: dict[_Contents, WantedGroup] = {}
        self._by_object: dict[
            int, tuple[device_profile.Group, WantedGroup]
        ] = {}

    def of_contents(self, group: device_profile.Group) -> WantedGroup:
        contents = (
            frozenset(group.resources.items()),
            group.required,
            group.forbidden,
            frozenset(group.properties.items()),
            group.is_on_one_numa_node,
            group.link,
        )
        found = self._by_contents.get(contents)
        if found is None:
            if len(self._by_contents) >= _REMEMBERED:
                self._by_contents.clear()
            found = self._by_contents.setdefault(contents, WantedGroup(group))
        return found

    def of_object(self, group: device_profile.Group) -> WantedGroup:
        """As :meth:`of_contents`, quick for a group that is asked for again.

        The group is kept, so that no other object can have its id.
        """
        known = self._by_object.get(id(group))
        if known is not None and known[0] is group:
            return known[1]
        wanted = self.of_contents(group)
        if len(self._by_object) >= _REMEMBERED:
            self._by_object.clear()
        self._by_object[id(group)] = group, wanted
        return wanted
