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

"""The allocations that an instance has of resource providers."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

from nova_accel.model.profiles import device_profile


@dataclasses.dataclass(frozen=True)
class ProviderAllocation:
    """The units that one provider has given to one instance.

    ``resources`` maps resource classes to amounts. ``traits`` are those of the
    provider in its host's provider tree.
    """

    rp_uuid: str
    resources: Mapping[str, int]
    traits: frozenset[str]

    def suits(self, group: device_profile.Group) -> bool:
        """Whether the traits let the provider serve the group."""
        return (
            group.required <= self.traits and not group.forbidden & self.traits
        )


def without(
    allocations: Sequence[ProviderAllocation],
    held: Mapping[tuple[str, str], int],
) -> tuple[ProviderAllocation, ...]:
    """The allocations that are left of the given ones.

    :param held: the amounts to subtract: (provider uuid, resource class) ->
        amount
    """
    left = (
        dataclasses.replace(
            allocation,
            resources={
                resource_class: amount
                - held.get((allocation.rp_uuid, resource_class), 0)
                for resource_class, amount in allocation.resources.items()
                if amount > held.get((allocation.rp_uuid, resource_class), 0)
            },
        )
        for allocation in allocations
    )
    return tuple(allocation for allocation in left if allocation.resources)


def to_dict(allocations: Iterable[ProviderAllocation]) -> dict[str, Any]:
    """Plain JSON, between the planes: provider uuid -> the rest."""
    return {
        allocation.rp_uuid: {
            'allocated': dict(allocation.resources),
            'traits': sorted(allocation.traits),
        }
        for allocation in allocations
    }


def from_dict(value: Mapping[str, Any]) -> tuple[ProviderAllocation, ...]:
    """The reverse of :func:`to_dict`."""
    return tuple(
        ProviderAllocation(
            rp_uuid,
            {
                # JSON Schema takes 1.0 for an integer.
                resource_class: int(amount)
                for resource_class, amount in given['allocated'].items()
            },
            frozenset(given['traits']),
        )
        for rp_uuid, given in value.items()
    )
