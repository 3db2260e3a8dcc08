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

"""Hosts: what devices they have, and when they last said so."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import datetime
from typing import Any
from typing import NamedTuple

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db import draining
from nova_accel.db.rows import finding_rows
from nova_accel.db.rows import host_rows
from nova_accel.db.rows import inventory
from nova_accel.db.rows import judged_arqs
from nova_accel.db.rows import order_rows
from nova_accel.db.rows import other_hosts
from nova_accel.db.rows import reported_rows
from nova_accel.db.rows import typed
from nova_accel.db.sql import clock
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import host_contract
from nova_accel.model import host_orders

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES

_DIGEST_LENGTH = 255


class Reported(NamedTuple):
    """The consequences of a report.

    :ivar orders: those of the host. None if further parts are to come, and
        None if the orders and the digest are unchanged, by one statement
    :ivar turned: what guests have that has just failed or gone, or just works
        again
    """

    orders: host_orders.Orders | None
    turned: Sequence[judged_arqs.JudgedRow] = ()


class HostRow(host_rows.HostState):
    """A host that has reported."""

    service_host: str
    reported_at: datetime.datetime


class CalledRow(host_rows.HostState):
    """A host as a call to it needs to know it."""

    service_host: str
    contract: int


class SummaryRow(HostRow):
    """A host, what it has, and why it is drained.

    ``announced_for`` is when its drain begins, None if it is not announced.
    """

    devices: int
    units: int
    drain_reason: str | None
    announced_for: datetime.datetime | None


@engine.retried
def report(
    hostname: str,
    node_uuid: str,
    service_host: str,
    devices: Sequence[Mapping[str, Any]] | None,
    digest: str,
    orders_seen: int | None = None,
    contract: int = host_contract.FIRST,
    part: int | None = None,
    others: Collection[str] | None = None,
    findings: Sequence[Mapping[str, Any]] = (),
    orders_published: int | None = None,
) -> Reported:
    """Note what devices a host has, and tell it what to do.

    A drain of the host that is due begins.

    :param devices: in the form of
        :meth:`nova_accel.model.devices.hardware.Device.to_report`; any other
        device of the host is gone. None if nothing has changed
    :param digest: a text that differs when the devices or findings differ
    :param orders_seen: the revision of the orders that the host knows
    :param contract: the one that the report keeps to
    :param part: the number of a part, from zero; None if it is whole
    :param others: with the last part, the uuids of the devices in the parts
        before
    :param findings: with devices, what the host has found wrong, in the form
        of :meth:`nova_accel.model.finding.Finding.to_dict`. A report in parts
        has them in its last one
    :param orders_published: the revision of the orders that Placement has,
        None if the host does not know. It is noted if the devices are
        unchanged
    :raises NotFound: the devices have changed, and are not given
    :raises Conflict: the compute node, or something of the devices, is another
        host's; or the parts before are not known, so that the host has to
        begin the report again
    """
    facts = {
        'node_uuid': node_uuid,
        'service_host': service_host,
        'report_digest': digest,
        'contract': contract,
    }
    published = (
        {} if orders_published is None else _published(orders_published)
    )
    with engine.writer() as connection:
        if part is None:
            seen = {} if orders_seen is None else {'orders': orders_seen}
            if seen and _note_unchanged(
                connection,
                hostname,
                facts | seen,
                published,
                ~host_rows.IS_DUE,
                _HOSTS.c.found_silent < host_rows.TOLD_SILENT,
            ):
                return Reported(None)
            if _note_unchanged(connection, hostname, facts, published):
                return _reported(connection, hostname, ())
        if devices is None:
            raise exceptions.NotFound(
                f'Host {hostname} has not reported devices with the digest '
                f'{digest}'
            )
        is_last = part is None or others is not None
        turned = _put_part(
            connection,
            hostname,
            facts,
            devices,
            part,
            others or () if is_last else None,
        )
        if not is_last:
            return Reported(None, turned)
        finding_rows.replace(connection, hostname, findings)
        return _reported(connection, hostname, turned)


def _reported(
    connection: sa.Connection,
    hostname: str,
    turned: Sequence[judged_arqs.JudgedRow],
) -> Reported:
    """The consequences of a report that is written.

    All that works on a host that was silent works again.

    :param turned: of the devices, as in :class:`Reported`
    """
    orders, news = order_rows.read(connection, hostname)
    if news.is_due:
        draining.begin_announced(connection, hostname)
        orders, _news = order_rows.read(connection, hostname)
    if news.is_back:
        connection.execute(
            sa.update(_HOSTS)
            .where(_HOSTS.c.hostname == hostname)
            .values(found_silent=0)
        )
        works = judged_arqs.read_working(connection, [hostname])
        again = {arq['uuid'] for arq in works}
        turned = [
            *(arq for arq in turned if arq['uuid'] not in again),
            *works,
        ]
    return Reported(orders, turned)


def _note_unchanged(
    connection: sa.Connection,
    hostname: str,
    facts: Mapping[str, Any],
    values: Mapping[str, Any],
    *where: sa.ColumnElement[bool],
) -> bool:
    """Note that a host has reported, if its row has these facts.

    :param values: what is noted besides
    :param where: further conditions for the row
    """
    has_facts = (_HOSTS.c[name] == value for name, value in facts.items())
    return _update_host(
        connection,
        sa.and_(_HOSTS.c.hostname == hostname, *has_facts, *where),
        values,
    )


def _published(revision: int) -> dict[str, Any]:
    """The columns that note which orders Placement has.

    A host that was forgotten may tell of a revision that is still to come.
    """
    is_known = _HOSTS.c.orders >= revision
    return {
        'orders_published': sa.case(
            (is_known, revision), else_=_HOSTS.c.orders_published
        ),
        'unpublished': sa.case(
            (sa.and_(is_known, _HOSTS.c.unpublished <= revision), sa.null()),
            else_=_HOSTS.c.unpublished,
        ),
    }


def _put_part(
    connection: sa.Connection,
    hostname: str,
    facts: Mapping[str, Any],
    devices: Sequence[Mapping[str, Any]],
    part: int | None,
    others: Collection[str] | None,
) -> list[judged_arqs.JudgedRow]:
    """Write a part of a report, or a whole one. See :func:`report`.

    :param facts: the columns that the host states
    :param others: as for :func:`.inventory.replace`, which says what is
        returned, too
    """
    _put_host(connection, hostname, facts, part, is_last=others is not None)
    wanted = reported_rows.rows(hostname, devices)
    other_hosts.check(connection, hostname, facts['node_uuid'], wanted)
    return inventory.replace(connection, hostname, wanted, others)


def _put_host(
    connection: sa.Connection,
    hostname: str,
    facts: Mapping[str, Any],
    part: int | None,
    is_last: bool,
) -> None:
    """Write the row of a host that reports devices.

    Until the last part of the report it has another digest, so that the report
    counts as a new one. Each part changes the host.

    :param facts: the columns that the host states
    :raises Conflict: the part does not follow the part before.
    """
    begun = f'part of {facts["report_digest"]}'[:_DIGEST_LENGTH]
    known = _HOSTS.c.hostname == hostname
    if part:
        known = sa.and_(known, _HOSTS.c.report_digest == begun)
    if not is_last:
        facts = {**facts, 'report_digest': begun}
    row = {**facts, 'changed_at': clock.now()}
    if not _update_host(connection, known, row):
        if part:
            raise exceptions.Conflict(
                f'part {part} of the report of host {hostname} does not '
                'follow the part before: begin the report again'
            )
        _insert_host(
            connection,
            {'hostname': hostname, 'reported_at': clock.now(), **row},
        )


@engine.retried
def get_all(silence_s: int) -> list[HostRow]:
    """All hosts, sorted by their names.

    :param silence_s: seconds without a report after which a host is silent
    """
    query = sa.select(
        _HOSTS.c.hostname,
        _HOSTS.c.service_host,
        _HOSTS.c.reported_at,
        host_rows.is_silent(silence_s).label('is_silent'),
    ).order_by(_HOSTS.c.hostname)
    with engine.reader() as connection:
        return typed.rows(HostRow, connection.execute(query))


@engine.retried
def get_called(hostname: str, silence_s: int) -> CalledRow | None:
    """A host that is to be called, None if it has never reported.

    :param silence_s: as for :func:`get_all`
    """
    query = sa.select(
        _HOSTS.c.hostname,
        _HOSTS.c.service_host,
        _HOSTS.c.contract,
        host_rows.is_silent(silence_s).label('is_silent'),
    ).where(_HOSTS.c.hostname == hostname)
    with engine.reader() as connection:
        found = connection.execute(query).mappings().one_or_none()
    return None if found is None else typed.row(CalledRow, found)


@engine.retried
def get_summaries(silence_s: int) -> list[SummaryRow]:
    """All hosts with the numbers of what they have, by their names.

    :param silence_s: as for :func:`get_all`
    """
    devices = (
        sa.select(_DEVICES.c.hostname, sa.func.count().label('devices'))
        .group_by(_DEVICES.c.hostname)
        .subquery()
    )
    units = (
        sa.select(_DEVICES.c.hostname, sa.func.count().label('units'))
        .select_from(_HANDLES.join(_DEPLOYABLES).join(_DEVICES))
        .where(_HANDLES.c.present)
        .group_by(_DEVICES.c.hostname)
        .subquery()
    )
    query = (
        sa.select(
            _HOSTS.c.hostname,
            _HOSTS.c.service_host,
            _HOSTS.c.reported_at,
            host_rows.is_silent(silence_s).label('is_silent'),
            sa.func.coalesce(devices.c.devices, 0).label('devices'),
            sa.func.coalesce(units.c.units, 0).label('units'),
            _HOSTS.c.drain_reason,
            sa.case(
                (_HOSTS.c.drained_at.is_(None), _HOSTS.c.drained_from)
            ).label('announced_for'),
        )
        .select_from(
            _HOSTS.outerjoin(
                devices, devices.c.hostname == _HOSTS.c.hostname
            ).outerjoin(units, units.c.hostname == _HOSTS.c.hostname)
        )
        .order_by(_HOSTS.c.hostname)
    )
    with engine.reader() as connection:
        return typed.rows(SummaryRow, connection.execute(query))


@engine.retried
def count() -> int:
    """How many hosts have devices."""
    query = sa.select(sa.func.count(_DEVICES.c.hostname.distinct()))
    with engine.reader() as connection:
        return int(connection.scalar(query) or 0)


@engine.retried
def get_contracts(newest: int) -> list[tuple[str, int]]:
    """The hosts whose contract is older, and which it is, by their names."""
    query = (
        sa.select(_HOSTS.c.hostname, _HOSTS.c.contract)
        .where(_HOSTS.c.contract < newest)
        .order_by(_HOSTS.c.hostname)
    )
    with engine.reader() as connection:
        return [tuple(row) for row in connection.execute(query)]


@engine.retried
def get_silent_node(hostname: str, silence_s: int) -> str:
    """The uuid of a silent host's compute node.

    :raises NotFound: there is no such host
    :raises Conflict: the host still reports
    """
    with engine.reader() as connection:
        return host_rows.silent_node(connection, hostname, silence_s)


@engine.retried
def forget(
    hostname: str, silence_s: int, is_dry_run: bool = False
) -> dict[str, int]:
    """Delete a host that will not come back, with all that it has.

    :param silence_s: seconds without a report after which a host is silent
    :param is_dry_run: whether the transaction is undone at its end
    :returns: table name -> how many rows were deleted
    :raises NotFound: there is no such host
    :raises Conflict: the host still reports
    """
    with engine.writer() as connection:
        host_rows.lock(connection, hostname)
        host_rows.silent_node(connection, hostname, silence_s)
        deleted = host_rows.delete(connection, hostname)
        if is_dry_run:
            connection.rollback()
        return deleted


def _update_host(
    connection: sa.Connection,
    where: sa.ColumnElement[bool],
    values: Mapping[str, Any],
) -> bool:
    return (
        connection.execute(
            sa.update(_HOSTS)
            .where(where)
            .values(
                reported_at=clock.now(),
                found_silent=sa.case(
                    (
                        _HOSTS.c.found_silent == host_rows.TOLD_SILENT,
                        host_rows.TOLD_SILENT,
                    ),
                    else_=0,
                ),
                **values,
            )
        ).rowcount
        > 0
    )


def _insert_host(connection: sa.Connection, row: Mapping[str, Any]) -> None:
    with engine.raced(
        exceptions.Conflict(
            f'host {row["hostname"]} is being reported already'
        )
    ):
        connection.execute(sa.insert(_HOSTS).values(row))
