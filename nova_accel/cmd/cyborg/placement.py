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

"""Placement's part of a move from Cyborg, and of the way back.

Cyborg's providers of a host stay until no one needs them any more:
nova-compute remembers all providers of its host, and fails to update them if
one is gone.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from nova_accel import exceptions
from nova_accel.cmd import placement_call
from nova_accel.model.cyborg import allocation_moves
from nova_accel.model.cyborg import hosts
from nova_accel.overview import parallel

_Moves = Sequence[allocation_moves.AllocationMove]


def consumers(
    providers: Iterable[hosts.CyborgProvider],
) -> dict[str, set[str]]:
    """Consumer -> the providers that it has something of."""
    found: dict[str, set[str]] = collections.defaultdict(set)
    for rp_uuid, of_provider in parallel.ask(
        'Asking Placement',
        placement_call.allocations,
        [provider.uuid for provider in providers],
    ).items():
        for consumer in of_provider:
            found[consumer].add(rp_uuid)
    return dict(found)


def move(moves: Mapping[str, _Moves]) -> dict[str, str]:
    """Move the allocations of consumers, by the generation of each.

    :param moves: by the uuid of the consumer
    :returns: for each consumer that keeps its allocations, why
    :raises ServiceUnavailable: Placement gave no usable answer; repeating the
        call continues
    """

    def move_one(consumer: str) -> str:
        try:
            placement_call.change(
                f'/allocations/{consumer}',
                lambda present: _moved(present, moves[consumer]),
            )
        except exceptions.Conflict as fault:
            return str(fault)
        return ''

    results = parallel.ask('Moving allocations', move_one, sorted(moves))
    return {consumer: why for consumer, why in results.items() if why}


def _moved(
    present: Mapping[str, Any], moves: _Moves
) -> Mapping[str, Any] | None:
    allocated = {
        rp_uuid: of_provider['resources']
        for rp_uuid, of_provider in present['allocations'].items()
    }
    wanted = allocation_moves.moved(allocated, moves)
    if wanted == allocated:
        return None
    return {
        **present,
        'allocations': {
            rp_uuid: {'resources': resources}
            for rp_uuid, resources in wanted.items()
        },
    }


def empty(providers: Iterable[hosts.CyborgProvider]) -> int:
    """Take away what Cyborg's providers offer.

    :returns: how many offered something
    :raises Conflict: there is an allocation of one
    """
    return _set_inventories(providers, lambda provider: {})


def fill(
    providers: Iterable[hosts.CyborgProvider], is_disabled_kept: bool
) -> int:
    """Let Cyborg's providers offer again what Cyborg let them offer.

    :param is_disabled_kept: whether those of disabled devices offer nothing,
        so that nothing can be allocated there
    :returns: how many did not
    """

    def inventories(provider: hosts.CyborgProvider) -> dict[str, Any]:
        reserved = is_disabled_kept and provider.is_disabled
        return {
            provider.resource_class: {
                'total': provider.total,
                'max_unit': provider.total,
                'min_unit': 1,
                'step_size': 1,
                'allocation_ratio': 1.0,
                'reserved': provider.total if reserved else 0,
            }
        }

    return _set_inventories(providers, inventories)


def _set_inventories(
    providers: Iterable[hosts.CyborgProvider],
    wanted: Callable[[hosts.CyborgProvider], dict[str, Any]],
) -> int:
    by_uuid = {provider.uuid: provider for provider in providers}

    def set_one(rp_uuid: str) -> bool:
        inventories = wanted(by_uuid[rp_uuid])

        def changed(present: Mapping[str, Any]) -> Mapping[str, Any] | None:
            if present['inventories'] == inventories:
                return None
            return {**present, 'inventories': inventories}

        return placement_call.change(
            f'/resource_providers/{rp_uuid}/inventories', changed
        )

    return sum(
        parallel.ask('Writing inventories', set_one, sorted(by_uuid)).values()
    )


def existing(providers: Iterable[hosts.CyborgProvider]) -> set[str]:
    """The uuids of those that Placement has."""
    found = parallel.ask(
        'Asking Placement',
        lambda rp_uuid: placement_call.call(
            'get', f'/resource_providers/{rp_uuid}'
        ),
        [provider.uuid for provider in providers],
    )
    return {rp_uuid for rp_uuid, answer in found.items() if answer}


def delete(rp_uuids: Iterable[str]) -> None:
    """:raises Conflict: somebody has something of one"""
    parallel.ask(
        'Deleting providers',
        lambda rp_uuid: placement_call.call(
            'delete', f'/resource_providers/{rp_uuid}'
        ),
        sorted(rp_uuids),
    )
