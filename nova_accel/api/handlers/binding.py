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

"""``/hosts/{hostname}/instances`` and the paths below it.

nova-compute acquires and releases here what an instance holds on its host. A
call may be repeated: the attempt says whether it is the same one.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
from typing import Any

import webob

from nova_accel import exceptions
from nova_accel.api.handlers import alternatives
from nova_accel.api.handlers import project_limits
from nova_accel.api.http import caller
from nova_accel.api.http import request
from nova_accel.api.notifications import arq_notification
from nova_accel.api.schemas import binding as schemas
from nova_accel.db import additions
from nova_accel.db import adoption
from nova_accel.db import client_arqs
from nova_accel.db import host_arqs
from nova_accel.db import imports
from nova_accel.db.rows import arq_rows
from nova_accel.model import arq_types
from nova_accel.model import attempt_number
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import provider_allocation


def list_bindings(req: webob.Request) -> webob.Response:
    """All bindings of a host, which compares them with its journal.

    One that was imported from a Cyborg, and has not reported yet, is told
    which mediated devices it may have made for no one.
    """
    request.authorize(req)
    hostname = request.path_hostname(req)
    return webob.Response(
        json_body={
            'bindings': [
                {**binding, 'arqs': [_to_json(arq) for arq in binding['arqs']]}
                for binding in host_arqs.get_of_host(hostname)
            ],
            'left_mdevs': imports.get_left_mdevs(hostname),
        }
    )


def delete_unadopted(req: webob.Request) -> webob.Response:
    """Delete ARQs that Nova has bound and the host has not adopted."""
    context = request.authorize(req)
    hostname = request.path_hostname(req)
    uuids = request.uuids(
        'arqs', request.query(req).get('arqs', '').split(',')
    )
    instance_uuid = request.path_uuid(req, 'instance_uuid')

    def unadopted() -> list[arq_rows.ArqRow]:
        return [
            arq
            for arq in client_arqs.get_by_uuids(uuids)
            if (arq['instance_uuid'], arq['hostname'], arq['role'])
            == (instance_uuid, hostname, None)
        ]

    with arq_notification.unbinding(context, unadopted):
        host_arqs.delete_unadopted(instance_uuid, hostname, uuids)
    return webob.Response(status=204, content_type=None)


def get_binding(req: webob.Request) -> webob.Response:
    request.authorize(req)
    return _answer(host_arqs.get(*_path(req)))


def acquire(req: webob.Request) -> webob.Response:
    context = request.authorize(req)
    instance_uuid, hostname, role = _path(req)
    body = request.json_body(req)
    if ('device_profile_name' in body) == ('groups' in body):
        raise exceptions.InvalidRequest(
            'The body needs either device_profile_name or groups'
        )
    wanted = host_arqs.AcquireRequest(
        instance_uuid=instance_uuid,
        hostname=hostname,
        role=role,
        # JSON Schema takes 1.0 for an integer.
        attempt=int(body['attempt']),
        project_id=body['project_id'],
        device_profile_name=body.get(
            'device_profile_name', device_profile.NO_PROFILE
        ),
        groups=device_profile.checked_groups(body['groups'])
        if 'groups' in body
        else (),
        allocations=provider_allocation.from_dict(body['providers']),
        image_uuid=body.get('image_uuid'),
        numa_nodes=frozenset(map(int, body.get('numa_nodes', ()))),
    )
    if len(wanted.names) > 1:
        wanted = dataclasses.replace(
            wanted,
            obstacles=alternatives.get_obstacles(
                wanted.names, wanted.allocations
            ),
        )
    with arq_notification.acquiring(context, wanted) as bound:
        bound.extend(
            project_limits.counted(
                context,
                wanted.project_id,
                {
                    name
                    for each in wanted.allocations
                    for name in each.resources
                },
                functools.partial(host_arqs.acquire, wanted),
            )
            if _is_counted(body)
            else host_arqs.acquire(wanted)
        )
    return _answer(bound)


def adopt(req: webob.Request) -> webob.Response:
    context = request.authorize(req)
    key = _path(req)
    body = request.json_body(req)
    from_role = body.get('from_role')
    if from_role == key[2]:
        raise exceptions.InvalidRequest(
            f'The ARQs cannot move from {from_role} to {from_role}'
        )
    leaving = body.get('leaving', ())
    held = {*body['arqs'], *leaving}
    if not held:
        raise exceptions.InvalidRequest('The body names no ARQ')

    def dropped() -> list[arq_rows.ArqRow]:
        return [arq for arq in host_arqs.get(*key) if arq['uuid'] not in held]

    adopted = functools.partial(
        adoption.adopt,
        key,
        int(body['attempt']),
        body['arqs'],
        from_role,
        names=body.get('names'),
        leaving=leaving,
    )
    with arq_notification.unbinding(context, dropped):
        return _answer(
            _counted(context, body['arqs'], adopted)
            if _is_counted(body)
            else adopted()
        )


def add(req: webob.Request) -> webob.Response:
    context = request.authorize(req)
    key = _path(req)
    body = request.json_body(req)
    wanted = [
        arq_types.WantedArq(
            **{
                **each,
                'device_profile_group_id': int(
                    each['device_profile_group_id']
                ),
            }
        )
        for each in body['arqs']
    ]
    for each in wanted:
        # Groups that are joined by a link are not all among these.
        device_profile.parse_group(each.group)
    added = functools.partial(
        additions.add,
        key,
        int(body['attempt']),
        body['project_id'],
        wanted,
        body.get('kept'),
    )
    with arq_notification.adding(
        context, key, body['project_id'], wanted[0].device_profile_name
    ) as bound:
        bound.extend(
            project_limits.counted(
                context,
                body['project_id'],
                {each.resource_class for each in wanted},
                added,
            )
            if 'kept' in body and project_limits.are_on()
            else added()
        )
    return _answer(bound)


def _is_counted(body: Mapping[str, Any]) -> bool:
    """Whether the limits of the server's project matter."""
    return bool(body.get('is_new')) and project_limits.are_on()


