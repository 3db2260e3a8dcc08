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

"""The request-spec filter: device profiles become request groups.

It sees every request that is scheduled (boot, unshelve, resize, cold and live
migration, evacuation; not a rebuild). It changes nova-scheduler's own copy of
the request, which no one saves.
"""

from collections.abc import Sequence
from typing import NamedTuple

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler import request_filter
from oslo_log import log as logging

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import extra_specs
from nova_accel.model.profiles import flavor_advice
from nova_accel.scheduler import alternatives
from nova_accel.scheduler import native_groups
from nova_accel.scheduler import ownership
from nova_accel.scheduler import requested_profile
from nova_accel.scheduler import scheduled_server
from nova_accel.scheduler import set_group
from nova_accel.scheduler import shortage
from nova_accel.scheduler import traits
from nova_accel.scheduler import unified_limits

LOG = logging.getLogger(__name__)

CONF = conf.CONF

_GROUP_POLICIES = frozenset({'none', 'isolate'})


class _Served(NamedTuple):
    """A device profile of the flavor, or of a port.

    ``replace`` says that Nova has put the same groups into the request,
    without our trait.
    """

    name: str
    port_uuid: str = ''
    replace: bool = False


def merge_device_profile(
    ctxt: nova_context.RequestContext, request_spec: 'objects.RequestSpec'
) -> bool:
    """Add the groups of the flavor's device profile to the request.

    If we replace Cyborg, the groups of the ports' profiles are added, too. All
    other groups are kept away from our providers, with any flavor.

    :returns: whether there was anything to do
    :raises RequestFilterFailed: the reason names the device profile, or the
        flavor's extra spec that is wrong
    """
    _check_keys(ctxt, request_spec)
    parts = ownership.flavor_parts(ownership.extra_specs(request_spec))
    is_exposed = _keep_away(ctxt, request_spec, parts)
    _choose(ctxt, request_spec)
    served = _served(request_spec)
    has_sets = [_merge(ctxt, request_spec, profile) for profile in served]
    policy = ownership.extra_specs(request_spec).get('group_policy')
    if has_sets and policy not in _GROUP_POLICIES:
        _set_group_policy(request_spec, parts, any(has_sets))
    return is_exposed or bool(served)


def _check_keys(
    ctxt: nova_context.RequestContext, request_spec: 'objects.RequestSpec'
) -> None:
    """Refuse a flavor whose extra specs are nearly ours.

    A server that got such a flavor before has no accelerators, and can move.

    :raises RequestFilterFailed: the reason names the extra spec
    """
    specs = ownership.extra_specs(request_spec)
    for wrong in flavor_advice.misspelt(specs):
        server = scheduled_server.find(ctxt, request_spec)
        if server is not None and server.flavor.extra_specs == specs:
            return
        raise exception.RequestFilterFailed(
            reason=(
                f'the flavor has {wrong}: ask an administrator to correct it'
            )
        )


def _choose(
    ctxt: nova_context.RequestContext, request_spec: 'objects.RequestSpec'
) -> None:
    """Have the flavor name one device profile, if it names several.

    :raises RequestFilterFailed: see :func:`alternatives.choose`
    :raises TooManyInstances: likewise
    """
    value = ownership.extra_specs(request_spec).get(
        device_profile.FLAVOR_KEY, ''
    )
    if ',' not in value:
        return
    try:
        name = alternatives.choose(
            ctxt, request_spec, extra_specs.alternatives(value)
        )
    except exceptions.AcceleratorError as error:
        raise exception.RequestFilterFailed(
            reason=f'device profiles {value}: {error.public}'
        ) from error
    ownership.add_extra_specs(request_spec, {device_profile.FLAVOR_KEY: name})


def _keep_away(
    ctxt: nova_context.RequestContext,
    request_spec: 'objects.RequestSpec',
    parts: Sequence[ownership.FlavorPart],
) -> bool:
    """Have groups that are not ours forbid our trait.

    :returns: whether there are some that our providers could serve
    :raises RequestFilterFailed: see :func:`native_groups.check`
    """
    suffixes = ownership.exposed_of_flavor(parts) if parts else {}
    groups = ownership.exposed_groups(request_spec)
    if not suffixes and not groups:
        return False
    traits.ensure(ctxt, naming.OWNERSHIP_TRAIT)
    for group in groups:
        group.forbidden_traits.add(naming.OWNERSHIP_TRAIT)
    if suffixes:
        ownership.add_extra_specs(
            request_spec,
            {
                f'trait{suffix}:{naming.OWNERSHIP_TRAIT}': 'forbidden'
                for suffix in suffixes
            },
        )
        native_groups.check(ctxt, suffixes.values())
    return True


