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
import random
from typing import NamedTuple

from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db import schema

_TABLE = schema.ATTACH_HANDLES

# Two that choose among the same many handles should choose different ones.
_RANDOM = random.SystemRandom()


class Slot(NamedTuple):
    """What the handle of an ARQ must be a unit of."""

    hostname: str
    rp_uuid: str
    resource_class: str


class Stock:
    """The free handles of some providers, as they were when read."""

    def __init__(self, free: Mapping[Slot, list[str]]) -> None:
        self._free = free
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
        :raises AcceleratorsBusy: fewer are free than wanted
        """
        for slot, amount in collections.Counter(wanted.values()).items():
            free = len(self._free.get(slot, ()))
            if free < amount:
                raise exceptions.AcceleratorsBusy(
                    f'{amount} {slot.resource_class} of resource provider '
                    f'{slot.rp_uuid} on host {slot.hostname} are wanted and '
                    f'{free} are free')
        return {self._free[slot].pop(): arq_uuid
                for arq_uuid, slot in wanted.items()}


def stock(connection: sa.Connection, rp_uuids: Collection[str]) -> Stock:
    """What is free of the providers, in one SELECT."""
    deployables, devices = schema.DEPLOYABLES, schema.DEVICES
    free = sa.and_(
        _TABLE.c.deployable_uuid == deployables.c.uuid,
        _TABLE.c.arq_uuid.is_(None))
    query = sa.select(
        devices.c.hostname, deployables.c.rp_uuid,
        deployables.c.resource_class, _TABLE.c.uuid,
    ).select_from(deployables.join(devices).outerjoin(_TABLE, free)).where(
        deployables.c.rp_uuid.in_(list(rp_uuids)))
    found: dict[Slot, list[str]] = {}
    for *slot, handle_uuid in connection.execute(query):
        handles = found.setdefault(Slot(*slot), [])
        if handle_uuid is not None:
            handles.append(handle_uuid)
    for handles in found.values():
        _RANDOM.shuffle(handles)
    return Stock(found)


def take(connection: sa.Connection, allotted: Mapping[str, str]) -> None:
    """Take the handles for their ARQs, if all of them are free still.

    :param allotted: handle uuid -> ARQ uuid
    :raises RetryRequest: another transaction took one; for
        :func:`nova_accel.db.engine.retried`, AcceleratorsBusy in the end
    """
    if not allotted:
        return
    taken = connection.execute(
        sa.update(_TABLE)
        .where(_TABLE.c.uuid.in_(list(allotted)), _TABLE.c.arq_uuid.is_(None))
        .values(arq_uuid=sa.case(allotted, value=_TABLE.c.uuid)))
    if taken.rowcount != len(allotted):
        raise db_exc.RetryRequest(exceptions.AcceleratorsBusy(
            'other requests took the free attach handles'))


def give_back(connection: sa.Connection, arq_uuids: Collection[str]) -> None:
    """Free what the ARQs hold; the ARQs must still be bound in their rows.

    A handle that its host does not report any more goes away. So that its
    device can go too, the host's next report is compared as a whole.
    """
    held = connection.execute(
        sa.select(_TABLE.c.uuid, _TABLE.c.present)
        .where(_TABLE.c.arq_uuid.in_(list(arq_uuids)))
        .order_by(_TABLE.c.uuid).with_for_update()).all()
    absent = [handle.uuid for handle in held if not handle.present]
    if absent:
        hosts, arqs = schema.HOSTS, schema.ARQS
        connection.execute(
            sa.delete(_TABLE).where(_TABLE.c.uuid.in_(absent)))
        connection.execute(
            sa.update(hosts)
            .where(hosts.c.hostname.in_(
                sa.select(arqs.c.hostname)
                .where(arqs.c.uuid.in_(list(arq_uuids)))))
            .values(report_digest=''))
    connection.execute(
        sa.update(_TABLE)
        .where(_TABLE.c.uuid.in_([handle.uuid for handle in held]))
        .values(arq_uuid=None))
