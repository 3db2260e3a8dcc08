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

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import json
from typing import NamedTuple

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler import request_filter
from oslo_db import exception as db_exc
from oslo_log import log as logging
from sqlalchemy import exc as sa_exc

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db import device_profile as device_profile_db
from nova_accel.db.sql import time_limits
from nova_accel.model import naming
from nova_accel.model.links import link_division
from nova_accel.model.profiles import device_profile
from nova_accel.scheduler import bitstream_region
from nova_accel.scheduler import ownership
from nova_accel.scheduler import profile_groups
from nova_accel.scheduler import set_group
from nova_accel.scheduler import shortage
from nova_accel.scheduler import traits
from nova_accel.scheduler import unified_limits

LOG = logging.getLogger(__name__)

CONF = conf.CONF

_GROUP_POLICIES = frozenset({'none', 'isolate'})

#: For how many profiles the groups are remembered.
_REMEMBERED = 256


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
    :raises RequestFilterFailed: the reason names the device profile
    """
    extra_specs = ownership.extra_specs(request_spec)
    parts = ownership.flavor_parts(extra_specs)
    is_exposed = _keep_away(ctxt, request_spec, parts)
    served = _served(request_spec, extra_specs)
    has_sets = [_merge(ctxt, request_spec, profile) for profile in served]
    if has_sets and extra_specs.get('group_policy') not in _GROUP_POLICIES:
        _set_group_policy(request_spec, parts, any(has_sets))
    return is_exposed or bool(served)


def _keep_away(
    ctxt: nova_context.RequestContext,
    request_spec: 'objects.RequestSpec',
    parts: Sequence[ownership.FlavorPart],
) -> bool:
    """Have groups that are not ours forbid our trait.

    :returns: whether there are some that our providers could serve
    """
    suffixes = ownership.exposed_suffixes(parts) if parts else []
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
    return True


def _served(
    request_spec: 'objects.RequestSpec', extra_specs: Mapping[str, str]
) -> list[_Served]:
    """The profiles whose groups we serve: the flavor's and the ports'.

    :raises RequestFilterFailed: the flavor has two profiles
    """
    keys = ownership.profile_keys(extra_specs)
    if len(keys) > 1:
        raise exception.RequestFilterFailed(
            reason=(
                f'the flavor has both {" and ".join(keys)}, it can have '
                'one of them'
            )
        )
    served = [
        _Served(extra_specs[key], '', key == device_profile.CYBORG_FLAVOR_KEY)
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
        asked = _placeable(ctxt, _load(served.name), served)
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


def _load(name: str) -> tuple[device_profile.Group, ...]:
    try:
        with time_limits.brief():
            groups = device_profile_db.stored_groups(name)
    except (db_exc.DBError, sa_exc.SQLAlchemyError) as error:
        LOG.exception('No answer from the database of accelerators')
        raise exceptions.ServiceUnavailable.for_all(
            'the database of accelerators gave no answer'
        ) from error
    if groups is None:
        raise exceptions.NotFound('there is none of that name')
    return _parsed(groups)


@functools.lru_cache(_REMEMBERED)
def _parsed(groups: str) -> tuple[device_profile.Group, ...]:
    """The groups; the same objects as long as the profile has the same."""
    return link_division.off_fabric(
        device_profile.parse_groups(json.loads(groups))
    )


def _placeable(
    ctxt: nova_context.RequestContext,
    groups: Sequence[device_profile.Group],
    served: _Served,
) -> profile_groups.Asked:
    """All that Placement is asked for, with traits that it knows.

    Traits that are forbidden and that no provider has are left out.
    """
    groups = bitstream_region.require(ctxt, groups)
    asked = (
        # Nova's client for Cyborg knows whole groups alone.
        profile_groups.whole(groups, served.port_uuid)
        if served.replace
        else profile_groups.placeable(groups)
    )
    if naming.OWNERSHIP_TRAIT in asked.forbidden:
        raise exceptions.InvalidDeviceProfile(
            f'it forbids {naming.OWNERSHIP_TRAIT}, which every accelerator has'
        )
    known = traits.find_or_create(ctxt, asked.traits)
    unknown = asked.required - known
    if unknown:
        raise exceptions.NotFound(
            'no accelerator has a trait that it requires, which may be '
            f'misspelt: {", ".join(sorted(unknown))}'
        )
    _check_sets(asked, known)
    if asked.forbidden <= known:
        return asked
    return dataclasses.replace(
        asked,
        groups=[
            each._replace(
                group=dataclasses.replace(
                    each.group, forbidden=each.group.forbidden & known
                )
            )
            for each in asked.groups
        ],
    )


def _check_sets(asked: profile_groups.Asked, known: frozenset[str]) -> None:
    """:raises NotFound: no set of a host has ever been able to join so many"""
    for trait, members in asked.link_traits.items():
        if trait in known:
            continue
        groups = [
            each.group for each in asked.groups if each.requester_id in members
        ]
        [link] = {group.link for group in groups if group.link}
        raise exceptions.NotFound(
            f'no host has {link_division.describe(link, groups)}'
        )


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
