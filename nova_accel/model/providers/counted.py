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

"""Whether Placement counts what instances hold on a host, and nothing else.

Nova allocates before a host holds, and removes an allocation after the host
has given back. Some of Nova's operations break that: a rebuild that fails
loses all allocations of its server, and a server that is deleted while it is
copied leaves those of its migration.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

from nova_accel.model import arq_types
from nova_accel.model import binding_repairs
from nova_accel.model import host_binding
from nova_accel.model import naming
from nova_accel.model import nova_server
from nova_accel.model.providers import provider_layout

Place = provider_layout.Place

#: Provider uuid -> resource class -> amount.
Resources = Mapping[str, Mapping[str, int]]

#: Units at each place, none below one.
Units = collections.Counter[Place]


@dataclasses.dataclass(frozen=True)
class Migration:
    """A migration in Nova, also one that Nova has deleted.

    Until it ends, its uuid is the consumer of what the source holds.
    """

    instance_uuid: str
    is_unfinished: bool


@dataclasses.dataclass(frozen=True)
class Consumers:
    """The consumers in Placement that are no existing instance.

    ``migrations`` are by their uuids, ``deleted`` the uuids of instances that
    Nova has deleted. Any other one is of another service, or of a server that
    Nova is about to create.
    """

    migrations: Mapping[str, Migration] = dataclasses.field(
        default_factory=dict
    )
    deleted: Collection[str] = ()

    def instance_of(self, consumer: str) -> str:
        """The instance for which the consumer has its allocations."""
        migration = self.migrations.get(consumer)
        return consumer if migration is None else migration.instance_uuid


def lasting(
    before: Iterable[host_binding.Binding],
    after: Iterable[host_binding.Binding],
) -> list[host_binding.Binding]:
    """The bindings that were held all the time between two looks."""
    seen = {
        (binding.instance_uuid, binding.role, binding.attempt)
        for binding in before
    }
    return [
        binding
        for binding in after
        if (binding.instance_uuid, binding.role, binding.attempt) in seen
    ]


def lacking(
    held: Iterable[host_binding.Binding],
    allocated: Mapping[str, Resources],
    consumers: Consumers,
) -> dict[str, Units]:
    """Instances that hold units which are not allocated, with these units.

    :param held: what was held before Placement was asked, and still is
    :param allocated: consumer uuid -> what it has of the host's providers
    """
    found: dict[str, Units] = {}
    for binding in held:
        found.setdefault(binding.instance_uuid, Units()).update(
            _of_arqs(binding.arqs)
        )
    for consumer, resources in allocated.items():
        units = found.get(consumers.instance_of(consumer))
        if units is not None:
            units.subtract(_units(resources))
    left = {uuid: _without_moved(units) for uuid, units in found.items()}
    return {uuid: units for uuid, units in left.items() if units}


def excess(
    kept: Iterable[arq_types.Arq], allocated: Resources
) -> dict[str, dict[str, int]]:
    """The allocations of an instance beyond what it keeps.

    :param allocated: what it has of the host's providers
    :returns: as ``allocated``
    """
    units = _units(allocated)
    units.subtract(_of_arqs(kept))
    found: dict[str, dict[str, int]] = {}
    for place, amount in (+units).items():
        found.setdefault(place.rp_uuid, {})[place.resource_class] = amount
    return found


def _without_moved(balance: Units) -> Units:
    """The units that lack an allocation, unless another place has it.

    While allocations move between providers, for a while the journal names
    one and Placement the other.

    :param balance: the units held minus the units allocated
    """
    spare: collections.Counter[str] = collections.Counter()
    for place, amount in balance.items():
        if amount < 0:
            spare[place.resource_class] -= amount
    return less(+balance, spare)


def less(units: Units, spare: Mapping[str, int]) -> Units:
    """The units that are left without so many of each resource class."""
    left, rest = Units(units), collections.Counter(spare)
    for place in units:
        taken = min(left[place], rest[place.resource_class])
        left[place] -= taken
        rest[place.resource_class] -= taken
    return +left


def amounts(resources: Resources) -> dict[str, int]:
    """Resource class -> the amount from all providers."""
    found: collections.Counter[str] = collections.Counter()
    for of_provider in resources.values():
        found.update(of_provider)
    return dict(found)


def is_settled(
    server: nova_server.Server | None,
    roles: Iterable[arq_types.Role],
    host: str,
) -> bool:
    """Whether an instance is to have just what it holds on a host.

    No operation of Nova is about to change its allocations then.

    :param server: None if there is no such instance
    :param roles: those in which the instance holds anything on the host
    :param host: the host's name in Nova's RPC
    """
    return (
        server is not None
        and server.host == host
        and not server.is_busy
        and not server.is_migrating
        and set(arq_types.OF_GUEST).issuperset(roles)
    )


def leftovers(
    host: binding_repairs.HostBindings,
    allocated: Iterable[str],
    consumers: Consumers,
) -> Iterator[tuple[str, str]]:
    """Consumers whose allocations of the host's providers no one needs.

    It is worth a second look: Nova removes most of them by itself.

    :returns: the uuid of each consumer, and the reason
    """
    bound = {binding.instance_uuid for binding in (*host.held, *host.listed)}
    bound.update(uuid for uuid, _role in host.journaled)
    for consumer in allocated:
        instance = consumers.instance_of(consumer)
        if instance in bound or instance in host.guests:
            continue
        migration = consumers.migrations.get(consumer)
        server = host.servers.get(instance)
        if migration is not None:
            if server is None:
                yield (
                    consumer,
                    f'it is a migration of server {instance}, '
                    'which is deleted',
                )
            elif not (migration.is_unfinished or server.is_busy):
                yield (
                    consumer,
                    f'it is a migration of server {instance}, and has ended',
                )
        elif server is not None:
            why = binding_repairs.why_unneeded(
                arq_types.Role.ACTIVE, server, host.name
            )
            if why is not None:
                yield consumer, why
        elif consumer in consumers.deleted:
            yield consumer, 'the server is deleted'


def _of_arqs(arqs: Iterable[arq_types.Arq]) -> Units:
    """The units of ARQs, and the shares that they take of their cards."""
    units = Units()
    for arq in arqs:
        units[Place(arq.device_rp_uuid, arq.resource_class)] += 1
        if arq.handle.slice is not None:
            units[Place(arq.device_rp_uuid, naming.CARD_SHARE)] += (
                arq.handle.slice.size
            )
    return units


def _units(resources: Resources) -> Units:
    return Units(
        {
            Place(rp_uuid, resource_class): amount
            for rp_uuid, of_provider in resources.items()
            for resource_class, amount in of_provider.items()
        }
    )
