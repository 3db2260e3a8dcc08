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

"""The copies of its flavor that Nova keeps with a server.

One is in the database of the server's cell and is used on its host. The other
one is in the request spec, in Nova's API database, and is used to schedule the
server again. A resize, too, would write both, but Nova forbids it for one of
the keys.
"""

import json
from typing import Any

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.compute import vm_states
from nova.db.main import api as main_db
from nova.db.main import models
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.model import nova_server
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import flavor_key

_EXTRA = models.InstanceExtra
_INSTANCE = models.Instance
_MIGRATION = models.Migration

_ALLOWED = (
    vm_states.ACTIVE,
    vm_states.PAUSED,
    vm_states.SHELVED,
    vm_states.SHELVED_OFFLOADED,
    vm_states.STOPPED,
)

#: Nova does not resume a server that has Cyborg's key.
_ALLOWED_FOR = {
    device_profile.FLAVOR_KEY: (*_ALLOWED, vm_states.SUSPENDED),
    device_profile.CYBORG_FLAVOR_KEY: _ALLOWED,
}


def change_key(uuid: str, key: str) -> bool:
    """Let a server name its device profile by another key.

    The cell is changed first, by one compare-and-set, so that a busy server
    stays as it is. If the request spec cannot be changed, the call can be
    repeated.

    :param uuid: the server's
    :param key: :data:`nova_accel.model.profiles.device_profile.FLAVOR_KEY` or
        :data:`nova_accel.model.profiles.device_profile.CYBORG_FLAVOR_KEY`
    :returns: whether anything had to be changed
    :raises NotFound: there is no such server.
    :raises InvalidRequest: it asks for no accelerators.
    :raises Conflict: says why it cannot be changed now.
    """
    context = nova_context.get_admin_context()
    cell = _cell(context, uuid)
    _check_adopted(uuid)
    with nova_context.target_cell(context, cell) as cell_context:
        is_changed = _change_in_cell(cell_context, uuid, key)
    return _change_in_request_spec(context, uuid, key) or is_changed


def _cell(context: Any, uuid: str) -> Any:
    try:
        mapping = objects.InstanceMapping.get_by_instance_uuid(context, uuid)
    except nova_exception.InstanceMappingNotFound as error:
        raise _not_found(uuid) from error
    if mapping.cell_mapping is None:
        raise exceptions.Conflict(
            'it is in no cell yet: wait until it is scheduled'
        )
    return mapping.cell_mapping


def _check_adopted(uuid: str) -> None:
    """:raises Conflict: its host has not adopted an ARQ."""
    for arq in client_arqs.get_of_instance(uuid):
        if arq['role'] is None:
            raise exceptions.Conflict(
                f'its host has not taken over ARQ {arq["uuid"]}: reboot the '
                'server hard first'
            )


@main_db.pick_context_manager_writer
def _change_in_cell(context: Any, uuid: str, key: str) -> bool:
    of_server = (_EXTRA.instance_uuid == uuid, _EXTRA.deleted == 0)
    found = context.session.execute(
        sa.select(_EXTRA.flavor, _INSTANCE.vm_state, _INSTANCE.task_state)
        .join(_INSTANCE, _INSTANCE.uuid == _EXTRA.instance_uuid)
        .where(*of_server, _INSTANCE.deleted == 0)
    ).one_or_none()
    if found is None:
        raise _not_found(uuid)
    text = _with_key(found.flavor, key)
    if text is None:
        return False
    if found.vm_state not in _ALLOWED_FOR[key]:
        raise exceptions.Conflict(f'it is {found.vm_state}')
    changed = context.session.execute(
        sa.update(_EXTRA)
        .where(
            *of_server,
            _EXTRA.flavor == found.flavor,
            sa.exists().where(
                _INSTANCE.uuid == uuid,
                _INSTANCE.deleted == 0,
                _INSTANCE.vm_state == found.vm_state,
                _INSTANCE.task_state.is_(None),
            ),
            ~sa.exists().where(
                _MIGRATION.instance_uuid == uuid,
                _MIGRATION.deleted == 0,
                _MIGRATION.status.in_(sorted(nova_server.UNFINISHED)),
            ),
        )
        .values(flavor=text)
        .execution_options(synchronize_session=False)
    )
    if not changed.rowcount:
        raise exceptions.Conflict(
            f'Nova is at work on it ({found.task_state or "a migration"}): '
            'try again when that has ended'
        )
    return True


def _with_key(text: str, key: str) -> str | None:
    """The flavors of an instance, in Nova's JSON, with the key.

    :returns: None if the flavor has the key already
    """
    flavors = json.loads(text)
    flavor = flavors['cur']['nova_object.data']
    extra_specs = flavor_key.changed(flavor['extra_specs'], key)
    if extra_specs is None:
        return None
    flavor['extra_specs'] = extra_specs
    return json.dumps(flavors)


def _change_in_request_spec(context: Any, uuid: str, key: str) -> bool:
    try:
        spec = objects.RequestSpec.get_by_instance_uuid(context, uuid)
    except nova_exception.RequestSpecNotFound as error:
        raise exceptions.NotFound(
            'Nova has no request spec of it: run "nova-manage api_db '
            'online_data_migrations"'
        ) from error
    extra_specs = flavor_key.changed(spec.flavor.extra_specs, key)
    if extra_specs is None:
        return False
    flavor = spec.flavor.obj_clone()
    flavor.extra_specs = extra_specs
    spec.flavor = flavor
    spec.save()
    return True


def _not_found(uuid: str) -> exceptions.NotFound:
    return exceptions.NotFound(f'Nova has no server {uuid}')
