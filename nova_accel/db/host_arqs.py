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

"""The ARQs that an instance holds on a host, as the host asks for them.

A binding is (instance, host, role), with a fence against late requests. Its
ARQs are made here, or adopted from Nova's own Cyborg client. From then on only
the host gives them back.
"""

import collections
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import copy
import dataclasses
import functools
import itertools
from typing import Any
from typing import TypedDict

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import arq_rows
from nova_accel.db.rows import fence
from nova_accel.db.rows import free_handles
from nova_accel.db.rows import profile_rows
from nova_accel.db.rows import project_quota
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import arq_types
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import extra_specs
from nova_accel.model.profiles import group_division
from nova_accel.model.profiles import matching
from nova_accel.model.profiles import provider_allocation
from nova_accel.model.units import handle_stock

_ARQS = schema.ARQS

#: Why a device profile is passed over, if known units tell nothing.
_NO_ROOM = 'no host had it with all else that the server needs'


class _Binding(TypedDict):
    instance_uuid: str
    #: None if the host has not adopted the ARQs.
    role: str | None
    arqs: list[arq_rows.BoundArqRow]


class NumberedBinding(_Binding):
    """A binding of one host, with its newest attempt."""

    attempt: int | None


class HostBinding(_Binding):
    """A binding of one of several hosts."""

    hostname: str


