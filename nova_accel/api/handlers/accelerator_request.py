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

"""``/accelerator_requests``: what Nova's Cyborg client and tenants call."""

from collections.abc import Iterable
from collections.abc import Mapping
import functools
from typing import Any

import webob
import webob.exc

from nova_accel import exceptions
from nova_accel.api.handlers import arq_patch
from nova_accel.api.http import caller
from nova_accel.api.http import microversion
from nova_accel.api.http import paging
from nova_accel.api.http import policy
from nova_accel.api.http import representation
from nova_accel.api.http import request
from nova_accel.api.notifications import arq_notification
from nova_accel.api.notifications import notifier
from nova_accel.api.policies import accelerator_request as policies
from nova_accel.api.policies import host as host_policies
from nova_accel.db import client_arqs
from nova_accel.db import server_arqs
from nova_accel.db.rows import arq_rows
from nova_accel.model import arq_types

_NOVA_ONLY = (
    'This operation requires a service token. Use the Compute API '
    'to manage instance accelerators.'
)

#: The arguments that make a list a part of the ARQs of an instance.
_PARTS = frozenset({'hostname', 'state', 'project_id', 'limit', 'marker'})

#: The fields that say where a request is bound. Tenants can neither see them
#: nor ask for them.
_PLACE = ('hostname', 'device_rp_uuid')


def list_arqs(req: webob.Request) -> webob.Response:
    context = request.authorize(req)
    query = paging.query(req, client_arqs.SORT_KEYS)
    filters = query.filters
    sees_host = policy.allows(context, host_policies.SHOW)
    if not sees_host:
        _check_asks_for_no_host(query)
    instance_uuid = None
    if 'instance' in filters:
        [instance_uuid] = request.uuids('instance', [filters['instance']])
    only_resolved = _only_resolved(req.GET)
    states = _states(filters)
    if only_resolved and instance_uuid is None:
        states = arq_types.RESOLVED & (states or arq_types.RESOLVED)
    if instance_uuid is not None and query.is_whole:
        arqs = _of_instance(context, instance_uuid)
    else:
        arqs = client_arqs.get_all(
            project_id=_project(context, filters),
            states=states,
            page=query.page,
            instance_uuid=instance_uuid,
            hostname=filters.get('hostname'),
        )
    if only_resolved and any(
        arq['state'] not in arq_types.RESOLVED for arq in arqs
    ):
        # This is all that Cyborg says.
        return webob.Response(status=423, json_body={'error_message': 'null'})
    return query.answer(
        req,
        'accelerator_requests',
        'arqs',
        arqs,
        functools.partial(_to_json, req, sees_host, _health(req, arqs)),
    )


def _check_asks_for_no_host(query: paging.Query) -> None:
    """:raises HTTPForbidden: it looks for ARQs by where they are bound."""
    asked = {*query.filters, *(key.name for key in query.page.sort)}
    for name in asked.intersection(_PLACE):
        raise webob.exc.HTTPForbidden(
            f'The argument {name} is not for this caller: policy '
            f'{host_policies.SHOW}'
        )


def _of_instance(
    context: caller.Caller, instance_uuid: str
) -> list[arq_rows.ArqRow]:
    """All ARQs of an instance that the caller reaches; Nova asks for these."""
    arqs = client_arqs.get_of_instance(instance_uuid)
    if context.project_id is not None and all(
        arq['project_id'] == context.project_id for arq in arqs
    ):
        return arqs
    project_id = reach(context)
    return [arq for arq in arqs if project_id in (None, arq['project_id'])]


def _only_resolved(arguments: Mapping[str, str]) -> bool:
    if 'bind_state' not in arguments:
        return False
    if arguments['bind_state'] != 'resolved':
        raise exceptions.InvalidRequest(
            'The only bind_state to ask for is resolved'
        )
    # With ``instance``, asks whether all ARQs of the instance are resolved.
    parts = _PARTS.intersection(arguments)
    if 'instance' in arguments and parts:
        raise exceptions.InvalidRequest(
            'bind_state with instance asks for all ARQs of the instance, so '
            f'leave out {", ".join(sorted(parts))}'
        )
    return True


