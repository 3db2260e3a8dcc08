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

"""Hosts whose servers may move so that others find room.

A host has a board of eight joined GPUs, cards of many shapes, or functions
that are alike.
"""

from collections.abc import Collection
from collections.abc import Iterable
from typing import Any

from nova_accel.model.cards import card_slice
from nova_accel.model.fleet import room_guest
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from nova_accel.model.units import host_fit
from nova_accel.model.units import known_pool
from unit.model import boards
from unit.model.cards import slices

WHOLE, HALF, EIGHTH = 'CUSTOM_WHOLE', 'CUSTOM_HALF', 'CUSTOM_EIGHTH'

#: Class -> the slices of a card: whole, two halves or seven eighths.
OFFERED = {
    WHOLE: [slices.WHOLE],
    HALF: [slices.eighths('mig:3g.40gb', start, 4) for start in (0, 4)],
    EIGHTH: [slices.eighths('mig:1g.10gb', start, 1) for start in range(7)],
}


def groups(size: int) -> tuple[device_profile.Group, ...]:
    """The groups of a server with so many joined GPUs, by their pools."""
    if size == 1:
        return (device_profile.Group({'PGPU': 1}),)
    return tuple(
        device_profile.Group({'PGPU': 2}, link='nvlink')
        for _pair in range(size // 2)
    )


def pools(hostname: str, used: Collection[int] = ()) -> host_fit.Pools:
    """Those of a board of which some GPUs are not free."""
    of_provider: dict[str, list[free_units.FreeUnits]] = {}
    for each in boards.deployables(hostname, used):
        of_provider.setdefault(each.rp_uuid, []).append(each.units())
    return {
        rp_uuid: known_pool.KnownPool(units, {}, {}, hostname)
        for rp_uuid, units in of_provider.items()
    }


def guest(
    uuid: str, hostname: str, numbers: Collection[int], trouble: int = 0
) -> room_guest.Guest:
    """A server that has some GPUs of a board."""
    held: dict[str, dict[str, free_units.HeldUnits]] = {}
    for number in numbers:
        held.setdefault(f'{hostname}-pair-{number // 2}', {})[
            f'{hostname}-{number}'
        ] = free_units.HeldUnits(1)
    return room_guest.Guest(
        uuid, hostname, groups(len(numbers)), held, trouble
    )


def functions(amount: int, **fields: Any) -> device_profile.Group:
    """The group of a server with so many functions."""
    return device_profile.Group({'CUSTOM_QAT': amount}, **fields)


def function_pools(hostname: str, *nodes: tuple[int, int]) -> host_fit.Pools:
    """One pool of functions.

    :param nodes: for each NUMA node, how many are free, and how many there are
    """
    return {
        f'{hostname}-qat': known_pool.KnownPool(
            [
                free_units.FreeUnits(
                    f'{hostname}-{number}',
                    f'{hostname}-qat',
                    'CUSTOM_QAT',
                    frozenset(),
                    free,
                    total,
                    free_units.sets_of(number, f'{hostname}-device-{number}'),
                )
                for number, (free, total) in enumerate(nodes)
            ],
            {},
            {},
        )
    }


def function_guest(
    uuid: str,
    hostname: str,
    amount: int,
    node: int = 0,
    trouble: int = 0,
    **fields: Any,
) -> room_guest.Guest:
    """A server that has functions of a NUMA node."""
    return room_guest.Guest(
        uuid,
        hostname,
        (functions(amount, **fields),),
        {
            f'{hostname}-qat': {
                f'{hostname}-{node}': free_units.HeldUnits(amount)
            }
        },
        trouble,
    )


def card_pools(
    hostname: str, *cards: Iterable[card_slice.CardSlice]
) -> host_fit.Pools:
    """The pools of cards of many shapes.

    :param cards: for each of them, what is taken of it
    """
    return {
        f'{hostname}-card-{number}': known_pool.KnownPool(
            _card(hostname, number, frozenset(taken)), {}, {}
        )
        for number, taken in enumerate(cards)
    }


def _card(
    hostname: str, number: int, taken: frozenset[card_slice.CardSlice]
) -> list[free_units.FreeUnits]:
    return [
        free_units.FreeUnits(
            f'{hostname}-{number}-{resource_class}',
            f'{hostname}-card-{number}',
            resource_class,
            frozenset(),
            sum(not any(map(each.excludes, taken)) for each in offered),
            len(offered),
            free_units.sets_of(0, f'{hostname}-device-{number}'),
            slices=tuple(offered),
            taken=tuple(each for each in offered if each in taken),
        )
        for resource_class, offered in OFFERED.items()
    ]


def card_guest(
    uuid: str,
    hostname: str,
    resource_class: str,
    place: int = 0,
    card: int = 0,
    trouble: int = 0,
) -> room_guest.Guest:
    """A server that has a unit of a card, of those of a class."""
    return room_guest.Guest(
        uuid,
        hostname,
        (device_profile.Group({resource_class: 1}),),
        {
            f'{hostname}-card-{card}': {
                f'{hostname}-{card}-{resource_class}': free_units.HeldUnits(
                    1, (OFFERED[resource_class][place],)
                )
            }
        },
        trouble,
    )
