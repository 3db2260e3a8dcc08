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

"""A stored device profile, as Placement is asked for it."""

from collections.abc import Sequence
import dataclasses
import functools
import json

from nova import context as nova_context
from oslo_db import exception as db_exc
from oslo_log import log as logging
from sqlalchemy import exc as sa_exc

from nova_accel import exceptions
from nova_accel.db import device_profile as device_profile_db
from nova_accel.db.sql import time_limits
from nova_accel.model import naming
from nova_accel.model.links import link_division
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import link_shortage
from nova_accel.scheduler import bitstream_region
from nova_accel.scheduler import known_stock
from nova_accel.scheduler import profile_groups
from nova_accel.scheduler import traits

LOG = logging.getLogger(__name__)

#: For how many profiles the groups are remembered.
_REMEMBERED = 256


def read(
    ctxt: nova_context.RequestContext,
    name: str,
    is_whole: bool = False,
    port_uuid: str = '',
) -> profile_groups.Asked:
    """All that Placement is asked for, with traits that it knows.

    Traits that are forbidden and that no provider has are left out.

    :param is_whole: whether Nova's client for Cyborg has to know the groups,
        see :func:`profile_groups.whole`
    :param port_uuid: the port that has the profile, empty for the flavor's
    :raises NotFound: there is no such profile, or no accelerator could ever
        serve one of its groups
    :raises InvalidDeviceProfile: it is malformed, or forbids all accelerators
    :raises ServiceUnavailable: the database gives no answer
    :raises RequestFilterFailed: Placement gives no usable answer
    """
    groups = bitstream_region.require(ctxt, _load(name))
    asked = (
        profile_groups.whole(groups, port_uuid)
        if is_whole
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


def _load(name: str) -> Sequence[device_profile.Group]:
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


def _check_sets(asked: profile_groups.Asked, known: frozenset[str]) -> None:
    """:raises NotFound: no set of a host has ever been able to join so many"""
    for trait, members in asked.link_traits.items():
        if trait in known:
            continue
        groups = [
            each.group for each in asked.groups if each.requester_id in members
        ]
        [link] = {group.link for group in groups if group.link}
        words = f'no host has {link_division.describe(link, groups)}'
        stock = known_stock.current()
        why = stock and link_shortage.find(groups, stock.links())
        raise exceptions.NotFound(f'{words}: {why}' if why else words)
