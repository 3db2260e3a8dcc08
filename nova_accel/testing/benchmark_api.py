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

"""How fast the API is, as it is deployed: uWSGI, MariaDB, HTTP.

A cycle is what Nova's Cyborg client does with an accelerator request (ARQ) in
the life of a server: create, bind, get, delete.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from concurrent import futures
import contextlib
import http.client
import itertools
import json
import statistics
import time
from typing import Any

from oslo_utils import uuidutils

from nova_accel.testing import benchmark_arqs
from nova_accel.testing import counted_database
from nova_accel.testing import reports
from nova_accel.testing import served_api

#: How many cycles come before those that are measured: they make caches.
_WARM_UP = 20

_STEPS = ('create', 'bind', 'get', 'delete')

_HEADERS = {
    'Content-Type': 'application/json', 'X-User-Id': 'nova',
    'X-Project-Id': 'a' * 32, 'X-Roles': 'member,reader',
    'X-Service-Roles': 'service'}


class Client:
    """Goes through cycles, one after the other.

    :param host: whose functions it binds
    :ivar latencies_ms: of each step, in the order of the cycles
    """

    def __init__(self, port: int, host: reports.SimulatedHost) -> None:
        self._port = port
        self._hostname = host.hostname
        self._rp_uuid = host.allocated_functions(1).uuid
        self.latencies_ms: dict[str, list[float]] = {
            step: [] for step in _STEPS}

    def cycle(self) -> None:
        """:raises AssertionError: an answer is not what it should be"""
        path = '/v2/accelerator_requests'
        body = {'device_profile_name': benchmark_arqs.PROFILE}
        [arq] = self._ask('create', 201, 'POST', path, body)['arqs']
        fields = {'hostname': self._hostname, 'device_rp_uuid': self._rp_uuid,
                  'instance_uuid': uuidutils.generate_uuid()}
        self._ask('bind', 202, 'PATCH', path, {arq['uuid']: [
            {'op': 'add', 'path': f'/{name}', 'value': value}
            for name, value in fields.items()]})
        found = self._ask('get', 200, 'GET', f'{path}/{arq["uuid"]}')
        assert found['state'] == 'Bound', found
        self._ask('delete', 204, 'DELETE', f'{path}?arqs={arq["uuid"]}')

    def _ask(self, step: str, status: int, method: str, path: str,
             body: Any = None) -> Any:
        begin = time.perf_counter()
        # uWSGI's own HTTP socket keeps no connection alive.
        connection = http.client.HTTPConnection(
            '127.0.0.1', self._port, timeout=60)
        with contextlib.closing(connection):
            connection.request(
                method, path, None if body is None else json.dumps(body),
                _HEADERS)
            answer = connection.getresponse()
            text = answer.read()
        self.latencies_ms[step].append((time.perf_counter() - begin) * 1000)
        assert answer.status == status, f'{step}: {answer.status} {text!r}'
        return json.loads(text) if text else None


def figures(others: Sequence[int], clients: Sequence[int], seconds: float,
            processes: int = 2) -> dict[str, Any]:
    """Measure beside so many other ARQs, with so many clients at once.

    :param seconds: that each measurement takes
    """
    with (counted_database.CountedDatabase() as database,
          served_api.ServedApi(database.url, database.url,
                               processes) as api):
        benchmark_arqs.make_profile()
        found: dict[str, Any] = {}
        already = 0
        for amount in sorted(others):
            benchmark_arqs.fill(amount, already)
            already = amount
            found[str(amount)] = _beside(api, database, clients, seconds)
        return {'others': found, 'rss_mb': round(api.memory_mb(), 1)}


def _beside(api: served_api.ServedApi,
            database: counted_database.CountedDatabase,
            clients: Sequence[int], seconds: float) -> dict[str, Any]:
    host = reports.SimulatedHost('benchmark', regions=(), functions=64)
    host.report()
    client = Client(api.port, host)
    for _time in range(_WARM_UP):
        client.cycle()
    counted = Client(api.port, host)
    with database.counted() as count:
        for _time in range(_WARM_UP):
            counted.cycle()
    rates = {}
    for amount in clients:
        host.report()
        several = [Client(api.port, host) for _client in range(amount)]
        rates[str(amount)] = round(_rate(several, seconds), 2)
        if amount == min(clients):
            latencies = _latencies(several)
    return {
        'cycles_per_s': rates,
        'statements_per_cycle': count.statements / _WARM_UP,
        'commits_per_cycle': count.others / _WARM_UP,
        'latency_ms': latencies}


def _rate(clients: Sequence[Client], seconds: float) -> float:
    """Cycles in a second of all clients together."""
    begin = time.monotonic()

    def run(client: Client) -> int:
        for done in itertools.count(1):
            client.cycle()
            if time.monotonic() > begin + seconds:
                return done
        raise AssertionError('counting has no end')

    with futures.ThreadPoolExecutor(len(clients)) as executor:
        cycles = sum(executor.map(run, clients))
    return cycles / (time.monotonic() - begin)


def _latencies(clients: Sequence[Client]) -> Mapping[str, Mapping[str, float]]:
    result = {}
    for step in _STEPS:
        found = sorted(itertools.chain.from_iterable(
            client.latencies_ms[step] for client in clients))
        result[step] = {
            'median': round(statistics.median(found), 2),
            'p99': round(found[int(len(found) * 0.99)], 2)}
    return result
