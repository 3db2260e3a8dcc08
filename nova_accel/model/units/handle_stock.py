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

"""The free attach handles of some providers, and the choice among them."""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import datetime
import types
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.model.cards import card_slice
from nova_accel.model.cards import shared_card
from nova_accel.model.fpga import bitstream_stock
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from nova_accel.model.units import nearness
from nova_accel.model.units import unit_choice


class Slot(NamedTuple):
    """The host, provider and class that the handle of an ARQ must be of."""

    hostname: str
    rp_uuid: str
    resource_class: str


@dataclasses.dataclass(frozen=True)
class Ask:
    """The request of one group of an instance to a provider.

    ``arqs`` maps the uuids of the ARQs to their resource classes.
    """

    hostname: str
    rp_uuid: str
    group: device_profile.Group
    arqs: Mapping[str, str]

    @property
    def slots(self) -> list[Slot]:
        """A slot for each ARQ."""
        return [
            Slot(self.hostname, self.rp_uuid, resource_class)
            for resource_class in self.arqs.values()
        ]


class Allotment(NamedTuple):
    """The handles that are set aside.

    ``arqs`` maps handle uuids to ARQ uuids, ``why`` ARQ uuids to the reason
    why these handles were chosen. ``cards`` maps the uuids of handles to those
    of their cards, if these are of many shapes.
    """

    arqs: dict[str, str]
    why: dict[str, str]
    cards: dict[str, str]


class ReadCard(NamedTuple):
    """A card of many shapes: its uuid, its units, and their handles' uuids."""

    uuid: str
    card: shared_card.SharedCard
    handles: Mapping[card_slice.CardSlice, str]


_NO_CARDS: Mapping[str, ReadCard] = types.MappingProxyType({})


@dataclasses.dataclass
class HandleKind:
    """Units of a slot among which no one needs to choose.

    ``handles`` are uuids of free ones, as many as may be wanted. ``demand`` is
    the one for the bitstream that they hold.
    """

    units: free_units.FreeUnits
    handles: list[str]
    demand: float = 0.0


