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

"""The translation between Nova's provider tree and the rules of providers.

Nova calls :func:`apply` inside every claim, under its resource semaphore. So
it must not wait for anything.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from nova.compute import provider_tree

from nova_accel.model import naming
from nova_accel.model.profiles import provider_allocation
from nova_accel.model.providers import provider_layout

#: The "allocations" that ``GET /allocations/{consumer}`` of Placement answers.
Allocations = Mapping[str, Mapping[str, Any]]


def ours(tree: provider_tree.ProviderTree) -> list[str]:
    """The uuids of our providers in the tree, parents first.

    The trait alone does not tell: an operator may have given it to other
    providers, and by a provider.yaml even to the node.
    """
    return [data.uuid for data, is_ours in _providers(tree) if is_ours]


def allocated(
    tree: provider_tree.ProviderTree, allocations: Allocations
) -> tuple[provider_allocation.ProviderAllocation, ...]:
    """Our providers in this tree, with the units that are allocated of each.

    During an evacuation the allocations name the providers of two hosts.
    """
    return tuple(
        provider_allocation.ProviderAllocation(
            uuid,
            {
                resource_class: amount
                for resource_class, amount in allocations[uuid][
                    'resources'
                ].items()
                if resource_class != naming.CARD_SHARE
            },
            frozenset(tree.data(uuid).traits),
        )
        for uuid in ours(tree)
        if uuid in allocations
    )


def present(
    tree: provider_tree.ProviderTree,
    given: Mapping[str, frozenset[str]],
) -> list[provider_layout.Present]:
    """Our providers in the tree, parents first.

    They include providers without traits, whose first update failed.

    :param given: provider uuid -> the traits that we gave, or wanted to give
    """
    return [
        provider_layout.Present(
            data.uuid,
            {
                resource_class: provider_layout.Units(
                    inventory['total'], inventory['reserved']
                )
                for resource_class, inventory in data.inventory.items()
            },
            frozenset(data.traits),
            data.parent_uuid,
        )
        for data, is_ours in _providers(tree)
        if is_ours or data.uuid in given
    ]


def _providers(tree: provider_tree.ProviderTree) -> Iterator[tuple[Any, bool]]:
    """Each provider's data, and whether it is ours; parents first."""
    nodenames = [root.name for root in tree.roots]
    for uuid in tree.get_provider_uuids():
        data = tree.data(uuid)
        yield (
            data,
            naming.OWNERSHIP_TRAIT in data.traits
            and any(
                naming.is_provider_name(data.name, nodename)
                for nodename in nodenames
            ),
        )


def apply(
    tree: provider_tree.ProviderTree,
    nodename: str,
    changes: provider_layout.TreeChanges,
) -> None:
    """Make the changes in our part of the tree; touch nothing else."""
    for provider in changes.put:
        if not tree.exists(provider.uuid):
            tree.new_child(
                provider.name, provider.parent or nodename, uuid=provider.uuid
            )
        # Traits are added, not set: an operator's own stay.
        tree.add_traits(provider.uuid, *provider.traits)
    for uuid, inventory in changes.inventories.items():
        tree.update_inventory(
            uuid,
            {
                resource_class: _inventory(units)
                for resource_class, units in inventory.items()
            },
        )
    for uuid, traits in changes.stale.items():
        tree.remove_traits(uuid, *traits)
    for uuid in changes.remove:
        tree.remove(uuid)


def _inventory(units: provider_layout.Units) -> dict[str, Any]:
    return {
        'total': units.total,
        'reserved': units.reserved,
        'min_unit': 1,
        'max_unit': units.total,
        'step_size': 1,
        'allocation_ratio': 1.0,
    }