def _counted(
    context: caller.Caller,
    uuids: Collection[str],
    adopted: Callable[[Mapping[str, int]], list[arq_rows.ArqRow]],
) -> list[arq_rows.ArqRow]:
    """Adopt ARQs within the limits of their project.

    :raises OverQuota: the project would have too many
    """
    arqs = client_arqs.get_by_uuids(uuids)
    # All ARQs of an instance are of one project.
    owner = next((arq['project_id'] for arq in arqs), None)
    if owner is None:
        return adopted({})
    return project_limits.counted(
        context,
        owner,
        {arq_types.resource_class(arq['group']) for arq in arqs} - {''},
        adopted,
    )


def release(req: webob.Request) -> webob.Response:
    context = request.authorize(req)
    instance_uuid, hostname, role = _path(req)
    attempt = request.query(req).get('attempt', '')
    if not (
        attempt.isascii()
        and attempt.isdigit()
        and len(attempt) < 20
        and int(attempt) <= attempt_number.MAX
    ):
        raise exceptions.InvalidRequest(
            'The argument attempt is missing, or is no number of an attempt'
        )
    with arq_notification.unbinding(
        context,
        functools.partial(host_arqs.get, instance_uuid, hostname, role),
    ):
        host_arqs.release(instance_uuid, hostname, role, int(attempt))
    return webob.Response(status=204, content_type=None)


def _path(req: webob.Request) -> tuple[str, str, arq_types.Role]:
    """Instance uuid, hostname and role of the binding."""
    hostname = request.path_hostname(req)
    request.check(req.urlvars['role'], schemas.ROLE)
    return (
        request.path_uuid(req, 'instance_uuid'),
        hostname,
        arq_types.Role(req.urlvars['role']),
    )


def _answer(arqs: Iterable[arq_rows.ArqRow]) -> webob.Response:
    return webob.Response(json_body={'arqs': [_to_json(arq) for arq in arqs]})


def _to_json(arq: arq_rows.ArqFacts) -> dict[str, Any]:
    """As :meth:`nova_accel.model.arq_types.Arq.from_dict` reads it."""
    identity = arq['attach_handle_identity']
    return {
        'uuid': arq['uuid'],
        'state': arq['state'],
        'device_profile_name': arq['device_profile_name'],
        'device_profile_group_id': arq['device_profile_group_id'],
        'group': arq['group'],
        'device_rp_uuid': arq['device_rp_uuid'],
        'attach_handle': {
            'uuid': arq['attach_handle_uuid'],
            'type': arq['attach_handle_type'],
            'info': arq['attach_handle_info'],
            **({} if identity is None else {'identity': identity}),
        },
    }
