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

"""What an instance holds on a host, asked for by the host itself.

A binding is (instance, host, role). The row of one is its fence: it knows
the newest attempt, and outlives a release by a day, so that a request that
was under way for longer than its caller waited cannot take anything.
"""

import collections
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import datetime
from typing import Any

from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db import arq as arq_rows
from nova_accel.db import attach_handle
from nova_accel.db import device_profile as device_profile_rows
from nova_accel.db import engine
from nova_accel.db import schema
from nova_accel.model import arq
from nova_accel.model import device_profile
from nova_accel.model import matching

_FENCES = schema.BINDINGS
_ARQS = schema.ARQS

#: How long a late request is recognized as such after the release.
FENCE_KEPT = datetime.timedelta(days=1)

_Key = tuple[str, str, str]


@dataclasses.dataclass(frozen=True)
class Request:
    """What a host wants to hold for an instance.

    ``hostname`` is Nova's nodename. A larger ``attempt`` is a newer one;
    ``providers`` are what the instance has allocations of and is ours, with
    the traits that the host's provider tree shows.
    """

    instance_uuid: str
    hostname: str
    role: str
    attempt: int
    project_id: str
    device_profile_name: str
    providers: tuple[matching.Provider, ...]
    image_uuid: str | None = None

    @property
    def key(self) -> _Key:
        return self.instance_uuid, self.hostname, self.role


@engine.retried
def acquire(request: Request) -> list[dict[str, Any]]:
    """Bind what the request asks for; the same again changes nothing.

    A newer attempt keeps what an older one got if it asks for the same.

    :returns: the ARQs, all Bound
    :raises StaleAttempt: a newer attempt is known, or this one is released
    :raises NotFound: the device profile, or one of the providers
    :raises NoAssignment: the groups do not match the allocations
    :raises AcceleratorsBusy: fewer handles are free than were allocated
    """
    with engine.writer() as connection:
        fence = _lock(connection, request.key)
        if fence is None:
            _insert(connection, request.key, request.attempt, None)
            _bind(connection, request)
        elif (request.attempt < fence['attempt']
              or (request.attempt == fence['attempt']
              and fence['released_at'] is not None)):
            raise _stale(request.key, request.attempt, fence)
        elif request.attempt > fence['attempt']:
            _update(connection, request.key, request.attempt, None)
            held = arq_rows.lock(connection, *_of(_ARQS, request.key))
            if not _suffices(connection, request, held):
                arq_rows.delete(connection, [row['uuid'] for row in held])
                _bind(connection, request)
        return arq_rows.read(connection, *_of(_ARQS, request.key))


def get(instance_uuid: str, hostname: str, role: str) -> list[dict[str, Any]]:
    """The ARQs that are bound so, in their stored states."""
    with engine.reader() as connection:
        return arq_rows.read(
            connection, *_of(_ARQS, (instance_uuid, hostname, role)))


@engine.retried
def release(instance_uuid: str, hostname: str, role: str,
            attempt: int) -> None:
    """Free all that is held, and refuse what comes late of this attempt.

    :raises StaleAttempt: a newer attempt is known
    """
    key = instance_uuid, hostname, role
    with engine.writer() as connection:
        fence = _lock(connection, key)
        if fence is None:
            _insert(connection, key, attempt, schema.now())
        elif attempt < fence['attempt']:
            raise _stale(key, attempt, fence)
        else:
            _update(connection, key, attempt, schema.now())
        held = arq_rows.lock(connection, *_of(_ARQS, key))
        arq_rows.delete(connection, [row['uuid'] for row in held])
        connection.execute(sa.delete(_FENCES).where(
            _FENCES.c.hostname == hostname,
            _FENCES.c.released_at < schema.now() - FENCE_KEPT))


def _of(table: sa.Table, key: _Key) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(table.c[name] == value for name, value in zip(
        ('instance_uuid', 'hostname', 'role'), key, strict=True))


def _lock(connection: sa.Connection, key: _Key) -> dict[str, Any] | None:
    fence = connection.execute(
        sa.select(_FENCES.c.attempt, _FENCES.c.released_at)
        .where(*_of(_FENCES, key)).with_for_update()).mappings().one_or_none()
    return None if fence is None else dict(fence)


def _insert(connection: sa.Connection, key: _Key, attempt: int,
            released_at: datetime.datetime | None) -> None:
    instance_uuid, hostname, role = key
    try:
        connection.execute(sa.insert(_FENCES).values(
            instance_uuid=instance_uuid, hostname=hostname, role=role,
            attempt=attempt, released_at=released_at))
    except db_exc.DBDuplicateEntry as fault:
        raise db_exc.RetryRequest(exceptions.StaleAttempt(
            f'instance {instance_uuid} on host {hostname} ({role}) is asked '
            'for by others at the same time')) from fault


def _update(connection: sa.Connection, key: _Key, attempt: int,
            released_at: datetime.datetime | None) -> None:
    connection.execute(
        sa.update(_FENCES).where(*_of(_FENCES, key))
        .values(attempt=attempt, released_at=released_at))


def _stale(key: _Key, attempt: int,
           fence: Mapping[str, Any]) -> exceptions.StaleAttempt:
    instance_uuid, hostname, role = key
    is_released = '' if fence['released_at'] is None else ', released,'
    return exceptions.StaleAttempt(
        f'attempt {attempt} for instance {instance_uuid} on host {hostname} '
        f'({role}) comes after attempt {fence["attempt"]}{is_released} is '
        'known')


def _suffices(connection: sa.Connection, request: Request,
              held: Sequence[Mapping[str, Any]]) -> bool:
    """Whether what is held is what binding anew would give."""
    if any(row['device_profile_name'] != request.device_profile_name
           for row in held):
        return False
    amounts = collections.Counter(
        (row['device_rp_uuid'], row['resource_class']) for row in held)
    allocated = {(provider.uuid, resource_class): amount
                 for provider in request.providers
                 for resource_class, amount in provider.allocated.items()}
    if not held or amounts != allocated:
        return False
    try:
        profile = device_profile_rows.read(
            connection, 'name', request.device_profile_name)
    except exceptions.NotFound:
        # Deleting a profile does not touch running guests.
        return True
    groups = {row['device_profile_group_id']: row['group'] for row in held}
    return groups == dict(enumerate(profile['groups']))


def _bind(connection: sa.Connection, request: Request) -> None:
    profile = device_profile_rows.read(
        connection, 'name', request.device_profile_name)
    stock = attach_handle.stock(
        connection, [provider.uuid for provider in request.providers])
    stock.check_providers([(request.hostname, provider.uuid)
                           for provider in request.providers])
    assigned = matching.assign(
        device_profile.parse_groups(profile['groups']), request.providers)
    rows = [
        {**row, 'device_rp_uuid': assigned[row['device_profile_group_id']]}
        for row in arq_rows.rows_of_profile(
            profile, state=arq.State.BOUND, project_id=request.project_id,
            image_uuid=request.image_uuid, hostname=request.hostname,
            instance_uuid=request.instance_uuid, role=request.role)]
    allotted = stock.allot({row['uuid']: attach_handle.Slot(
        request.hostname, row['device_rp_uuid'], row['resource_class'])
        for row in rows})
    connection.execute(sa.insert(_ARQS), rows)
    attach_handle.take(connection, allotted)
