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

"""The soak test of claims, ``tools/bench claims``.

Many servers are scheduled at once for exactly as many free devices, all on the
same answer of Placement. Then each of them gets one.
"""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Iterable
from collections.abc import Sequence
from concurrent import futures
import json
import logging
import random
import time
from typing import Any
from typing import NamedTuple

import fixtures
from nova import exception
from nova import objects
from nova.scheduler.client import report
from oslo_utils import uuidutils
from placement import db_api
from placement.db.sqlalchemy import models
import sqlalchemy as sa

from nova_accel.model import naming
from nova_accel.testing import scheduling
from rig.benchmark import progress_bar
from rig.loopback import bare_scheduler
from rig.loopback import checked_schemas
from rig.loopback import crowd
from rig.stubs import stock

#: The numbers of devices of the hosts.
_HOSTS = (32, 16, 12, 8, 8, 4, 4, 2, 1, 1)

#: How many servers are scheduled at once.
_LEAST, _MOST = 8, 32

_GROUP = 'device_profile_0'


class _Round(NamedTuple):
    """The servers that were scheduled at once."""

    servers: int
    refused: int
    doubles: int


class Claims(fixtures.Fixture):
    """Hosts in a real Placement, with Nova's SchedulerManager.

    :ivar lost: how many claims were lost to another server
    """

    def _setUp(self) -> None:
        # Placement logs each request, and each claim that is lost.
        self.useFixture(fixtures.FakeLogger(level=logging.ERROR))
        self.useFixture(crowd.PlacementWorkers(1))
        self.useFixture(checked_schemas.CheckedSchemas())
        self._placement = self.useFixture(scheduling.Placement())
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.scheduler.known_stock.current', self._current
            )
        )
        self.lost = 0
        self._claim = report.SchedulerReportClient.claim_resources
        self.useFixture(
            fixtures.MockPatchObject(
                report.SchedulerReportClient,
                'claim_resources',
                self._claim_and_count,
            )
        )
        self._known: stock.Stock | None = None
        self._devices: dict[str, list[str]] = {}
        self._roots = {
            f'host{number}': self._add_host(f'host{number}', devices)
            for number, devices in enumerate(_HOSTS)
        }
        self._spec = scheduling.request_spec(
            groups=[
                objects.RequestGroup(
                    requester_id=_GROUP,
                    resources={'FPGA': 1},
                    required_traits={naming.OWNERSHIP_TRAIT},
                )
            ]
        )
        self._answer = bare_scheduler.Answer(self._spec)

    def _add_host(self, name: str, devices: int) -> str:
        root = self._placement.add_provider(
            name, {'VCPU': 1000, 'MEMORY_MB': 1_000_000}
        )
        self._devices[name] = [
            self._placement.add_provider(
                f'{name}_{number}',
                {'FPGA': 1},
                root,
                [naming.OWNERSHIP_TRAIT],
            )
            for number in range(devices)
        ]
        return root

    def _claim_and_count(self, *args: Any, **kwargs: Any) -> bool:
        is_claimed = bool(self._claim(self._placement.client, *args, **kwargs))
        self.lost += not is_claimed
        return is_claimed

    def _current(self) -> object:
        return None if self._known is None else self._known.known

    def run(self, is_known: bool) -> _Round:
        """Schedule as many servers as some hosts have devices, and end them.

        :param is_known: whether nova-scheduler knows the free units
        """
        hosts = _some_hosts()
        self._know(hosts if is_known else ())
        scheduler = bare_scheduler.BareScheduler(
            {name: self._roots[name] for name in hosts}
        )
        servers = [
            uuidutils.generate_uuid()
            for name in hosts
            for _device in self._devices[name]
        ]

        def schedule(server: str) -> str | None:
            try:
                [[selected]] = scheduler.select(
                    self._spec, self._answer, [server]
                )
            except exception.NoValidHost:
                return None
            request = json.loads(selected.allocation_request)
            return str(request['mappings'][_GROUP][0])

        with futures.ThreadPoolExecutor(len(servers)) as threads:
            got = [
                device
                for device in threads.map(schedule, servers)
                if device is not None
            ]
        _end_all()
        return _Round(
            len(servers), len(servers) - len(got), len(got) - len(set(got))
        )

    def _know(self, hosts: Sequence[str]) -> None:
        self._known = None
        if hosts:
            known = self._known = stock.Stock()
            for name in hosts:
                for device in self._devices[name]:
                    known.add(name, device)


def _end_all() -> None:
    """End all servers; to ask Placement would be a tenth of the time."""
    with db_api.get_placement_engine().begin() as connection:
        for model in (models.Allocation, models.Consumer):
            connection.execute(sa.delete(model.__table__))


def _some_hosts() -> list[str]:
    """Some hosts with so many devices together as are scheduled at once."""
    [wanted] = random.sample(range(_LEAST, _MOST + 1), 1)
    while True:
        chosen: list[int] = []
        for number in random.sample(range(len(_HOSTS)), len(_HOSTS)):
            if _devices([*chosen, number]) <= wanted:
                chosen.append(number)
        if _devices(chosen) == wanted:
            return [f'host{number}' for number in chosen]


def _devices(numbers: Iterable[int]) -> int:
    return sum(_HOSTS[number] for number in numbers)


def measure(boots: int) -> dict[str, Any]:
    """Schedule so many servers, or a few more."""
    rounds: list[_Round] = []
    begin = time.monotonic()
    done = 0
    with Claims() as claims, progress_bar.shown('Boots', boots) as tell:
        while done < boots:
            rounds.append(claims.run(is_known=len(rounds) % 2 == 0))
            done += rounds[-1].servers
            tell(done)
    return {
        'boots': done,
        'at_once': [_LEAST, _MOST],
        'rounds': len(rounds),
        'refused': sum(each.refused for each in rounds),
        'doubles': sum(each.doubles for each in rounds),
        'lost': claims.lost,
        'seconds': round(time.monotonic() - begin),
    }
