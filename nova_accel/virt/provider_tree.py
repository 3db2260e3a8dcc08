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

"""Between Nova's provider tree and the pure rules of providers.

Nova calls :func:`apply` inside every claim, under its resource semaphore: it
must not wait for anything.
"""

from collections.abc import Mapping
from typing import Any

from nova.compute import provider_tree

from nova_accel.model import matching
from nova_accel.model import naming
from nova_accel.model import provider_layout

#: What ``GET /allocations/{consumer}`` of Placement has below "allocations".
Allocations = Mapping[str, Mapping[str, Any]]


def ours(tree: provider_tree.ProviderTree) -> list[str]:
    """The uuids of our providers in the tree, parents first."""
    return [uuid for uuid in tree.get_provider_uuids()
            if naming.OWNERSHIP_TRAIT in tree.data(uuid).traits]


def allocated(tree: provider_tree.ProviderTree,
              allocations: Allocations) -> tuple[matching.Provider, ...]:
    """What the allocations take of our providers in this tree.

    During an evacuation they name the providers of two hosts.
    """
    return tuple(
        matching.Provider(uuid, allocations[uuid]['resources'],
                          frozenset(tree.data(uuid).traits))
        for uuid in ours(tree) if uuid in allocations)


def apply(tree: provider_tree.ProviderTree, nodename: str,
          layout: provider_layout.Layout, in_use: frozenset[str],
          given: Mapping[str, frozenset[str]]) -> provider_layout.Changes:
    """Make our part of the tree what the layout says; touch nothing else.

    :param in_use: uuids of the providers that instances hold something of
    :param given: provider uuid -> the traits that we gave it
    :returns: what had to be changed; false if nothing had to
    """
    changes = provider_layout.diff(layout, _present(tree), in_use, given)
    for provider in changes.put:
        if not tree.exists(provider.uuid):
            tree.new_child(provider.name, provider.parent or nodename,
                           uuid=provider.uuid)
        tree.update_inventory(provider.uuid, {
            resource_class: _inventory(total)
            for resource_class, total in provider.totals.items()})
        # Traits are added, not set: an operator's own stay.
        tree.add_traits(provider.uuid, *provider.traits)
    for uuid, traits in changes.stale.items():
        tree.remove_traits(uuid, *traits)
    for uuid in changes.reserve:
        tree.update_inventory(uuid, {
            resource_class: _inventory(inventory['total'],
                                       reserved=inventory['total'])
            for resource_class, inventory
            in tree.data(uuid).inventory.items()})
    for uuid in changes.remove:
        tree.remove(uuid)
    return changes


def _present(
    tree: provider_tree.ProviderTree,
) -> list[provider_layout.Present]:
    present = []
    for uuid in ours(tree):
        data = tree.data(uuid)
        present.append(provider_layout.Present(
            uuid, {resource_class: inventory['total'] - inventory['reserved']
                   for resource_class, inventory in data.inventory.items()},
            frozenset(data.traits), data.parent_uuid))
    return present


def _inventory(total: int, reserved: int = 0) -> dict[str, Any]:
    return {'total': total, 'reserved': reserved, 'min_unit': 1,
            'max_unit': total, 'step_size': 1, 'allocation_ratio': 1.0}
