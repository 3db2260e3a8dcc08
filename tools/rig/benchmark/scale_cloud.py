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

"""The cloud of ``tools/bench scale``, and the faults in the middle."""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Iterator
from concurrent import futures
import contextlib
import logging
import threading
import time
from typing import Any

import sqlalchemy as sa

from nova_accel import conf
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import naming
from nova_accel.testing import database
from rig.benchmark import arqs
from rig.benchmark import progress_bar
from rig.benchmark import scale
from rig.benchmark import scale_boots
from rig.benchmark import scale_bus
from rig.benchmark import scale_hosts
from rig.serving import api as served_api
from rig.serving import placement as served_placement
from rig.serving import relay

CONF = conf.CONF

#: How many calls are under way at once. Each waits while the API is away.
_REPORTS, _BOOTS = 256, 32

#: How many clients fill Placement at once.
_FILLING = 4


class Pool:
    """The API as it is deployed, its database, and what both use.

    :ivar cpu_s: for how many seconds it has computed until now, without its
        starts
    :ivar memory: of the pool, by when it was
    :ivar away_s: for how long it was away, by why
    """

    def __init__(
        self, api: served_api.ServedApi, engine: sa.Engine, line: relay.Relay
    ) -> None:
        self.memory: dict[str, dict[str, float]] = {}
        self.away_s: dict[str, float] = {}
        self._api = api
        self._engine = engine
        self._line = line
        self._before_s = 0.0
        self._started_at_s = api.usage().cpu_s

    @property
    def cpu_s(self) -> float:
        return self._before_s + self._api.usage().cpu_s - self._started_at_s

    def note_memory(self, when: str) -> None:
        self.memory[when] = self._api.usage().memory()

    def restart(self) -> None:
        begin = time.monotonic()
        self._before_s = self.cpu_s
        self._api.restart()
        self._started_at_s = self._api.usage().cpu_s
        self.away_s['restart'] = round(time.monotonic() - begin, 1)

    def lose_database(self, seconds: float) -> None:
        begin = time.monotonic()
        self._line.cut()
        time.sleep(seconds)
        self._line.mend()
        self.away_s['database'] = round(time.monotonic() - begin, 1)

    def rows(self) -> dict[str, int]:
        """The number of rows of each table."""
        with self._engine.connect() as connection:
            return {
                table.name: connection.execute(
                    sa.select(sa.func.count()).select_from(table)
                ).scalar_one()
                for table in schema.METADATA.sorted_tables
            }


def figures(wanted: scale.Scale) -> dict[str, Any]:
    """Measure a cloud while it works.

    :raises RuntimeError: servers cannot be deleted at the end
    :raises ConfigurationError: there is no RabbitMQ
    """
    scale_bus.check()
    with contextlib.ExitStack() as stack:
        bus = stack.enter_context(scale_bus.Bus())
        # Nova's client logs each claim that is lost.
        logging.disable(logging.ERROR)
        stack.callback(logging.disable, logging.NOTSET)
        own = stack.enter_context(database.Database('mysql', tables=False))
        direct = own.engine
        line = stack.enter_context(
            relay.Relay(
                direct.url.host or '127.0.0.1', direct.url.port or 3306
            )
        )
        url = direct.url.set(host='127.0.0.1', port=line.port)
        text = url.render_as_string(hide_password=False)
        # nova-scheduler's part, in this process, has the same line.
        CONF.set_override('connection', text, 'nova_accel_database')
        engine.forget()
        api = stack.enter_context(
            served_api.ServedApi(
                text, text, processes=None, sections=bus.sections
            )
        )
        arqs.make_profile()
        hosts = [
            scale_hosts.Host(f'compute-{number}', f'{api.url}/v2')
            for number in range(wanted.hosts)
        ]
        return _Measurement(
            wanted,
            Pool(api, direct, line),
            hosts,
            scale_boots.Boots(_filled_placement(stack, hosts), hosts),
        ).figures() | {'notifications': bus.all_received()}