class HandleStock:
    """The free handles of some providers, as they were when read.

    :param kinds: the kinds of each slot that was reported
    :param unusable: slot -> for each handle that no instance has and that is
        not free, the reason
    :param quiet: hostname -> how long ago the host has last reported
    :param policies: resource class -> its policy, if it is not the default
    :param near: the NUMA nodes that have the guest's cells, by their names;
        none if that does not matter
    :param cards: provider uuid -> its card, if it is one of many shapes
    """

    def __init__(
        self,
        kinds: Mapping[Slot, Sequence[HandleKind]],
        unusable: Mapping[Slot, Sequence[str]],
        quiet: Mapping[str, datetime.timedelta],
        policies: Mapping[str, str],
        near: frozenset[str] = frozenset(),
        cards: Mapping[str, ReadCard] = _NO_CARDS,
    ) -> None:
        self._kinds = kinds
        self._cards = cards
        self._unusable = unusable
        self._quiet = quiet
        self._policies = policies
        self._near = near

    def check_providers(self, slots: Iterable[Slot]) -> None:
        """Check that each host has reported the providers of its slots.

        :raises NotFound: names the providers that were not reported
        """
        unknown = sorted(
            {(slot.hostname, slot.rp_uuid) for slot in slots}
            - {(slot.hostname, slot.rp_uuid) for slot in self._kinds}
        )
        if unknown:
            raise exceptions.NotFound(
                '; '.join(
                    f'Resource provider {rp_uuid} not found on host {hostname}'
                    for hostname, rp_uuid in unknown
                ),
                public=(
                    'the host that was chosen has no such accelerator any '
                    'more: try again'
                ),
            )

    def silent_hosts(self, silence_s: int) -> set[str]:
        """The hosts whose last report is older than this many seconds."""
        silence = datetime.timedelta(seconds=silence_s)
        return {
            hostname
            for hostname, quiet in self._quiet.items()
            if quiet > silence
        }

    def free(self, slot: Slot) -> int:
        """How many handles of a slot are free."""
        return sum(kind.units.free for kind in self._kinds.get(slot, ()))

    def price(
        self, hostname: str, rp_uuid: str, group: device_profile.Group
    ) -> int:
        """The price of serving a group by a provider, for an assignment."""
        found = self._choice(hostname, rp_uuid, group)
        return unit_choice.HIGHEST_PRICE if found is None else found.cost.price

    def allot(self, asks: Collection[Ask]) -> Allotment:
        """Set a handle aside for each ARQ, or none at all.

        :raises AcceleratorsBusy: fewer are free than wanted, on one NUMA node
            or near the guest's cells if a group wants that; says why others
            cannot be used
        """
        self._check_amounts(slot for ask in asks for slot in ask.slots)
        allotted = Allotment({}, {}, {})
        for ask in asks:
            self._serve(ask, allotted)
        return allotted

    def _check_amounts(self, wanted: Iterable[Slot]) -> None:
        for slot, amount in collections.Counter(wanted).items():
            free = self.free(slot)
            if free < amount:
                raise exceptions.AcceleratorsBusy(
                    f'{amount} {slot.resource_class} of resource provider '
                    f'{slot.rp_uuid} on host {slot.hostname} wanted, '
                    f'{free} free',
                    self._why_no_more(slot),
                )

    def _serve(self, ask: Ask, allotted: Allotment) -> None:
        group = dataclasses.replace(
            ask.group, resources=collections.Counter(ask.arqs.values())
        )
        choice = self._choice(ask.hostname, ask.rp_uuid, group)
        if choice is None:
            raise self._badly_placed(ask, group)
        arqs: dict[str, list[str]] = {}
        for arq_uuid, resource_class in ask.arqs.items():
            arqs.setdefault(resource_class, []).append(arq_uuid)
        for kind in self._of_provider(ask.hostname, ask.rp_uuid):
            amount = choice.units.get(kind.units.deployable_uuid, 0)
            for _unit in range(amount):
                arq_uuid = arqs[kind.units.resource_class].pop()
                allotted.arqs[self._take(kind, group, allotted)] = arq_uuid
                allotted.why[arq_uuid] = choice.why
            kind.units = dataclasses.replace(
                kind.units, free=kind.units.free - amount
            )

    def _take(
        self,
        kind: HandleKind,
        group: device_profile.Group,
        allotted: Allotment,
    ) -> str:
        """One of the free handles.

        :raises AcceleratorsBusy: the units that were chosen before leave no
            room for it on the card.
        """
        read = self._cards.get(kind.units.rp_uuid)
        if read is None:
            return kind.handles.pop()
        resource_class = kind.units.resource_class
        policy = unit_choice.policy_of(group, self._policies)
        found = read.card.take(
            resource_class, policy is unit_choice.UnitPolicy.PACK
        )
        if found is None:
            raise exceptions.AcceleratorsBusy(
                f'the card of resource provider {kind.units.rp_uuid} has no '
                f'room for {resource_class} beside the other units that the '
                'server is to get'
            )
        handle = read.handles[found]
        allotted.cards[handle] = read.uuid
        return handle

    def _badly_placed(
        self, ask: Ask, group: device_profile.Group
    ) -> exceptions.AcceleratorsBusy:
        """Enough units are free, but not on the NUMA nodes that are wanted."""
        pool = [
            kind.units for kind in self._of_provider(ask.hostname, ask.rp_uuid)
        ]
        wanted = (
            f'{len(ask.arqs)} of resource provider {ask.rp_uuid} on host '
            f'{ask.hostname} wanted '
        )
        if nearness.excludes(group, pool, self._near):
            return exceptions.AcceleratorsBusy(
                wanted + nearness.why_none(pool, self._near),
                public=nearness.PUBLIC,
            )
        return exceptions.AcceleratorsBusy(
            f'{wanted}on one NUMA node, and no node has as many free'
        )

    def _choice(
        self, hostname: str, rp_uuid: str, group: device_profile.Group
    ) -> unit_choice.UnitChoice | None:
        """The best units, whatever their traits.

        Placement has compared the traits of the provider, which all its units
        have. Some may be an operator's, and those are nowhere else.
        """
        kinds = self._of_provider(hostname, rp_uuid)
        return unit_choice.choose(
            dataclasses.replace(
                group, required=frozenset(), forbidden=frozenset()
            ),
            [kind.units for kind in kinds],
            unit_choice.policy_of(group, self._policies),
            _missed(kinds),
            self._near,
        )

    def _of_provider(self, hostname: str, rp_uuid: str) -> list[HandleKind]:
        return [
            kind
            for slot, kinds in self._kinds.items()
            if (slot.hostname, slot.rp_uuid) == (hostname, rp_uuid)
            for kind in kinds
        ]

    def _why_no_more(self, slot: Slot) -> str:
        reasons = collections.Counter(self._unusable.get(slot, ()))
        return (
            ''
            if not reasons
            else ' ({})'.format(
                ', '.join(
                    f'{amount} {reason}' for reason, amount in reasons.items()
                )
            )
        )


def _missed(kinds: Sequence[HandleKind]) -> dict[str, float]:
    """Bitstream -> the demand for each idle region of the pool with it."""
    demand: dict[str, float] = {}
    idle: collections.Counter[str] = collections.Counter()
    for kind in kinds:
        if kind.units.bitstream_id is not None:
            demand[kind.units.bitstream_id] = kind.demand
            idle[kind.units.bitstream_id] += kind.units.free
    return bitstream_stock.missed(demand, idle)
