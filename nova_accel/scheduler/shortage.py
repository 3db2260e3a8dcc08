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

from collections.abc import Sequence

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler import request_filter

from nova_accel.model import shortage_reason
from nova_accel.scheduler import asked_groups
from nova_accel.scheduler import candidates
from nova_accel.scheduler import known_stock
from nova_accel.scheduler import ownership
from nova_accel.scheduler import traits

#: Nova cuts a fault after so many characters.
_MAX_FAULT = 255

#: Even if the names of profiles fill a fault, the log has more.
_LEAST_ROOM = 80


@request_filter.trace_request_filter
def explain_shortage(
    ctxt: nova_context.RequestContext, request_spec: 'objects.RequestSpec'
) -> bool:
    """Refuse a request whose accelerators no host has free.

    :returns: whether the request has accelerators
    :raises RequestFilterFailed: the reason names the device profile, the
        groups, the cause and the nearest miss
    """
    groups = ownership.our_groups(request_spec)
    if not groups:
        return False
    policy = ownership.extra_specs(request_spec).get('group_policy', 'none')
    if not _is_suspected(groups, policy):
        return True
    found = candidates.ask(ctxt, groups, policy, limit=1)
    if found is None:
        # Nova gets no answer either, and says so itself. One reason is a trait
        # that Placement had, and has no more.
        traits.forget()
        return True
    if found.requests:
        return True
    unmet = _unmet(ctxt, groups)
    names = {
        ownership.profile_name(request_spec, group)
        for group in unmet or groups
    }
    beginning = f'device profile {", ".join(sorted(names))}: '
    raise exception.RequestFilterFailed(
        reason=beginning + _why(unmet, groups, _room(beginning))
    )


def _room(beginning: str) -> int:
    """How many more characters a fault may have, see :data:`_MAX_FAULT`."""
    failed = exception.RequestFilterFailed(reason=beginning)
    fault = exception.NoValidHost(reason=failed.message)
    return max(_LEAST_ROOM, _MAX_FAULT - len(str(fault)))


def _why(
    unmet: 'Sequence[objects.RequestGroup]',
    groups: 'Sequence[objects.RequestGroup]',
    max_length: int,
) -> str:
    """Why some groups cannot be met alone, or else all groups together."""
    asked = {
        group.requester_id: asked_groups.of(group) for group in unmet or groups
    }
    known = known_stock.current()
    if known is None:
        return (
            f'no device has {", ".join(asked)} free'
            if unmet
            else f'no host has {", ".join(asked)} free together'
        )
    inventories = known.inventories(
        {name for group in asked.values() for name in group.resources}
    )
    tell = shortage_reason.alone if unmet else shortage_reason.together
    return tell(asked, inventories, max_length)


def _is_suspected(
    groups: 'Sequence[objects.RequestGroup]', policy: str
) -> bool:
    """Whether no host seems to have enough; not if nothing is known."""
    known = known_stock.current(known_stock.FRESH_S)
    return known is not None and not known.serves(
        map(asked_groups.of, groups),
        is_isolated=policy == 'isolate',
    )


def _unmet(
    ctxt: nova_context.RequestContext,
    groups: 'Sequence[objects.RequestGroup]',
) -> 'list[objects.RequestGroup]':
    """The groups that no device of any host can serve, each on its own."""
    unmet = []
    for group in groups:
        found = candidates.ask(ctxt, [group], limit=1)
        if found is not None and not found.requests:
            unmet.append(group)
    return unmet