@dataclasses.dataclass(frozen=True)
class AcquireRequest:
    """A host's request for what an instance is to hold.

    ``hostname`` is Nova's nodename. A larger ``attempt`` is a newer one.
    ``device_profile_name`` may be several, as a flavor names them: the first
    one is bound that the allocations serve. ``allocations`` are those that the
    instance has of our providers. ``groups``, in their stored form, replace
    those of the device profile, if there are any. ``numa_nodes`` are those of
    the host that have the cells of the guest, none if they do not matter.
    ``obstacles`` says of device profiles why they cannot be served now.
    """

    instance_uuid: str
    hostname: str
    role: str
    attempt: int
    project_id: str
    device_profile_name: str
    allocations: tuple[provider_allocation.ProviderAllocation, ...]
    image_uuid: str | None = None
    groups: Sequence[Mapping[str, str]] = ()
    numa_nodes: frozenset[int] = frozenset()
    obstacles: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the device profiles, the best one first."""
        if not self.device_profile_name:
            return (device_profile.NO_PROFILE,)
        return extra_specs.alternatives(self.device_profile_name)

    @property
    def key(self) -> fence.Key:
        return self.instance_uuid, self.hostname, self.role


@engine.retried
def acquire(
    request: AcquireRequest, limits_of_project: Mapping[str, int] | None = None
) -> list[arq_rows.ArqRow]:
    """Bind what the request asks for; the same again changes nothing.

    A newer attempt that asks for the same keeps what an older one got. Units
    that the ports of the instance hold do not count.

    :param limits_of_project: resource class -> how many units the project may
        have, if the instance is to be counted
    :returns: the ARQs, all Bound
    :raises StaleAttempt: a newer attempt is known, or this one is released,
        or was another request's
    :raises FarAttempt: no host can have counted so far
    :raises OverQuota: the project may not have as many
    :raises NotFound: there is no such device profile, or no such provider
    :raises NoAssignment: the groups do not match the allocations
    :raises AcceleratorsBusy: fewer handles are free than were allocated
    """
    with engine.writer() as connection:
        admitted = fence.admit(connection, request.key, request.attempt)
        request = _without_ports(connection, request)
        if admitted is fence.Admitted.FIRST:
            _count(connection, request, limits_of_project)
            _bind(connection, request)
        else:
            held = arq_rows.lock(connection, *fence.where(_ARQS, request.key))
            if not _suffices(request, held):
                if admitted is fence.Admitted.REPEATED:
                    raise fence.taken(connection, request.key, request.attempt)
                _count(connection, request, limits_of_project)
                arq_rows.delete(connection, [row['uuid'] for row in held])
                _bind(connection, request)
        return arq_rows.read(connection, *fence.where(_ARQS, request.key))


@engine.retried
def get(instance_uuid: str, hostname: str, role: str) -> list[arq_rows.ArqRow]:
    """The ARQs of a binding, in their stored states."""
    with engine.reader() as connection:
        return arq_rows.read(
            connection, *fence.where(_ARQS, (instance_uuid, hostname, role))
        )


@engine.retried
def get_of_host(hostname: str) -> list[NumberedBinding]:
    """All bindings of a host.

    ARQs that Nova's Cyborg client has bound and the host has not adopted have
    neither a role nor an attempt. All ARQs are in their stored states.
    """
    with engine.reader() as connection:
        # First, so that no attempt looks newer than the ARQs that it got.
        attempts = fence.attempts(connection, hostname)
        arqs = arq_rows.read_bound(connection, _ARQS.c.hostname == hostname)
    return [
        {
            'instance_uuid': instance_uuid,
            'role': role,
            'attempt': None
            if role is None
            else attempts.get((instance_uuid, role), 0),
            'arqs': rows,
        }
        for (_, instance_uuid, role), rows in _grouped(arqs).items()
    ]


@engine.retried
def get_of_hosts(hostnames: Collection[str]) -> list[HostBinding]:
    """All bindings of several hosts."""
    with engine.reader() as connection:
        arqs = arq_rows.read_bound(
            connection, _ARQS.c.hostname.in_(list(hostnames))
        )
    return [
        {
            'hostname': hostname,
            'instance_uuid': instance_uuid,
            'role': role,
            'arqs': rows,
        }
        for (hostname, instance_uuid, role), rows in _grouped(arqs).items()
    ]


def _grouped(
    arqs: Sequence[arq_rows.BoundArqRow],
) -> dict[tuple[str, str, str | None], list[arq_rows.BoundArqRow]]:
    """(Hostname, instance uuid, role) -> the ARQs."""
    found: dict[tuple[str, str, str | None], list[arq_rows.BoundArqRow]] = {}
    for row in arqs:
        found.setdefault(
            (row['hostname'], row['instance_uuid'], row['role']), []
        ).append(row)
    return found


@engine.retried
def delete_unadopted(
    instance_uuid: str, hostname: str, uuids: Collection[str]
) -> None:
    """Delete ARQs that the instance has on the host without a role."""
    with engine.writer() as connection:
        rows = arq_rows.lock(
            connection,
            _ARQS.c.uuid.in_(list(uuids)),
            _ARQS.c.instance_uuid == instance_uuid,
            _ARQS.c.hostname == hostname,
            _ARQS.c.role.is_(None),
        )
        arq_rows.delete(connection, [row['uuid'] for row in rows])


@engine.retried
def release(
    instance_uuid: str, hostname: str, role: str, attempt: int
) -> None:
    """Free the ARQs of a binding, and refuse late requests of this attempt.

    :raises StaleAttempt: a newer attempt is known
    :raises FarAttempt: no host can have counted so far
    """
    key = instance_uuid, hostname, role
    with engine.writer() as connection:
        fence.close(connection, key, attempt)
        held = arq_rows.lock(connection, *fence.where(_ARQS, key))
        arq_rows.delete(connection, [row['uuid'] for row in held])
        fence.forget_old(connection, hostname)


def _without_ports(
    connection: sa.Connection, request: AcquireRequest
) -> AcquireRequest:
    """The request, without what is allocated for ports.

    An ARQ that Nova has bound to the instance belongs to a port, since the
    ARQs of the flavor are made here. The host may have adopted it already.
    """
    held = collections.Counter(
        connection.execute(
            sa.select(_ARQS.c.device_rp_uuid, _ARQS.c.resource_class).where(
                _ARQS.c.instance_uuid == request.instance_uuid,
                _ARQS.c.hostname == request.hostname,
                sa.or_(
                    _ARQS.c.role.is_(None), _ARQS.c.role == arq_types.Role.PORT
                ),
            )
        ).tuples()
    )
    return dataclasses.replace(
        request,
        allocations=provider_allocation.without(request.allocations, held),
    )


def _suffices(
    request: AcquireRequest, held: Sequence[arq_rows.HeldRow]
) -> bool:
    """Whether the held ARQs are what the request asks for.

    The present groups of the profile do not matter: an edit of the profile
    changes nothing for a guest, even when the guest is rebuilt.
    """
    amounts = collections.Counter(
        (row['device_rp_uuid'], row['resource_class']) for row in held
    )
    allocated = {
        (allocation.rp_uuid, resource_class): amount
        for allocation in request.allocations
        for resource_class, amount in allocation.resources.items()
    }
    return (
        bool(held)
        and amounts == allocated
        and all(row['device_profile_name'] in request.names for row in held)
        and (
            not request.groups
            or {row['device_profile_group_id']: row['group'] for row in held}
            == dict(enumerate(request.groups))
        )
    )


def _count(
    connection: sa.Connection,
    request: AcquireRequest,
    limits_of_project: Mapping[str, int] | None,
) -> None:
    """:raises OverQuota: the project may not have as many"""
    wanted: collections.Counter[str] = collections.Counter()
    for allocation in request.allocations:
        wanted.update(allocation.resources)
    project_quota.check(
        connection,
        request.project_id,
        request.key,
        limits_of_project or {},
        wanted,
    )


def _bind(connection: sa.Connection, request: AcquireRequest) -> None:
    """Bind the first device profile that the allocations serve."""
    profiles = _profiles(connection, request)
    stock = free_handles.read(
        connection,
        [
            handle_stock.Slot(
                request.hostname, allocation.rp_uuid, resource_class
            )
            for allocation in request.allocations
            for resource_class, amount in allocation.resources.items()
            for _unit in range(amount)
        ],
        request.numa_nodes,
    )
    for profile in profiles[:-1]:
        with contextlib.suppress(
            exceptions.InvalidDeviceProfile,
            exceptions.NoAssignment,
            exceptions.AcceleratorsBusy,
        ):
            # An attempt that fails may have taken some of the stock.
            found = _allot(request, profile, copy.deepcopy(stock))
            break
    else:
        found = _allot(request, profiles[-1], stock)
    arq_rows.insert_bound(connection, *found)


def _allot(
    request: AcquireRequest,
    profile: profile_rows.RequestedProfile,
    stock: handle_stock.HandleStock,
) -> tuple[list[dict[str, Any]], handle_stock.Allotment, str]:
    """The rows of a profile, their handles, and why it is this one.

    :raises InvalidDeviceProfile: it is malformed
    :raises NoAssignment: its groups do not match the allocations
    :raises AcceleratorsBusy: fewer handles are free than were allocated
    """
    groups = group_division.placed(
        device_profile.parse_groups(profile['groups']), request.allocations
    )
    assigned = matching.assign(
        groups,
        request.allocations,
        lambda index, rp_uuid: stock.price(
            request.hostname, rp_uuid, groups[index]
        ),
    )
    rows = _rows(request, profile, groups, assigned)
    allotted = stock.allot(
        [
            handle_stock.Ask(
                request.hostname,
                rp_uuid,
                group,
                {row['uuid']: row['resource_class'] for row in of_group},
            )
            for group, rp_uuid, of_group in zip(
                groups, assigned, rows, strict=True
            )
        ]
    )
    better = request.names[: request.names.index(profile['name'])]
    return (
        list(itertools.chain.from_iterable(rows)),
        allotted,
        ''.join(
            f'not {name}: {request.obstacles.get(name, _NO_ROOM)}; '
            for name in better
        ),
    )


def _profiles(
    connection: sa.Connection, request: AcquireRequest
) -> Sequence[profile_rows.RequestedProfile]:
    """The profile with the groups of the request, or each as it is now."""
    if request.groups:
        return [
            {
                'name': request.device_profile_name,
                'groups': request.groups,
            }
        ]
    names = request.names
    if len(names) > 1:
        return profile_rows.read_alternatives(
            connection, _possible(connection, request)
        )
    return [
        profile_rows.read_requested(
            connection,
            names[0],
            profile_rows.RequestedProfile,
            profile_rows.REQUESTED,
        )
    ]


def _possible(
    connection: sa.Connection, request: AcquireRequest
) -> Sequence[str]:
    """All names, or those that a guest has that is migrated live."""
    if request.role != arq_types.Role.INCOMING:
        return request.names
    had = set(
        connection.scalars(
            sa.select(_ARQS.c.device_profile_name).where(
                _ARQS.c.instance_uuid == request.instance_uuid,
                _ARQS.c.role == arq_types.Role.ACTIVE,
            )
        )
    )
    return [name for name in request.names if name in had] or request.names


def _rows(
    request: AcquireRequest,
    profile: profile_rows.RequestedProfile,
    groups: Sequence[device_profile.Group],
    assigned: Sequence[str],
) -> list[list[dict[str, Any]]]:
    """For each of the groups, a row to insert for each of its units.

    :param groups: those of the profile, of which some may be divided
    :param assigned: for each of the groups, the uuid of its provider
    """
    rows = arq_rows.rows_of_profile(
        profile,
        state=arq_types.State.BOUND,
        project_id=request.project_id,
        image_uuid=request.image_uuid,
        hostname=request.hostname,
        instance_uuid=request.instance_uuid,
        role=request.role,
    )
    return [
        [{**next(rows), 'device_rp_uuid': rp_uuid} for _unit in group.units()]
        for group, rp_uuid in zip(groups, assigned, strict=True)
    ]
