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

All that takes a handle goes the same way: :func:`stock` reads what is free,
:meth:`Stock.allot` decides in memory, and :func:`take` does it in a single
compare-and-set. Whoever loses the race begins the transaction again.
"""

import collections
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import random
from typing import Any
from typing import NamedTuple

from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db import orders as order_rows
from nova_accel.db import schema
from nova_accel.model import device as device_model
from nova_accel.model import unusable as unusable_model

_TABLE = schema.ATTACH_HANDLES

#: The fields of :class:`nova_accel.model.unusable.Condition`, in a query that
#: joins devices.
CONDITION = (
    _TABLE.c.present, schema.DEVICES.c.status, schema.DEVICES.c.fault,
    _TABLE.c.unclean_since.is_(None), _TABLE.c.unclean_reason)

_HANDLE_IS_FREE = (
    _TABLE.c.arq_uuid.is_(None), _TABLE.c.unclean_since.is_(None),
    _TABLE.c.present)
_DEVICE_IS_USABLE = (
    schema.DEVICES.c.status == device_model.Status.ENABLED,
    schema.DEVICES.c.fault.is_(None))

# Two that choose among the same many handles should choose different ones.
_RANDOM = random.SystemRandom()


class Slot(NamedTuple):
    """What the handle of an ARQ must be a unit of."""

    hostname: str
    rp_uuid: str
    resource_class: str


class Stock:
    """The free handles of some providers, as they were when read.

    :param free: the handles' uuids, of each slot that was reported
    :param unusable: why handles that no instance has are not free, each
    """

    def __init__(self, free: Mapping[Slot, list[str]],
                 unusable: Mapping[Slot, Sequence[str]]) -> None:
        self._free = free
        self._unusable = unusable
        self._providers = {(slot.hostname, slot.rp_uuid) for slot in free}

    def check_providers(self, providers: Collection[tuple[str, str]]) -> None:
        """Whether each (hostname, provider uuid) is one that was reported.

        :raises NotFound: names those that are not
        """
        unknown = sorted(set(providers) - self._providers)
        if unknown:
            raise exceptions.NotFound('; '.join(
                f'Resource provider {rp_uuid} not found on host {hostname}'
                for hostname, rp_uuid in unknown))

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
                    f'{free} are free', self._why_no_more(slot))
        return {self._free[slot].pop(): arq_uuid
                for arq_uuid, slot in wanted.items()}

    def _why_no_more(self, slot: Slot) -> str:
        reasons = collections.Counter(self._unusable.get(slot, ()))
        return '' if not reasons else ' ({})'.format(', '.join(
            f'{amount} {reason}' for reason, amount in reasons.items()))


def is_free() -> sa.ColumnElement[bool]:
    """Whether a guest can have the handle of a row, joined with its device's.

    The rule is that of :class:`nova_accel.model.unusable.Condition`.
    """
    return sa.and_(*_HANDLE_IS_FREE, *_DEVICE_IS_USABLE)


def stock(connection: sa.Connection, rp_uuids: Collection[str]) -> Stock:
    """What is free of the providers, in one SELECT."""
    deployables, devices = schema.DEPLOYABLES, schema.DEVICES
    idle = sa.and_(
        _TABLE.c.deployable_uuid == deployables.c.uuid,
        _TABLE.c.arq_uuid.is_(None))
    query = sa.select(
        devices.c.hostname, deployables.c.rp_uuid,
        deployables.c.resource_class, _TABLE.c.uuid, *CONDITION,
    ).select_from(deployables.join(devices).outerjoin(_TABLE, idle)).where(
        deployables.c.rp_uuid.in_(list(rp_uuids)))
    free: dict[Slot, list[str]] = {}
    unusable: dict[Slot, list[str]] = {}
    for row in connection.execute(query):
        slot, handle_uuid, condition = Slot(*row[:3]), row[3], row[4:]
        handles = free.setdefault(slot, [])
        if handle_uuid is None:
            continue
        reason = unusable_model.Condition(*condition).reason
        if reason is None:
            handles.append(handle_uuid)
        else:
            unusable.setdefault(slot, []).append(reason)
    for handles in free.values():
        _RANDOM.shuffle(handles)
    return Stock(free, unusable)


def take(connection: sa.Connection, allotted: Mapping[str, str]) -> None:
    """Take the handles for their ARQs, if all of them are free still.

    :param allotted: handle uuid -> ARQ uuid
    :raises RetryRequest: another transaction took one, or it cannot be used
        any more; for
        :func:`nova_accel.db.engine.retried`, AcceleratorsBusy in the end
    """
    if not allotted:
        return
    deployables, devices = schema.DEPLOYABLES, schema.DEVICES
    taken = connection.execute(
        sa.update(_TABLE)
        .where(_TABLE.c.uuid.in_(list(allotted)), *_HANDLE_IS_FREE,
               sa.exists().where(
                   deployables.c.uuid == _TABLE.c.deployable_uuid,
                   devices.c.uuid == deployables.c.device_uuid,
                   *_DEVICE_IS_USABLE))
        .values(arq_uuid=sa.case(allotted, value=_TABLE.c.uuid)))
    if taken.rowcount != len(allotted):
        raise db_exc.RetryRequest(exceptions.AcceleratorsBusy(
            'other requests took the free attach handles'))


def give_back(connection: sa.Connection, arq_uuids: Collection[str]) -> None:
    """Free what the ARQs hold; the ARQs must still be bound in their rows.

    What is cleaned after each guest is unclean from now on. Of the others,
    a handle that its host does not report any more goes away. So that its
    device can go too, the host's next report is compared as a whole.
    """
    deployables, hosts = schema.DEPLOYABLES, schema.HOSTS
    is_cleaned = sa.select(deployables.c.is_cleaned).where(
        deployables.c.uuid == _TABLE.c.deployable_uuid).scalar_subquery()
    held = connection.execute(
        sa.select(_TABLE.c.uuid, _TABLE.c.arq_uuid, _TABLE.c.present,
                  is_cleaned.label('is_cleaned'))
        .where(_TABLE.c.arq_uuid.in_(list(arq_uuids)))
        .order_by(_TABLE.c.uuid).with_for_update()).all()
    unclean = [handle for handle in held if handle.is_cleaned]
    absent = [handle for handle in held
              if not (handle.present or handle.is_cleaned)]
    if absent:
        connection.execute(sa.delete(_TABLE).where(
            _TABLE.c.uuid.in_([handle.uuid for handle in absent])))
        connection.execute(sa.update(hosts).where(_is_host_of(absent))
                           .values(report_digest=''))
    if unclean:
        order_rows.change(connection, _is_host_of(unclean))
        _soil(connection, [handle.uuid for handle in unclean])
    connection.execute(
        sa.update(_TABLE)
        .where(_TABLE.c.uuid.in_([handle.uuid for handle in held]))
        .values(arq_uuid=None))


def _is_host_of(held: Sequence[sa.Row[Any]]) -> sa.ColumnElement[bool]:
    arqs = schema.ARQS
    return schema.HOSTS.c.hostname.in_(
        sa.select(arqs.c.hostname)
        .where(arqs.c.uuid.in_([handle.arq_uuid for handle in held])))


def _soil(connection: sa.Connection, uuids: Sequence[str]) -> None:
    """Note by which orders of their hosts the handles are unclean."""
    hosts, devices = schema.HOSTS, schema.DEVICES
    deployables = schema.DEPLOYABLES
    revision = sa.select(hosts.c.orders).select_from(
        deployables.join(devices).join(hosts)).where(
        deployables.c.uuid == _TABLE.c.deployable_uuid)
    connection.execute(
        sa.update(_TABLE).where(_TABLE.c.uuid.in_(uuids))
        .values(unclean_since=revision.scalar_subquery(),
                unclean_reason=None))