def _served(request_spec: 'objects.RequestSpec') -> list[_Served]:
    """The profiles whose groups we serve: the flavor's and the ports'.

    :raises RequestFilterFailed: the flavor has two profiles
    """
    specs = ownership.extra_specs(request_spec)
    keys = ownership.profile_keys(specs)
    if len(keys) > 1:
        raise exception.RequestFilterFailed(
            reason=(
                f'the flavor has both {" and ".join(keys)}, it can have '
                'one of them'
            )
        )
    served = [
        _Served(specs[key], '', key == device_profile.CYBORG_FLAVOR_KEY)
        for key in keys
    ]
    for port_uuid, name in ownership.port_profiles(request_spec).items():
        served.append(_Served(name, port_uuid, replace=True))
    return [
        each
        for each in served
        if not each.replace or CONF.nova_accel.cyborg_compatible
    ]


def _merge(
    ctxt: nova_context.RequestContext,
    request_spec: 'objects.RequestSpec',
    served: _Served,
) -> bool:
    """Add the groups of a profile.

    :returns: whether some of them are joined by groups of sets
    """
    try:
        asked = requested_profile.read(
            ctxt, served.name, served.replace, served.port_uuid
        )
        _add(request_spec, asked.request_groups(), served.replace)
    except exceptions.AcceleratorError as error:
        LOG.warning(
            'Device profile %s cannot be scheduled: %s', served.name, error
        )
        raise exception.RequestFilterFailed(
            reason=f'device profile {served.name}: {error.public}'
        ) from error
    for each in asked.sets:
        set_group.join(request_spec, [each.requester_id, *each.members])
    return bool(asked.sets)


def _add(
    request_spec: 'objects.RequestSpec',
    groups: 'Sequence[objects.RequestGroup]',
    replace: bool,
) -> None:
    """Add groups to those of the request, unless it has them already.

    :param replace: whether the groups replace present ones with the same id
    :raises Conflict: a present group with the same id is not ours
    """
    present = request_spec.requested_resources
    if present is None:
        request_spec.requested_resources = []
        present = request_spec.requested_resources
    places = {group.requester_id: at for at, group in enumerate(present)}
    for group in groups:
        place = places.get(group.requester_id)
        if place is None:
            # Nova's list would check what our_group has made.
            list.append(present, group)
        elif replace:
            present[place] = group
        elif not ownership.is_ours(present[place]):
            raise exceptions.Conflict.for_all(
                f'the request has a group {group.requester_id} already, '
                'which is not of this profile'
            )


def check_accelerators(
    ctxt: nova_context.RequestContext, request_spec: 'objects.RequestSpec'
) -> bool:
    """Refuse a request over a project's limits, or that no host can serve.

    :returns: whether the request has accelerators
    :raises TooManyInstances: see :func:`unified_limits.enforce`
    :raises RequestFilterFailed: see :func:`unified_limits.enforce` and
        :func:`shortage.explain`
    """
    groups = ownership.our_groups(request_spec)
    if not groups:
        return False
    if alternatives.is_chosen(request_spec, groups):
        return True
    unified_limits.enforce(ctxt, request_spec, groups)
    shortage.explain(ctxt, request_spec, groups)
    return True


def _set_group_policy(
    request_spec: 'objects.RequestSpec',
    parts: Sequence[ownership.FlavorPart],
    has_sets: bool,
) -> None:
    """Set a group policy, without which Placement refuses numbered groups.

    Nova sets one itself, unless the flavor has two numbered groups.
    """
    numbered = {part.suffix for part in parts if part.suffix}
    # With sets, Nova would log a warning and do the same.
    if has_sets or len(numbered) > 1:
        ownership.add_extra_specs(request_spec, {'group_policy': 'none'})


def register() -> None:
    """Make nova-scheduler call our filters, once for each request.

    Nova has no option for this. The groups are merged first, so that Nova's
    isolation of aggregates (``[scheduler]
    enable_isolated_aggregate_filtering``) sees the traits that a device
    profile requires. Keystone and Placement are asked last, when nothing else
    refuses the request. Filters of an earlier load of this module are
    replaced.
    """
    ours = {
        (filter_.__module__, filter_.__name__)
        for filter_ in (merge_device_profile, check_accelerators)
    }
    request_filter.ALL_REQUEST_FILTERS[:] = [
        merge_device_profile,
        *(
            present
            for present in request_filter.ALL_REQUEST_FILTERS
            if (present.__module__, present.__name__) not in ours
        ),
        check_accelerators,
    ]


register()