class _Measurement:
    """The work of a cloud for some time."""

    def __init__(
        self,
        wanted: scale.Scale,
        pool: Pool,
        hosts: list[scale_hosts.Host],
        boots: scale_boots.Boots,
    ) -> None:
        self._wanted = wanted
        self._pool = pool
        self._hosts = hosts
        self._boots = boots
        self._reports = scale_hosts.Waits()
        self._calls: list[futures.Future[None]] = []

    def figures(self) -> dict[str, Any]:
        self._report_all()
        self._reports = scale_hosts.Waits()
        before = self._pool.rows()
        self._pool.note_memory('at_first')
        begin = time.monotonic()
        cpu_s = self._pool.cpu_s
        with self._working():
            self._break()
        seconds = time.monotonic() - begin
        cpu_s = self._pool.cpu_s - cpu_s
        self._pool.note_memory('at_last')
        self._boots.delete_all()
        wanted, boots, reports = self._wanted, self._boots, self._reports
        return {
            'hosts': wanted.hosts,
            'devices_of_a_host': scale_hosts.DEVICES,
            'minutes': wanted.minutes,
            'cpu_percent': scale.percent(cpu_s, seconds),
            **scale.shares(self._undisturbed, wanted.hosts),
            'memory': self._pool.memory,
            'away_s': self._pool.away_s,
            'boots': boots.booted,
            'boots_failed': dict(boots.failed),
            'refused_wrongly': dict(boots.refused),
            'rescheduled': boots.rescheduled,
            'schedule_ms': scale.latencies(boots.scheduled.seconds),
            'acquire_ms': scale.latencies(boots.acquired.seconds),
            'release_ms': scale.latencies(boots.released.seconds),
            'reports_per_s': round(len(reports.seconds) / seconds, 2),
            'reports_failed': reports.failed,
            'report_ms': scale.latencies(reports.seconds),
            'rows': scale.rows(before, self._pool.rows()),
        }

    def _report_all(self) -> None:
        with futures.ThreadPoolExecutor(_FILLING) as threads:
            list(
                threads.map(
                    lambda host: host.report(self._reports), self._hosts
                )
            )
        if self._reports.failed:
            raise RuntimeError(f'{self._reports.failed} hosts cannot report')

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """Hosts report, and servers come and go, until the time is over."""
        wanted = self._wanted
        stopped = threading.Event()
        with (
            futures.ThreadPoolExecutor(_REPORTS) as reports,
            futures.ThreadPoolExecutor(_BOOTS) as boots,
            futures.ThreadPoolExecutor(2) as clocks,
        ):

            def report(number: int) -> None:
                host = self._hosts[number % len(self._hosts)]
                self._calls.append(reports.submit(host.report, self._reports))

            def boot(_number: int) -> None:
                self._calls.append(boots.submit(self._boots.boot))
                self._calls.append(
                    boots.submit(self._boots.delete, wanted.boots)
                )

            clocked = [
                clocks.submit(
                    scale.paced,
                    call,
                    interval_s,
                    wanted.seconds,
                    time.monotonic,
                    stopped,
                )
                for call, interval_s in (
                    (report, wanted.report_s / len(self._hosts)),
                    (boot, 60 / wanted.boots),
                )
            ]
            try:
                yield
                for each in clocked:
                    each.result()
            finally:
                stopped.set()
        for call in self._calls:
            call.result()

    def _break(self) -> None:
        """Restart the pool, lose the database, and wait for the end."""
        wanted = self._wanted
        begin = time.monotonic()
        with progress_bar.shown('Seconds', round(wanted.seconds)) as tell:

            def wait(until_s: float) -> None:
                while (done := time.monotonic() - begin) < until_s:
                    tell(int(done))
                    time.sleep(min(1, until_s - done))

            cpu_s = self._pool.cpu_s
            wait(wanted.seconds / 3)
            self._undisturbed = scale.percent(
                self._pool.cpu_s - cpu_s, wanted.seconds / 3
            )
            self._pool.note_memory('before_restart')
            self._pool.restart()
            wait(wanted.seconds * 2 / 3)
            self._pool.note_memory('before_failover')
            self._pool.lose_database(wanted.away_s)
            wait(wanted.seconds)
            tell(round(wanted.seconds))


def _filled_placement(
    stack: contextlib.ExitStack, hosts: list[scale_hosts.Host]
) -> served_placement.ServedPlacement:
    """A Placement with the providers of the hosts."""
    placement = stack.enter_context(served_placement.ServedPlacement())

    def fill(host: scale_hosts.Host) -> None:
        simulated = host.simulated
        root = placement.add_provider(
            simulated.hostname,
            {'VCPU': 64, 'MEMORY_MB': 65536},
            uuid=simulated.node_uuid,
        )
        units = simulated.allocated_functions(scale_hosts.DEVICES)
        placement.add_provider(
            f'{simulated.hostname}_qat',
            dict(units.resources),
            root,
            [naming.OWNER_TRAIT, naming.OWNERSHIP_TRAIT],
            units.rp_uuid,
        )

    # The first one makes the names, which the others find.
    fill(hosts[0])
    with futures.ThreadPoolExecutor(_FILLING) as threads:
        list(threads.map(fill, hosts[1:]))
    return placement
