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
it does not know the reason. So the groups that we add are checked on their own
first.
"""

from collections.abc import Sequence

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler import request_filter

from nova_accel.model import naming
from nova_accel.scheduler import candidates
from nova_accel.scheduler import ownership


@request_filter.trace_request_filter
def explain_shortage(
    ctxt: nova_context.RequestContext, request_spec: 'objects.RequestSpec'
) -> bool:
    """Refuse a request whose accelerators no host has free.

    :returns: whether the request has accelerators
    :raises RequestFilterFailed: the reason names the device profile, the
        groups and what they ask for
    """
    groups = ownership.our_groups(request_spec)
    if not groups:
        return False
    policy = ownership.extra_specs(request_spec).get('group_policy', 'none')
    found = candidates.ask(ctxt, groups, policy, limit=1)
    # Without an answer here Nova gets none either, and says so itself.
    if found is None or found.requests:
        return True
    unmet = _unmet(ctxt, groups)
    names = {
        ownership.profile_name(request_spec, group)
        for group in unmet or groups
    }
    raise exception.RequestFilterFailed(
        reason=f'device profile {", ".join(sorted(names))}: '
        + (
            f'no device has {_names(unmet)} free: {_details(unmet)}'
            if unmet
            else f'no host has {_names(groups)} free '
            f'together: {_details(groups)}'
        )
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


def _names(groups: 'Sequence[objects.RequestGroup]') -> str:
    """The groups' ids.

    They come before the details, because Nova cuts a fault after 255
    characters.
    """
    return ', '.join(group.requester_id for group in groups)


def _details(groups: 'Sequence[objects.RequestGroup]') -> str:
    """``FPGA=1, CUSTOM_A required, CUSTOM_B forbidden; VGPU=1``"""
    return '; '.join(
        ', '.join(
            [
                *(
                    f'{resource_class}={amount}'
                    for resource_class, amount in sorted(
                        group.resources.items()
                    )
                ),
                *(
                    f'{trait} required'
                    for trait in sorted(
                        group.required_traits - {naming.OWNERSHIP_TRAIT}
                    )
                ),
                *(
                    f'{trait} forbidden'
                    for trait in sorted(group.forbidden_traits)
                ),
            ]
        )
        for group in groups
    )
