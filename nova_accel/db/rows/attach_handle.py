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

"""Handing attach handles out and taking them back.

Handles are always taken in the same way: :func:`stock` reads which are free,
:meth:`Stock.allot` decides in memory, and :func:`take` takes them in a single
compare-and-set. A transaction that loses the race begins again.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import datetime
import functools
import random
from typing import Any
from typing import NamedTuple

from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db import clock
from nova_accel.db import schema
from nova_accel.db.rows import host_orders
from nova_accel.db.rows import per_row
from nova_accel.model import hardware
from nova_accel.model import usability

_TABLE = schema.ATTACH_HANDLES
_DEPLOYABLES = schema.DEPLOYABLES
_DEVICES = schema.DEVICES
_HOSTS = schema.HOSTS

#: The fields of :class:`nova_accel.model.usability.Condition`, in a query that
#: joins devices.
CONDITION = (
    _TABLE.c.present,
    _DEVICES.c.status,
    _DEVICES.c.fault,
    _TABLE.c.unclean_since.is_(None),
    _TABLE.c.unclean_reason,
)

_HANDLE_IS_FREE = (
    _TABLE.c.arq_uuid.is_(None),
    _TABLE.c.unclean_since.is_(None),
    _TABLE.c.present,
)
_DEVICE_IS_USABLE = (
    _DEVICES.c.status == hardware.Status.ENABLED,
    _DEVICES.c.fault.is_(None),
)

_SLOT = (
    _DEVICES.c.hostname,
    _DEPLOYABLES.c.rp_uuid,
    _DEPLOYABLES.c.resource_class,
)
_OF_HOSTS = _DEPLOYABLES.join(_DEVICES).join(_HOSTS)

# The statements that each server needs are built once, as SQLAlchemy takes
# longer to build one than to execute it.
_STOCK = (
    sa.select(
        *_SLOT,
        _HOSTS.c.reported_at,
        clock.now().label('now'),
        _TABLE.c.uuid,
        *CONDITION,
    )
    .select_from(
        _OF_HOSTS.outerjoin(
            _TABLE,
            sa.and_(
                _TABLE.c.deployable_uuid == _DEPLOYABLES.c.uuid,
                _TABLE.c.arq_uuid.is_(None),
            ),
        )
    )
    .where(
        _DEPLOYABLES.c.rp_uuid.in_(sa.bindparam('providers', expanding=True))
    )
)

# As many free handles of one slot as are wanted. Two transactions should
# choose different ones among many, so each begins at a random place among
# their uuids.
_FEW = (
    sa.select(
        _TABLE.c.uuid,
        _HOSTS.c.reported_at,
        clock.now().label('now'),
    )
    .select_from(
        _OF_HOSTS.join(
            _TABLE, _TABLE.c.deployable_uuid == _DEPLOYABLES.c.uuid
        ),
    )
    .where(
        *(column == sa.bindparam(column.name) for column in _SLOT),
        *_HANDLE_IS_FREE,
        *_DEVICE_IS_USABLE,
    )
    .order_by(
        _TABLE.c.uuid < sa.bindparam('first'),
        _TABLE.c.uuid,
    )
    .limit(sa.bindparam('amount', type_=sa.Integer))
)

_IS_CLEANED = (
    sa.select(_DEPLOYABLES.c.is_cleaned)
    .where(_DEPLOYABLES.c.uuid == _TABLE.c.deployable_uuid)
    .scalar_subquery()
)

# Frees the handles that need nothing more: their hosts report them, and they
# are not cleaned after each guest.
_FREEING = (
    sa.update(_TABLE)
    .where(
        _TABLE.c.arq_uuid.in_(sa.bindparam('arqs', expanding=True)),
        _TABLE.c.present,
        sa.not_(_IS_CLEANED),
    )
    .values(arq_uuid=None)
)

_RANDOM = random.SystemRandom()


class Slot(NamedTuple):
    """The host, provider and class that the handle of an ARQ must be of."""

    hostname: str
    rp_uuid: str
    resource_class: str


class Stock:
    """The free handles of some providers, as they were when read.

    :param free: slot -> the uuids of its free handles, for each slot that was
        reported
    :param unusable: slot -> for each handle that no instance has and that is
        not free, the reason
    :param quiet: hostname -> how long ago the host has last reported
    """

    def __init__(
        self,
        free: Mapping[Slot, list[str]],
        unusable: Mapping[Slot, Sequence[str]],
        quiet: Mapping[str, datetime.timedelta],
    ) -> None:
        self._free = free
        self._unusable = unusable
        self._quiet = quiet

    def check_providers(self, slots: Iterable[Slot]) -> None:
        """Check that each host has reported the providers of its slots.

        :raises NotFound: names the providers that were not reported
        """
        unknown = sorted(
            {(slot.hostname, slot.rp_uuid) for slot in slots}
            - {(slot.hostname, slot.rp_uuid) for slot in self._free}
        )
        if unknown:
            raise exceptions.NotFound(
                '; '.join(
                    f'Resource provider {rp_uuid} not found on host {hostname}'
                    for hostname, rp_uuid in unknown
                ),
                public=(
                    'the host that was chosen has no such accelerator any '
                    'more: try again'
                ),
            )

    def silent_hosts(self, silence_s: int) -> set[str]:
        """The hosts whose last report is older than this many seconds."""
        silence = datetime.timedelta(seconds=silence_s)
        return {
            hostname
            for hostname, quiet in self._quiet.items()
            if quiet > silence
        }

    def allot(self, wanted: Mapping[str, Slot]) -> dict[str, str]:
        """Set a handle aside for each ARQ, or none at all.

        :param wanted: ARQ uuid -> slot
        :returns: handle uuid -> ARQ uuid
        :raises AcceleratorsBusy: fewer are free than wanted; says why others
            cannot be used
        """
        for slot, amount in collections.Counter(wanted.values()).items():
            free = len(self._free.get(slot, ()))
            if free < amount:
                raise exceptions.AcceleratorsBusy(
                    f'{amount} {slot.resource_class} of resource provider '
                    f'{slot.rp_uuid} on host {slot.hostname} are wanted and '
                    f'{free} are free',
                    self._why_no_more(slot),
                )
        return {
            self._free[slot].pop(): arq_uuid
            for arq_uuid, slot in wanted.items()
        }

    def _why_no_more(self, slot: Slot) -> str:
        reasons = collections.Counter(self._unusable.get(slot, ()))
        return (
            ''
            if not reasons
            else ' ({})'.format(
                ', '.join(
                    f'{amount} {reason}' for reason, amount in reasons.items()
                )
            )
        )


def is_free() -> sa.ColumnElement[bool]:
    """Whether a guest can have a handle, in a query that joins devices.

    The rule is that of :class:`nova_accel.model.usability.Condition`.
    """
    return sa.and_(*_HANDLE_IS_FREE, *_DEVICE_IS_USABLE)


def stock(connection: sa.Connection, wanted: Collection[Slot]) -> Stock:
    """The free handles: as many as are wanted of one slot, or else all.

    :param wanted: a slot for each handle
    :raises NotFound: names the providers that no host has reported
    """
    amounts = collections.Counter(wanted)
    if len(amounts) == 1:
        [(slot, amount)] = amounts.items()
        few = connection.execute(
            _FEW,
            {
                **slot._asdict(),
                'amount': amount,
                'first': f'{_RANDOM.getrandbits(32):08x}',
            },
        ).all()
        if len(few) == amount:
            return Stock(
                {slot: [row.uuid for row in few]},
                {},
                {slot.hostname: few[0].now - few[0].reported_at},
            )
    # All handles, also with the reasons why some cannot be used.
    everything = _read(
        connection.execute(
            _STOCK, {'providers': list({slot.rp_uuid for slot in amounts})}
        )
    )
    everything.check_providers(amounts)
    return everything


def _read(rows: Iterable[Sequence[Any]]) -> Stock:
    """:param rows: as :data:`_STOCK` selects them"""
    free: dict[Slot, list[str]] = {}
    unusable: dict[Slot, list[str]] = {}
    quiet: dict[str, datetime.timedelta] = {}
    for row in rows:
        slot, handle_uuid, condition = Slot(*row[:3]), row[5], row[6:]
        quiet[slot.hostname] = row[4] - row[3]
        handles = free.setdefault(slot, [])
        if handle_uuid is None:
            continue
        reason = usability.Condition(*condition).reason
        if reason is None:
            handles.append(handle_uuid)
        else:
            unusable.setdefault(slot, []).append(reason)
    for handles in free.values():
        _RANDOM.shuffle(handles)
    return Stock(free, unusable, quiet)


def take(connection: sa.Connection, allotted: Mapping[str, str]) -> None:
    """Take the handles for their ARQs, if all of them are still free.

    :param allotted: handle uuid -> ARQ uuid
    :raises RetryRequest: another transaction took one, or one cannot be used
        any more; :func:`nova_accel.db.engine.retried` makes it
        AcceleratorsBusy in the end
    """
    if not allotted:
        return
    taken = connection.execute(
        _taking(len(allotted)),
        per_row.parameters(
            [
                {'uuid': handle_uuid, 'arq_uuid': arq_uuid}
                for handle_uuid, arq_uuid in allotted.items()
            ]
        ),
    )
    if taken.rowcount != len(allotted):
        raise db_exc.RetryRequest(
            exceptions.AcceleratorsBusy(
                'other requests took the free attach handles'
            )
        )


@functools.lru_cache
def _taking(amount: int) -> sa.Update:
    """The statement that takes this many handles."""
    return (
        sa.update(_TABLE)
        .where(
            per_row.is_one(_TABLE.c.uuid, amount),
            *_HANDLE_IS_FREE,
            sa.exists().where(
                _DEPLOYABLES.c.uuid == _TABLE.c.deployable_uuid,
                _DEVICES.c.uuid == _DEPLOYABLES.c.device_uuid,
                *_DEVICE_IS_USABLE,
            ),
        )
        .values(per_row.values(_TABLE.c.uuid, [_TABLE.c.arq_uuid], amount))
    )


def give_back(connection: sa.Connection, arq_uuids: Collection[str]) -> None:
    """Free the handles of ARQs, which must still be bound in their rows.

    A handle that is cleaned after each guest becomes unclean. Another one is
    deleted if its host no longer reports it. The next report of that host is
    compared as a whole, so that the device can go, too.
    """
    freed = connection.execute(_FREEING, {'arqs': list(arq_uuids)}).rowcount
    # An ARQ holds one handle at most.
    if freed < len(arq_uuids):
        _give_back_others(connection, arq_uuids)


def _give_back_others(
    connection: sa.Connection, arq_uuids: Collection[str]
) -> None:
    held = connection.execute(
        sa.select(
            _TABLE.c.uuid,
            _TABLE.c.arq_uuid,
            _TABLE.c.present,
            _IS_CLEANED.label('is_cleaned'),
        )
        .where(_TABLE.c.arq_uuid.in_(list(arq_uuids)))
        .order_by(_TABLE.c.uuid)
        .with_for_update()
    ).all()
    unclean = [handle for handle in held if handle.is_cleaned]
    absent = [
        handle for handle in held if not (handle.present or handle.is_cleaned)
    ]
    if not held:
        return
    if absent:
        connection.execute(
            sa.delete(_TABLE).where(
                _TABLE.c.uuid.in_([handle.uuid for handle in absent])
            )
        )
        connection.execute(
            sa.update(_HOSTS)
            .where(_is_host_of(absent))
            .values(report_digest='')
        )
    if unclean:
        host_orders.change(connection, _is_host_of(unclean))
        _soil(connection, [handle.uuid for handle in unclean])
    connection.execute(
        sa.update(_TABLE)
        .where(_TABLE.c.uuid.in_([handle.uuid for handle in held]))
        .values(arq_uuid=None)
    )


def _is_host_of(held: Sequence[sa.Row[Any]]) -> sa.ColumnElement[bool]:
    arqs = schema.ARQS
    return _HOSTS.c.hostname.in_(
        sa.select(arqs.c.hostname).where(
            arqs.c.uuid.in_([handle.arq_uuid for handle in held])
        )
    )


def _soil(connection: sa.Connection, uuids: Sequence[str]) -> None:
    """Mark handles as unclean, by the present orders of their hosts."""
    revision = (
        sa.select(_HOSTS.c.orders)
        .select_from(_DEPLOYABLES.join(_DEVICES).join(_HOSTS))
        .where(_DEPLOYABLES.c.uuid == _TABLE.c.deployable_uuid)
    )
    connection.execute(
        sa.update(_TABLE)
        .where(_TABLE.c.uuid.in_(uuids))
        .values(unclean_since=revision.scalar_subquery(), unclean_reason=None)
    )
