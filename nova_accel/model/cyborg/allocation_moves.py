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

"""Allocations that go from one provider to another, unit by unit."""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from typing import NamedTuple

from nova_accel import exceptions

#: Provider uuid -> resource class -> amount.
Amounts = Mapping[str, Mapping[str, int]]


class MovedUnit(NamedTuple):
    """One unit of a provider."""

    rp_uuid: str
    resource_class: str


class AllocationMove(NamedTuple):
    """One unit that goes from its provider to another."""

    source: MovedUnit
    target: MovedUnit


def moved(
    allocated: Amounts, moves: Iterable[AllocationMove]
) -> dict[str, dict[str, int]]:
    """The allocations of a consumer after the moves.

    A unit whose source has nothing allocated has gone already. So the moves
    can be made again.

    :param allocated: all that the consumer has
    :raises Conflict: the source has another amount than the moves; names it
    """
    amounts = collections.Counter(
        {
            MovedUnit(rp_uuid, resource_class): amount
            for rp_uuid, of_provider in allocated.items()
            for resource_class, amount in of_provider.items()
        }
    )
    by_source = collections.defaultdict(list)
    for move in moves:
        by_source[move.source].append(move.target)
    for source, targets in by_source.items():
        if not amounts[source]:
            continue
        if amounts[source] != len(targets):
            raise exceptions.Conflict(
                f'Placement has {amounts[source]} {source.resource_class} of '
                f'provider {source.rp_uuid} allocated to it, and its ARQs '
                f'have {len(targets)}: correct that with "openstack resource '
                'provider allocation set", or delete the server'
            )
        del amounts[source]
        amounts.update(targets)
    result: dict[str, dict[str, int]] = {}
    for unit, amount in amounts.items():
        if amount:
            result.setdefault(unit.rp_uuid, {})[unit.resource_class] = amount
    return result
