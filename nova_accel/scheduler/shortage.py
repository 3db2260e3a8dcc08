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

"""Tell which groups of a device profile cannot be met, and why.

Nova asks Placement once for all that a server needs. If there is no candidate,
it does not know the reason. So Placement is asked about the groups that we add
alone, if they seem to be too many by what is known of all hosts. Otherwise it
is not asked a second time.
"""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from nova import context as nova_context
from nova import exception
from nova import objects

from nova_accel.model import naming
from nova_accel.model.links import link_division
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import known_units
from nova_accel.model.units import link_shortage
from nova_accel.model.units import shortage_reason
from nova_accel.scheduler import candidates
from nova_accel.scheduler import known_stock
from nova_accel.scheduler import our_group
from nova_accel.scheduler import ownership
from nova_accel.scheduler import traits

#: Nova cuts a fault after so many characters.
_MAX_FAULT = 255

#: Even if the names of profiles fill a fault, the log has more.
_LEAST_ROOM = 80


def explain(
    ctxt: nova_context.RequestContext,
    request_spec: 'objects.RequestSpec',
    groups: 'Sequence[objects.RequestGroup]',
) -> None:
    """Refuse a request whose accelerators no host has free.

    :param groups: the groups of the request that are ours
    :raises RequestFilterFailed: the reason names the device profile, the
        groups, the cause and the nearest miss
    """
    if not _is_suspected(request_spec, groups):
        return
    wishes = _wishes(request_spec)
    unmet = _without_room(wishes)
    if not unmet:
        found = _ask(ctxt, wishes, _policy(request_spec))
        if found is None:
            # Nova gets no answer either, and says so itself. One reason is a
            # trait that Placement had, and has no more.
            traits.forget()
            unmet = _unheard_of(wishes)
            if not unmet:
                return
        elif found:
            return
        else:
            unmet = _unmet(ctxt, wishes)
    names = {
        ownership.profile_name(request_spec, wish.groups[0])
        for wish in unmet or wishes
    }
    beginning = f'device profile {", ".join(sorted(names))}: '
    raise exception.RequestFilterFailed(
        reason=beginning + _why(unmet, wishes, _room(beginning))
    )


class _Wish(NamedTuple):
    """A group, or groups that are joined by the provider of a set."""

    groups: 'tuple[objects.RequestGroup, ...]'
    of_set: 'objects.RequestGroup | None' = None

    @property
    def all(self) -> 'list[objects.RequestGroup]':
        return [*self.groups, *([] if self.of_set is None else [self.of_set])]

    @property
    def asked(self) -> dict[str, device_profile.Group]:
        """Id -> group of the profile, or part of one."""
        return {
            group.requester_id: our_group.to_group(group)
            for group in self.groups
        }

    @property
    def is_joined(self) -> bool:
        return any(group.link for group in self.asked.values())


def _wishes(request_spec: 'objects.RequestSpec') -> list[_Wish]:
    """All wishes of the request; each of them may fail on its own."""
    groups = {
        group.requester_id: group
        for group in ownership.our_groups(request_spec)
    }
    wishes = []
    for of_set in ownership.our_sets(request_spec):
        members: set[str] = set().union(
            *(
                subtree
                for subtree in request_spec.same_subtree
                if of_set.requester_id in subtree
            )
        )
        wishes.append(
            _Wish(
                tuple(
                    groups.pop(requester_id)
                    for requester_id in list(groups)
                    if requester_id in members
                ),
                of_set,
            )
        )
    return [*wishes, *(_Wish((group,)) for group in groups.values())]


def _ask(
    ctxt: nova_context.RequestContext,
    wishes: Sequence[_Wish],
    policy: str | None,
) -> list[dict[str, Any]] | None:
    return candidates.ask(
        ctxt,
        [group for wish in wishes for group in wish.all],
        policy,
        limit=1,
        same_subtree=[
            [group.requester_id for group in wish.all]
            for wish in wishes
            if wish.of_set is not None
        ],
    )


