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

"""Move allocations of devices that another provider serves by now.

When the operator's lines change (``pool``, ``traits``), devices change to
other providers. Nova can move their allocations only when nova-compute starts,
see Nova's ``ComputeDriver.update_provider_tree``.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import MutableMapping
import dataclasses
from typing import Any

from nova_accel.model import arq_types
from nova_accel.model import host_binding
from nova_accel.model.providers import provider_layout

#: Consumer uuid -> Placement's answer to ``GET /allocations/{consumer}``.
Allocations = Mapping[str, MutableMapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class ReshapeMove:
    """The move of one unit of an instance to another provider."""

    instance_uuid: str
    role: arq_types.Role
    handle_uuid: str
    resource_class: str
    source: str
    target: str


@dataclasses.dataclass(frozen=True)
class Moved:
    """The moves, and the proof that Placement has made them.

    ``evidence`` is what some consumers have from the targets after the moves:
    consumer uuid -> provider uuid -> resource class -> amount.
    """

    moves: tuple[ReshapeMove, ...] = ()
    evidence: Mapping[str, Mapping[str, Mapping[str, int]]] = (
        dataclasses.field(default_factory=dict)
    )

    @property
    def targets(self) -> dict[str, provider_layout.Place]:
        """Attach handle uuid -> the place of its unit after the moves."""
        return {
            move.handle_uuid: provider_layout.Place(
                move.target, move.resource_class
            )
            for move in self.moves
        }

    def is_in(
        self,
        allocated: Mapping[str, Mapping[str, Mapping[str, int]]],
    ) -> bool:
        """Whether Placement has made the moves: it makes all of them or none.

        :param allocated: what consumers have from the targets, in the form of
            ``evidence``
        """
        return not self.evidence or any(
            allocated.get(consumer, {}).get(rp_uuid, {}).get(resource_class, 0)
            >= amount
            for consumer, providers in self.evidence.items()
            for rp_uuid, resources in providers.items()
            for resource_class, amount in resources.items()
        )


def needed(
    layout: provider_layout.Layout, held: Iterable[host_binding.Binding]
) -> tuple[ReshapeMove, ...]:
    """The moves that bring all held units to the layout's providers.

    A unit that has another resource class by now stays, because the flavor
    asks for the old class. A unit whose device is gone stays, too.
    """
    return tuple(
        ReshapeMove(
            binding.instance_uuid,
            binding.role,
            arq.handle.uuid,
            home.resource_class,
            arq.device_rp_uuid,
            home.rp_uuid,
        )
        for binding in held
        if binding.role is not None
        for arq in binding.arqs
        if (home := layout.places.get(arq.handle.uuid)) is not None
        and home.resource_class == arq.resource_class
        and home.rp_uuid != arq.device_rp_uuid
    )


def make(
    layout: provider_layout.Layout,
    held: Iterable[host_binding.Binding],
    allocations: Allocations,
    migrations: Mapping[str, str],
) -> Moved:
    """Make the moves in the allocations, and change nothing else.

    A unit that is no longer allocated at its source was moved earlier, by a
    nova-compute that died before it got the answer.

    :param allocations: the allocations of all consumers of the host's
        providers
    :param migrations: uuids of the consumers that are migrations -> instance
        uuid
    """
    bindings = tuple(held)
    evidence = {}
    for consumer, allocation in allocations.items():
        own = _own(
            bindings,
            migrations.get(consumer, consumer),
            is_migration=consumer in migrations,
        )
        moves = needed(layout, own)
        resources = allocation['allocations']
        stay = collections.Counter(
            arq.device_rp_uuid for binding in own for arq in binding.arqs
        )
        stay.subtract(move.source for move in moves)
        for move in moves:
            _make(move, resources, stay[move.source])
        targets = {move.target for move in moves} & resources.keys()
        if targets:
            evidence[consumer] = {
                rp_uuid: dict(resources[rp_uuid]['resources'])
                for rp_uuid in targets
            }
    return Moved(needed(layout, bindings), evidence)


def _own(
    held: Iterable[host_binding.Binding],
    instance_uuid: str,
    is_migration: bool,
) -> list[host_binding.Binding]:
    """The bindings whose units an instance, or its migration, consumes.

    A migration consumes what the source of a resize keeps; a live migration
    consumes all that the source has.
    """
    bindings = [
        binding for binding in held if binding.instance_uuid == instance_uuid
    ]
    old = [
        binding for binding in bindings if binding.role is arq_types.Role.OLD
    ]
    if is_migration and old:
        return old
    return [binding for binding in bindings if binding not in old]


def _make(move: ReshapeMove, resources: dict[str, Any], stay: int) -> None:
    """Move one unit of a consumer: provider uuid -> ``resources``.

    :param stay: how many other units the consumer keeps at the source
    """
    of_source = resources.get(move.source, {}).get('resources', {})
    if of_source.get(move.resource_class, 0) <= stay:
        return
    of_source[move.resource_class] -= 1
    if not of_source[move.resource_class]:
        del of_source[move.resource_class]
    if not of_source:
        del resources[move.source]
    of_target = resources.setdefault(move.target, {'resources': {}})
    of_target['resources'][move.resource_class] = (
        of_target['resources'].get(move.resource_class, 0) + 1
    )


def allocated(
    allocations: Allocations,
    rp_uuids: Iterable[str],
) -> dict[provider_layout.Place, int]:
    """How much all consumers together have from these providers."""
    ours = set(rp_uuids)
    amounts: collections.Counter[provider_layout.Place] = collections.Counter()
    for allocation in allocations.values():
        for rp_uuid, of_provider in allocation['allocations'].items():
            if rp_uuid in ours:
                for resource_class, amount in of_provider['resources'].items():
                    amounts[
                        provider_layout.Place(rp_uuid, resource_class)
                    ] += amount
    return dict(amounts)
