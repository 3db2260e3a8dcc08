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

"""Changes of the accelerators of all hosts, as the database tells them."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import datetime
from typing import NamedTuple

from nova_accel.model.cards import card_slice
from nova_accel.model.units import free_units


class ChangedDeployable(NamedTuple):
    """A deployable of a host, with the number of its units.

    ``traits`` are all that its provider has by it, also those that hosts do
    not report. ``total`` is how many units its host reports, and ``free`` how
    many of these a guest can have: none of a device that is disabled or
    faulty. ``in_use`` is how many guests have. ``unusable`` says in the words
    for tenants why no guest can have a unit of the device, None if one can.
    ``slices`` and ``taken`` are as those of :class:`.free_units.FreeUnits`.
    ``link_sets`` are the sets of joined devices that the device is in, the
    largest first, as :mod:`nova_accel.model.link_places` writes them.
    """

    hostname: str
    uuid: str
    rp_uuid: str
    resource_class: str
    traits: frozenset[str]
    device_uuid: str
    numa_node: int | None
    region: str | None
    bitstream_id: str | None
    total: int
    free: int
    in_use: int = 0
    unusable: str | None = None
    slices: tuple[card_slice.CardSlice, ...] = ()
    taken: tuple[card_slice.CardSlice, ...] = ()
    link_sets: tuple[str, ...] = ()

    def units(self) -> free_units.FreeUnits:
        """Its units, as the choice between them sees them."""
        return free_units.FreeUnits(
            self.uuid,
            self.rp_uuid,
            self.resource_class,
            self.traits,
            self.free,
            self.total,
            self._sets,
            self.region,
            self.bitstream_id,
            node=(
                free_units.node_of(self.numa_node) if self.link_sets else None
            ),
            slices=() if self.unusable else self.slices,
            taken=self.taken,
        )

    def bound(self, after: 'ChangedDeployable | None') -> int:
        """How many units are not free any more; of a card, those taken.

        Others of the card may be free no more without being bound.

        :param after: the same deployable later, None if it is gone
        """
        if self.slices:
            return 0 if after is None else len(after.taken) - len(self.taken)
        return self.free - (0 if after is None else after.free)

    @property
    def share(self) -> int:
        """How much of its card a unit takes, 0 if it shares none."""
        return max((each.size for each in self.slices), default=0)

    @property
    def _sets(self) -> tuple[str, ...]:
        """The link sets say more than the NUMA node, which may be one."""
        if self.link_sets:
            return (*self.link_sets, self.device_uuid)
        return free_units.sets_of(self.numa_node, self.device_uuid)


def linked_on(deployables: Iterable[ChangedDeployable]) -> str | None:
    """The host of joined devices; None for devices that are not joined."""
    return next(
        (each.hostname for each in deployables if each.link_sets), None
    )


class Changes(NamedTuple):
    """The changes since a moment of the database's clock.

    ``of_hosts`` has all deployables of the hosts that have changed, also of a
    host that has none. ``others`` are deployables of which a unit has changed;
    the other deployables of their hosts are as before. ``silent`` are the
    names of all hosts that do not report, and ``unpublished`` of those whose
    devices Placement counts as before they were disabled or enabled. With
    ``is_all``, there is nothing but what this tells. ``at`` is the database's
    time.
    """

    at: datetime.datetime
    is_all: bool
    of_hosts: Mapping[str, Sequence[ChangedDeployable]]
    others: Sequence[ChangedDeployable] = ()
    silent: frozenset[str] = frozenset()
    unpublished: frozenset[str] = frozenset()
