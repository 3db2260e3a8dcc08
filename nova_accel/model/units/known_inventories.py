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

"""Why the units that nova-scheduler knows of are not free."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Set

from nova_accel.model.cards import card_slice
from nova_accel.model.cards import card_slices
from nova_accel.model.units import explanation
from nova_accel.model.units import unit_changes
from nova_accel.model.units import unit_state

_IN_USE = unit_state.MEANINGS[unit_state.UnitState.USED].public
_NOT_CLEAN = unit_state.MEANINGS[unit_state.UnitState.BEING_CLEANED].public


def build(
    deployables: Iterable[unit_changes.ChangedDeployable],
    claimed: Mapping[str, Mapping[str, int]],
    silent: frozenset[str],
    taken: Mapping[str, Set[card_slice.CardSlice]],
    unpublished: frozenset[str] = frozenset(),
) -> list[explanation.Inventory]:
    """The inventories of the deployables' providers, without their devices.

    The reasons are in the words for tenants. Units that are claimed and not
    yet bound are in use.

    :param claimed: provider -> resource class -> units
    :param silent: the names of the hosts that do not report
    :param unpublished: the names of those of which Placement lacks the last
        change
    :param taken: provider of a card of many shapes -> what servers have of it
    """
    units: dict[tuple[str, str, str], dict[str | None, int]] = {}
    traits: dict[tuple[str, str, str], frozenset[str]] = {}
    # A host decides how many deployables and slices there are, so each is
    # looked at once.
    whys: dict[tuple[str, str, str], str] = {}
    for each in deployables:
        key = each.hostname, each.rp_uuid, each.resource_class
        amounts = units.get(key)
        if amounts is None:
            amounts = units[key] = {}
            traits[key] = each.traits
        elif traits[key] is not each.traits:
            traits[key] |= each.traits
        if each.free > 0:
            amounts[None] = amounts.get(None, 0) + each.free
        if each.in_use > 0:
            amounts[_IN_USE] = amounts.get(_IN_USE, 0) + each.in_use
        rest = each.total - each.in_use - each.free
        if rest > 0:
            if not each.unusable and key not in whys:
                whys[key] = _why(each, taken.get(each.rp_uuid, frozenset()))
            why = each.unusable or whys[key]
            amounts[why] = amounts.get(why, 0) + rest
    found = []
    for key, amounts in units.items():
        hostname, rp_uuid, resource_class = key
        _claim(amounts, claimed.get(rp_uuid, {}).get(resource_class, 0))
        found.append(
            explanation.Inventory(
                hostname,
                rp_uuid,
                resource_class,
                traits[key],
                (),
                amounts,
                hostname in silent,
                is_unpublished=hostname in unpublished,
            )
        )
    return found


def _why(
    deployable: unit_changes.ChangedDeployable,
    taken: Set[card_slice.CardSlice],
) -> str:
    """Why units of a device that works are neither free nor in use."""
    for each in deployable.slices if taken else ():
        return card_slices.obstacle(each, taken)
    return _NOT_CLEAN


def _claim(amounts: dict[str | None, int], claimed: int) -> None:
    """Have free units be in use."""
    taken = min(claimed, amounts.get(None, 0))
    if taken:
        amounts[None] -= taken
        if not amounts[None]:
            del amounts[None]
        amounts[_IN_USE] = amounts.get(_IN_USE, 0) + taken
