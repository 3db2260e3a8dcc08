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

"""What instances hold of one provider and another one serves by now.

When the operator's lines change (``pool``, ``traits``), devices are served by
other providers. Nova can move allocations when nova-compute starts, and only
then; see ``ComputeDriver.update_provider_tree`` of Nova.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import MutableMapping
import dataclasses
from typing import Any

from nova_accel.model import arq
from nova_accel.model import binding as binding_model
from nova_accel.model import provider_layout

#: Consumer uuid -> what ``GET /allocations/{consumer}`` of Placement has.
Allocations = Mapping[str, MutableMapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Move:
    """One unit of an instance, from provider to provider."""

    instance_uuid: str
    role: arq.Role
    handle_uuid: str
    resource_class: str
    source: str
    target: str


@dataclasses.dataclass(frozen=True)
class Moved:
    """What the moves make of the allocations.

    ``evidence`` is what some consumers then have of the targets: consumer
    uuid -> provider uuid -> resource class -> amount.
    """

    moves: tuple[Move, ...] = ()
    evidence: Mapping[str, Mapping[str, Mapping[str, int]]] = (
        dataclasses.field(default_factory=dict))

    @property
    def targets(self) -> dict[str, provider_layout.Place]:
        """Attach handle uuid -> where its unit is then."""
        return {move.handle_uuid: provider_layout.Place(
            move.target, move.resource_class) for move in self.moves}

    def is_in(self, allocated: Mapping[str, Mapping[str, Mapping[str, int]]],
              ) -> bool:
        """Whether Placement has made the moves: it makes all of them or none.

        :param allocated: what consumers have of the targets, as ``evidence``
        """
        return not self.evidence or any(
            allocated.get(consumer, {}).get(rp_uuid, {}).get(
                resource_class, 0) >= amount
            for consumer, providers in self.evidence.items()
            for rp_uuid, resources in providers.items()
            for resource_class, amount in resources.items())


def needed(layout: provider_layout.Layout,
           held: Iterable[binding_model.Binding]) -> tuple[Move, ...]:
    """The moves that let all that is held be where the layout serves it.

    What has another resource class by now stays where it is, as what is gone:
    the flavor asks for the old one.
    """
    return tuple(
        Move(binding.instance_uuid, binding.role, request.handle.uuid,
             home.resource_class, request.device_rp_uuid, home.rp_uuid)
        for binding in held if binding.role is not None
        for request in binding.arqs
        if (home := layout.places.get(request.handle.uuid)) is not None
        and home.resource_class == request.resource_class
        and home.rp_uuid != request.device_rp_uuid)


def make(layout: provider_layout.Layout,
         held: Iterable[binding_model.Binding], allocations: Allocations,
         migrations: Mapping[str, str]) -> Moved:
    """Make the moves in the allocations; all else in them stays.

    What is not allocated at its source any more has been moved by a
    nova-compute that died before it knew.

    :param allocations: of all consumers of the host's providers
    :param migrations: of those consumers that are migrations, their instance
    """
    bindings = tuple(held)
    evidence = {}
    for consumer, allocation in allocations.items():
        own = _own(bindings, migrations.get(consumer, consumer),
                   is_migration=consumer in migrations)
        moves = needed(layout, own)
        resources = allocation['allocations']
        stay = collections.Counter(
            request.device_rp_uuid for binding in own
            for request in binding.arqs)
        stay.subtract(move.source for move in moves)
        for move in moves:
            _make(move, resources, stay[move.source])
        targets = {move.target for move in moves} & resources.keys()
        if targets:
            evidence[consumer] = {
                rp_uuid: dict(resources[rp_uuid]['resources'])
                for rp_uuid in targets}
    return Moved(needed(layout, bindings), evidence)


def _own(held: Iterable[binding_model.Binding], instance_uuid: str,
         is_migration: bool) -> list[binding_model.Binding]:
    """What an instance, or its migration, is the consumer of.

    The migration is that of what the source of a resize keeps; a live
    migration, of all that the source has.
    """
    bindings = [binding for binding in held
                if binding.instance_uuid == instance_uuid]
    old = [binding for binding in bindings if binding.role is arq.Role.OLD]
    if is_migration and old:
        return old
    return [binding for binding in bindings if binding not in old]


def _make(move: Move, resources: dict[str, Any], stay: int) -> None:
    """Move one unit of a consumer: provider uuid -> ``resources``.

    :param stay: how much of the source it has besides
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
        of_target['resources'].get(move.resource_class, 0) + 1)


def allocated(allocations: Allocations, rp_uuids: Iterable[str],
              ) -> dict[provider_layout.Place, int]:
    """How much the consumers have of these providers together."""
    ours = set(rp_uuids)
    amounts: collections.Counter[provider_layout.Place] = (
        collections.Counter())
    for allocation in allocations.values():
        for rp_uuid, of_provider in allocation['allocations'].items():
            if rp_uuid in ours:
                for resource_class, amount in of_provider[
                        'resources'].items():
                    amounts[provider_layout.Place(
                        rp_uuid, resource_class)] += amount
    return dict(amounts)