def _room(beginning: str) -> int:
    """How many more characters a fault may have, see :data:`_MAX_FAULT`."""
    failed = exception.RequestFilterFailed(reason=beginning)
    fault = exception.NoValidHost(reason=failed.message)
    return max(_LEAST_ROOM, _MAX_FAULT - len(str(fault)))


def _why(
    unmet: Sequence[_Wish], wishes: Sequence[_Wish], max_length: int
) -> str:
    """Why some wishes cannot be met alone, or else all of them together."""
    known = known_stock.current()
    asked = {
        name: group
        for wish in unmet or wishes
        for name, group in wish.asked.items()
    }
    if known is None:
        return (
            f'no device has {", ".join(asked)} free'
            if unmet
            else f'no host has {", ".join(asked)} free together'
        )
    inventories = known.inventories(
        {name for group in asked.values() for name in group.resources}
    )
    if not unmet:
        return shortage_reason.together(asked, inventories, max_length)
    return shortage_reason.alone(
        {name: group for name, group in asked.items() if group.link is None},
        inventories,
        max_length,
        {
            _name(wish): _unmet_join(tuple(wish.asked.values()), known)
            for wish in unmet
            if wish.is_joined
        },
    )


def _name(wish: _Wish) -> str:
    """The groups of a joined wish, without the numbers of their parts."""
    if wish.of_set is None:
        return str(wish.groups[0].requester_id)
    return str(wish.of_set.requester_id).replace('_set', '', 1)


def _unmet_join(
    groups: Sequence[device_profile.Group],
    known: known_units.KnownUnits,
) -> shortage_reason.Unmet:
    [link] = {group.link for group in groups if group.link}
    shortage = link_shortage.find(groups, known.links())
    if shortage is None:
        placed = link_shortage.find(groups, known.links(published=True))
        shortage = (
            shortage_reason.RESERVED if placed else shortage_reason.CLAIMED
        )
    return shortage_reason.Unmet(
        link_division.describe(link, groups), shortage
    )


def _is_suspected(
    request_spec: 'objects.RequestSpec',
    groups: 'Sequence[objects.RequestGroup]',
) -> bool:
    """Whether no host seems to have enough; not if nothing is known."""
    known = known_stock.current(known_stock.FRESH_S)
    return known is not None and not known.serves(
        [our_group.to_group(group) for group in groups],
        # A group alone has no others to be isolated from.
        is_isolated=len(groups) > 1 and _policy(request_spec) == 'isolate',
    )


def _policy(request_spec: 'objects.RequestSpec') -> str:
    return ownership.extra_specs(request_spec).get('group_policy', 'none')


def _without_room(wishes: Sequence[_Wish]) -> list[_Wish]:
    """The wishes for shapes that no card can take now.

    Placement counts the shares of cards. It learns only later which shapes
    exclude each other.
    """
    return _known_to_lack(
        wishes,
        lambda known, group: (
            any(map(naming.is_shape_class, group.resources))
            and not known.may_serve([group])
        ),
    )


def _unheard_of(wishes: Sequence[_Wish]) -> list[_Wish]:
    """The wishes for a resource class that no host reports.

    Placement answers no question with a class that it never had.
    """
    return _known_to_lack(
        wishes,
        lambda known, group: (
            not all(known.inventories({name}) for name in group.resources)
        ),
    )


def _known_to_lack(
    wishes: Sequence[_Wish],
    lacks: Callable[[known_units.KnownUnits, device_profile.Group], bool],
) -> list[_Wish]:
    """The wishes with a group that all hosts lack, by what is known."""
    known = known_stock.current()
    return [
        wish
        for wish in wishes
        if known is not None
        and any(lacks(known, group) for group in wish.asked.values())
    ]


def _unmet(
    ctxt: nova_context.RequestContext, wishes: Sequence[_Wish]
) -> list[_Wish]:
    """The wishes that no host can serve, each on its own."""
    unmet = []
    for wish in wishes:
        found = _ask(ctxt, [wish], 'none' if wish.of_set else None)
        if found == []:
            unmet.append(wish)
    return unmet
