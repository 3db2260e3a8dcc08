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

"""The choice of units of one host, for a server that stays there.

The scheduler chooses for servers that come. It knows links and NUMA nodes, so
groups that need these are refused here.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.model.providers import provider_layout

_MIGRATE = 'migrate the server to another host'
_RESIZE = 'resize the server to a flavor that asks for it'


class Choice:
    """The units of a host that are left, while one after the other is chosen.

    :param layout: the providers of the host
    :param unavailable: the uuids of attach handles that no one can get now
    """

    def __init__(
        self, layout: provider_layout.Layout, unavailable: Collection[str]
    ) -> None:
        self._layout = layout
        self._free = collections.Counter(
            place
            for handle, place in layout.places.items()
            if handle not in unavailable
        )

    def in_place_of(
        self, failed: Sequence[arq_types.Arq]
    ) -> list[arq_types.WantedArq]:
        """For each ARQ another one, of its own provider if that has any.

        :raises Conflict: names the ARQ for which there is none, and the cure.
        """
        chosen = {}
        # An ARQ that few units fit comes before the others.
        for arq in sorted(
            failed, key=lambda each: len(self._fitting(_one_of(each)))
        ):
            try:
                rp_uuid = self._take(_one_of(arq), arq.device_rp_uuid)
            except _NoUnitsError as why:
                raise exceptions.Conflict(
                    f'ARQ {arq.uuid} with {arq.handle.address} gets no other '
                    f'unit: {why}; {_MIGRATE}',
                    public='an accelerator gets no other unit: '
                    f'{why}; {_MIGRATE}',
                ) from why
            chosen[arq.uuid] = arq_types.WantedArq(
                arq.device_profile_name,
                arq.device_profile_group_id,
                arq.group,
                rp_uuid,
            )
        return [chosen[arq.uuid] for arq in failed]

    def for_groups(
        self, name: str, groups: Mapping[int, Mapping[str, str]]
    ) -> list[arq_types.WantedArq]:
        """The ARQs of groups of a device profile, each group of one provider.

        :param name: the device profile's
        :param groups: number in the device profile -> group
        :raises Conflict: names the group for which there is none, and the
            cure.
        """
        parsed = {
            number: device_profile.parse_group(group)
            for number, group in groups.items()
        }
        chosen: list[arq_types.WantedArq] = []
        for number, group in sorted(
            parsed.items(), key=lambda each: len(self._fitting(each[1]))
        ):
            try:
                rp_uuid = self._take(group)
            except _NoUnitsError as why:
                raise exceptions.Conflict.for_all(
                    f'group {number} of device profile {name} gets no units: '
                    f'{why}; {_RESIZE}'
                ) from why
            wanted = arq_types.WantedArq(name, number, groups[number], rp_uuid)
            chosen += [wanted for _unit in group.units()]
        return chosen

    def _fitting(
        self, group: device_profile.Group
    ) -> list[provider_layout.Place]:
        """The places that have enough free units for a group."""
        if len(group.resources) > 1:
            # No provider of ours has two classes.
            return []
        [(resource_class, amount)] = group.resources.items()
        return [
            place
            for provider in self._layout.providers
            if group.required <= provider.traits
            and not group.forbidden & provider.traits
            and self._free[
                place := provider_layout.Place(provider.uuid, resource_class)
            ]
            >= amount
        ]

    def _take(
        self, group: device_profile.Group, preferred: str | None = None
    ) -> str:
        """Take the units of a group.

        :param preferred: the uuid of the provider that comes first
        :returns: the uuid of their provider
        :raises _NoUnitsError: says why there are none.
        """
        if (key := _bound_by(group)) is not None:
            raise _NoUnitsError(f'its group has accel:{key}')
        amount = sum(group.resources.values())
        place = min(
            self._fitting(group),
            key=lambda each: (
                each.rp_uuid != preferred,
                -self._free[each],
                each.rp_uuid,
            ),
            default=None,
        )
        if place is None:
            raise _NoUnitsError(
                f'no pool of its host has {amount} free units for its group'
            )
        self._free[place] -= amount
        return place.rp_uuid


class _NoUnitsError(Exception):
    """A group gets no units of this host; the text says why."""


def stays(
    held: Iterable[arq_types.Arq], groups: Sequence[Mapping[str, str]]
) -> dict[str, int]:
    """The ARQs that a server keeps if it gets other groups.

    It keeps all ARQs of a group that is among the others, word for word.

    :param held: all ARQs of the server
    :param groups: those of its next device profile
    :returns: ARQ uuid -> the number of its group in that device profile
    """
    left: dict[int, list[arq_types.Arq]] = {}
    for arq in held:
        left.setdefault(arq.device_profile_group_id, []).append(arq)
    kept: dict[str, int] = {}
    for number, group in enumerate(groups):
        amount = sum(device_profile.parse_group(group).resources.values())
        for before in (number, *left):
            arqs = left.get(before, [])
            if len(arqs) == amount and arqs[0].group == group:
                kept |= {arq.uuid: number for arq in left.pop(before)}
                break
    return kept


def resources(
    wanted: Iterable[arq_types.WantedArq],
    shares: Mapping[provider_layout.Place, int],
) -> dict[str, dict[str, int]]:
    """Provider uuid -> resource class -> the amount that these ARQs take.

    :param shares: :attr:`.provider_layout.Layout.shares` of their host
    """
    found: dict[str, collections.Counter[str]] = {}
    for arq in wanted:
        of_provider = found.setdefault(
            arq.device_rp_uuid, collections.Counter()
        )
        of_provider[arq.resource_class] += 1
        place = provider_layout.Place(arq.device_rp_uuid, arq.resource_class)
        if place in shares:
            of_provider[naming.CARD_SHARE] += shares[place]
    return {rp_uuid: dict(amounts) for rp_uuid, amounts in found.items()}


def _one_of(arq: arq_types.Arq) -> device_profile.Group:
    """The group of an ARQ, of which only this one unit is needed."""
    return dataclasses.replace(
        device_profile.parse_group(arq.group),
        resources={arq.resource_class: 1},
    )


def _bound_by(group: device_profile.Group) -> str | None:
    """The key of a group that needs the scheduler, None if none does."""
    if group.link is not None:
        return device_profile.LINK
    if group.is_on_one_numa_node:
        return device_profile.SINGLE_NUMA_NODE
    if group.numa_affinity is device_profile.NumaAffinity.REQUIRED:
        return device_profile.NUMA_AFFINITY
    return None