def _states(filters: Mapping[str, str]) -> frozenset[arq_types.State] | None:
    """The only state that is asked for; None: any."""
    if 'state' not in filters:
        return None
    try:
        return frozenset({arq_types.State(filters['state'])})
    except ValueError as error:
        raise exceptions.InvalidRequest(
            f'There is no state "{filters["state"][:255]}"; the states are '
            f'{", ".join(arq_types.State)}'
        ) from error


def _project(context: caller.Caller, filters: Mapping[str, str]) -> str | None:
    """The only project whose ARQs are asked for; None: any.

    :raises HTTPForbidden: the caller does not reach this project
    """
    wanted = filters.get('project_id', reach(context))
    if wanted != context.project_id:
        policy.authorize(context, policies.ALL_PROJECTS)
    return wanted


def get_arq(req: webob.Request) -> webob.Response:
    context = request.authorize(req)
    arq = client_arqs.get(
        request.path_uuid(req, 'uuid'), project_id=reach(context)
    )
    return webob.Response(
        json_body=_to_json(
            req,
            policy.allows(context, host_policies.SHOW),
            _health(req, [arq]),
            arq,
        )
    )


def create_arqs(req: webob.Request) -> webob.Response:
    context = request.authorize(req)
    body = request.json_body(req)
    arqs = client_arqs.create(
        body['device_profile_name'],
        _own_project(context),
        image_uuid=body.get('image_uuid'),
    )
    # They are bound nowhere yet, so nothing has to be hidden.
    return webob.Response(
        status=201,
        json_body={'arqs': [_to_json(req, True, {}, arq) for arq in arqs]},
    )


def patch_arqs(req: webob.Request) -> webob.Response:
    """Bind all the ARQs of the body, or unbind them all."""
    context = request.authorize(req, refusal=_NOVA_ONLY)
    return _patch(req, context, request.json_body(req))


def patch_arq(req: webob.Request) -> webob.Response:
    """The same for one ARQ: openstacksdk has its uuid in the path, too."""
    context = request.authorize(req, refusal=_NOVA_ONLY)
    uuid = request.path_uuid(req, 'uuid')
    patches = request.json_body(req)
    for patched in patches:
        if patched != uuid:
            raise exceptions.InvalidRequest(
                f'The body has ARQ {patched}, the path has {uuid}'
            )
    return _patch(req, context, patches)


def _patch(
    req: webob.Request,
    context: caller.Caller,
    patches: Mapping[str, arq_patch.Operations],
) -> webob.Response:
    try:
        if arq_patch.is_unbinding(patches):
            with arq_notification.unbinding(
                context,
                functools.partial(client_arqs.get_by_uuids, list(patches)),
            ):
                client_arqs.unbind(list(patches))
        else:
            bindings = arq_patch.bindings(patches)
            if any('project_id' in fields for fields in bindings.values()):
                microversion.require(req, '2.1')
                policy.authorize(context, policies.SET_PROJECT)
            with arq_notification.binding(context, bindings) as bound:
                bound.extend(
                    client_arqs.bind(bindings, read=notifier.is_enabled())
                )
    except exceptions.InvalidRequest as error:
        raise exceptions.InvalidRequest(
            f"Couldn't apply patch. Reason: {error}"
        ) from error
    return webob.Response(status=202, content_type=None)


def delete_arqs(req: webob.Request) -> webob.Response:
    """Delete the named ARQs, or those of an instance."""
    context = request.authorize(req)
    arguments = request.query(req)
    if len(arguments) != 1:
        raise exceptions.InvalidRequest(
            'Give either arqs, uuids of ARQs, or instance, the uuid of an '
            'instance'
        )
    [(name, value)] = arguments.items()
    if name == 'instance':
        policy.authorize(context, policies.DELETE_BOUND, refusal=_NOVA_ONLY)
        [instance_uuid] = request.uuids(name, [value])
        with arq_notification.unbinding(
            context, functools.partial(_unadopted, context, instance_uuid)
        ):
            client_arqs.delete_by_instance(
                instance_uuid, project_id=reach(context)
            )
    else:
        _delete_by_uuids(context, request.uuids(name, value.split(',')))
    return webob.Response(status=204, content_type=None)


