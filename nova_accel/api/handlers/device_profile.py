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

"""``/device_profiles``."""

from collections.abc import Mapping
from collections.abc import Sequence
import functools
from typing import Any

from oslo_log import log as logging
from oslo_utils import uuidutils
import webob
import webob.exc

from nova_accel import exceptions
from nova_accel.api.compute import prefetching
from nova_accel.api.http import microversion
from nova_accel.api.http import paging
from nova_accel.api.http import representation
from nova_accel.api.http import request
from nova_accel.api.http import warning
from nova_accel.api.schemas import device_profile as schemas
from nova_accel.db import deployable as deployable_db
from nova_accel.db import device_profile as device_profile_db
from nova_accel.model.profiles import device_profile as device_profile_model
from nova_accel.model.profiles import profile_advice
from nova_accel.model.units import link_shortage

LOG = logging.getLogger(__name__)


def list_device_profiles(req: webob.Request) -> webob.Response:
    request.authorize(req)
    query = paging.query(req, device_profile_db.SORT_KEYS)
    names = query.filters.get('name')
    profiles = device_profile_db.get_all(
        None if names is None else names.split(','), query.page
    )
    return query.answer(
        req,
        'device_profiles',
        'device_profiles',
        profiles,
        functools.partial(_to_json, req),
    )


def get_device_profile(req: webob.Request) -> webob.Response:
    """By uuid; from 2.2 also by name."""
    request.authorize(req)
    profile = find(req)
    # Cyborg writes the times of a single profile not as in a list.
    return webob.Response(
        json_body={
            'device_profile': {
                **_to_json(req, profile),
                'created_at': str(profile['created_at']),
                'updated_at': str(profile['updated_at']),
            }
        }
    )


def create_device_profile(req: webob.Request) -> webob.Response:
    context = request.authorize(req)
    body = request.unchecked_json_body(req)
    if not isinstance(body, list) or len(body) != 1:
        raise exceptions.InvalidRequest(
            'Only one device profile allowed per POST request for now.'
        )
    wanted = body[0]
    request.check(wanted, schemas.PROFILE)
    device_profile_model.check_name(wanted['name'])
    groups = device_profile_model.checked_groups(wanted['groups'])
    doubts = _doubts(groups)
    profile = device_profile_db.create(
        name=wanted['name'],
        groups=groups,
        description=wanted.get('description'),
        uuid=wanted.get('uuid'),
    )
    prefetching.order(context, profile)
    return _stored(req, profile, doubts, 201)


def update_device_profile(req: webob.Request) -> webob.Response:
    """Replace all but the name; servers keep the accelerators they have."""
    context = request.authorize(req)
    uuid = request.path_uuid(req, 'uuid')
    wanted = request.json_body(req)
    if wanted.get('uuid') not in (None, uuid):
        raise exceptions.InvalidRequest(
            f'uuid: the body has {wanted["uuid"]}, the path has {uuid}'
        )
    groups = device_profile_model.checked_groups(wanted['groups'])
    doubts = _doubts(groups)
    profile = device_profile_db.update(
        uuid,
        groups,
        wanted.get('description'),
        wanted.get('name'),
    )
    prefetching.order(context, profile)
    return _stored(req, profile, doubts, 200)


def delete_device_profile(req: webob.Request) -> webob.Response:
    request.authorize(req)
    value = req.urlvars['uuid']
    if not uuidutils.is_uuid_like(value):
        for name in value.split(','):
            device_profile_model.check_name(name)
    return _delete(value)


def delete_device_profiles(req: webob.Request) -> webob.Response:
    request.authorize(req)
    value = request.query(req).get('value')
    if not value:
        raise exceptions.InvalidRequest(
            'The argument value is missing: the names of the device profiles '
            'to delete'
        )
    return _delete(value)


def find(req: webob.Request) -> device_profile_db.DeviceProfileRow:
    """The profile of the path's uuid or, from 2.2 on, name.

    :raises NotFound: there is none
    """
    name = req.urlvars['uuid']
    if uuidutils.is_uuid_like(name):
        name = request.path_uuid(req, 'uuid')
    else:
        microversion.require(req, '2.2')
        device_profile_model.check_name(name)
    return device_profile_db.get(name)


def _doubts(raw: Sequence[Mapping[str, str]]) -> list[str]:
    """The parts of the groups that may be mistakes.

    :raises Conflict: one is a mistake
    """
    groups = device_profile_model.parse_groups(raw)
    classes = {name for group in groups for name in group.resources}
    if any(len(group.resources) > 1 for group in groups):
        profile_advice.check_classes(
            groups, deployable_db.get_class_sets(classes)
        )
    found = [*profile_advice.doubts(groups, deployable_db.get_traits(classes))]
    if any(group.link for group in groups):
        found += link_shortage.doubts(
            groups, deployable_db.get_link_sets(classes)
        )
    return found


def _stored(
    req: webob.Request,
    profile: device_profile_db.DeviceProfileRow,
    doubts: Sequence[str],
    status: int,
) -> webob.Response:
    """The answer with a profile, and with what is doubtful about it."""
    for doubt in doubts:
        LOG.warning('Device profile %s: %s', profile['name'], doubt)
    response = webob.Response(status=status, json_body=_to_json(req, profile))
    warning.add(response, doubts)
    return response


def _delete(value: str) -> webob.Response:
    """Delete the profile of a uuid, or those of names, as Cyborg does."""
    if uuidutils.is_uuid_like(value):
        device_profile_db.delete_by_uuid(request.uuids('uuid', [value])[0])
    else:
        device_profile_db.delete_by_names(value.split(','))
    return webob.Response(status=204, content_type=None)


def _to_json(
    req: webob.Request,
    profile: device_profile_db.DeviceProfileRow,
) -> dict[str, Any]:
    return {
        'uuid': profile['uuid'],
        'name': profile['name'],
        'description': profile['description'],
        'groups': profile['groups'],
        **representation.times(profile),
        'links': representation.link(req, 'device_profiles', profile['uuid']),
    }