def delete_arq(req: webob.Request) -> webob.Response:
    """Delete the ARQs that the path names, as openstacksdk does."""
    context = request.authorize(req)
    _delete_by_uuids(
        context, request.uuids('arqs', req.urlvars['uuid'].split(','))
    )
    return webob.Response(status=204, content_type=None)


def _delete_by_uuids(context: caller.Caller, uuids: list[str]) -> None:
    bound_allowed = policy.allows(context, policies.DELETE_BOUND)
    project_id = reach(context)
    try:
        with arq_notification.unbinding(
            context,
            functools.partial(client_arqs.get_by_uuids, uuids, project_id),
        ):
            client_arqs.delete_by_uuids(
                uuids, project_id=project_id, bound_allowed=bound_allowed
            )
    except exceptions.Conflict as error:
        if bound_allowed:
            raise
        # One is bound, and only Nova may delete that.
        raise webob.exc.HTTPForbidden(error.public) from error


def _unadopted(
    context: caller.Caller, instance_uuid: str
) -> list[arq_rows.ArqRow]:
    """The ARQs that a deletion by instance deletes: those without a role."""
    return [
        arq
        for arq in _of_instance(context, instance_uuid)
        if arq['role'] is None
    ]


def reach(context: caller.Caller) -> str | None:
    """The only project whose ARQs the caller reaches; None: all projects.

    :raises HTTPForbidden: the caller's token is for no project
    """
    if policy.allows(context, policies.ALL_PROJECTS):
        return None
    return _own_project(context)


def _own_project(context: caller.Caller) -> str:
    """:raises HTTPForbidden: the caller's token is for no project"""
    project_id: str | None = context.project_id
    if not project_id:
        raise webob.exc.HTTPForbidden(
            'Accelerator requests belong to projects, and the token is for '
            'none'
        )
    return project_id


def _health(
    req: webob.Request, arqs: Iterable[arq_rows.ArqRow]
) -> dict[str, server_arqs.HealthRow]:
    """The health of bound ARQs, if the caller knows of it."""
    if not microversion.is_at_least(req, '2.5'):
        return {}
    return server_arqs.get_health(
        [arq['uuid'] for arq in arqs if arq['attach_handle_uuid'] is not None]
    )


def _to_json(
    req: webob.Request,
    sees_host: bool,
    health: Mapping[str, server_arqs.HealthRow],
    row: arq_rows.ArqRow,
) -> dict[str, Any]:
    arq: Mapping[str, Any] = (
        row
        if sees_host
        else {
            **row,
            **dict.fromkeys(
                (
                    *_PLACE,
                    'attach_handle_uuid',
                    'attach_handle_info',
                    'chosen_because',
                )
            ),
            'reason': row['reason'] and exceptions.AcceleratorsBusy.PUBLIC,
        }
    )
    shown = {
        'uuid': arq['uuid'],
        'state': arq['state'],
        'device_profile_name': arq['device_profile_name'],
        'device_profile_group_id': arq['device_profile_group_id'],
        'hostname': arq['hostname'],
        'device_rp_uuid': arq['device_rp_uuid'],
        'instance_uuid': arq['instance_uuid'],
        'project_id': arq['project_id'],
        'attach_handle_type': arq['attach_handle_type'] or '',
        'attach_handle_uuid': arq['attach_handle_uuid'],
        'attach_handle_info': arq['attach_handle_info'] or {},
        'links': representation.link(req, 'accelerator_requests', arq['uuid']),
        **representation.times(arq),
    }
    if microversion.is_at_least(req, '2.4'):
        shown['reason'] = arq['reason']
        shown['chosen_because'] = arq['chosen_because']
    if microversion.is_at_least(req, '2.5'):
        judged = health.get(arq['uuid'])
        verdict, reason = judged['health'] if judged else (None, None)
        shown['health'] = verdict
        shown['health_reason'] = reason
        shown['health_since'] = judged and representation.iso(judged['since'])
    return shown
