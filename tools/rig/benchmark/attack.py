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

"""What a client waits for while others attack the API as it is deployed."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from concurrent import futures
import contextlib
import itertools
import json
import threading
import time
from typing import Any

from nova_accel.testing import reports
from rig.benchmark import http_client
from rig.serving import api as served_api
from rig.serving import nova_conf
from rig.serving import slow_clients

#: Seconds that a host is waited for, which does not answer.
_HOST_S = 20

#: How many connections the slow clients have.
_CONNECTIONS = 100

#: How many calls are made at once: more than there are workers.
_AT_ONCE = 24

#: Items that a list of unique items must not have.
_ITEMS = 4000

_HOST = reports.SimulatedHost(regions=(8,) * (_AT_ONCE // 8))

_V2 = '/accelerator/v2'

_IMAGE = '00000000-0000-4000-8000-000000000001'

Call = tuple[str, str, Any]


def figures(seconds: int) -> dict[str, Any]:
    """Attack the API in several ways, one after the other.

    :param seconds: that each attack goes on
    :returns: the attack -> the longest wait of another client, and the
        answers that the attackers got
    """
    sections: nova_conf.Sections = {
        'DEFAULT': {
            'transport_url': 'fake:/',
            'rpc_response_timeout': str(_HOST_S),
            'long_rpc_timeout': str(_HOST_S),
        }
    }
    with served_api.ServedApi(processes=None, sections=sections) as api:
        api.map_host(_HOST.service_host)
        client = _client(api.port)
        _expect(client.ask('PUT', f'{_V2}/hosts/{_HOST.hostname}', _report()))
        return {
            name: _measured(api.port, attack(api.port), seconds)
            for name, attack in _attacks(_deployables(client)).items()
        }


def _attacks(
    deployables: list[str],
) -> dict[str, Callable[[int], contextlib.AbstractContextManager[Any]]]:
    programmings = [_programming(uuid) for uuid in deployables]
    too_many = ('PUT', f'{_V2}/hosts/{_HOST.hostname}/provisioning', _items())
    return {
        'nobody': lambda _port: contextlib.nullcontext({}),
        'slow_headers': _slow([slow_clients.HEADERS]),
        'slow_bodies': _slow([slow_clients.BODY]),
        'odd_lengths': _slow(slow_clients.ODD_LENGTHS),
        'programmings_of_one_region': _calls(programmings[:1]),
        'programmings_of_many_regions': _calls(programmings),
        'many_items': _calls([too_many]),
    }


def _slow(
    beginnings: Iterable[bytes],
) -> Callable[[int], contextlib.AbstractContextManager[Any]]:
    @contextlib.contextmanager
    def attack(port: int) -> Iterator[dict[str, int]]:
        each = itertools.islice(itertools.cycle(beginnings), _CONNECTIONS)
        with slow_clients.SlowClients(('127.0.0.1', port), each):
            yield {}

    return attack


def _calls(
    calls: list[Call],
) -> Callable[[int], contextlib.AbstractContextManager[Any]]:
    """Some calls at once, each again as soon as it is answered."""

    @contextlib.contextmanager
    def attack(port: int) -> Iterator[collections.Counter[str]]:
        stopped = threading.Event()
        answers: collections.Counter[str] = collections.Counter()

        def repeat(call: Call) -> None:
            client = _client(port)
            while not stopped.is_set():
                status, _text = client.ask(*call)
                # One thread at a time runs this.
                answers[str(status)] += 1
                stopped.wait(0.05)

        each = itertools.islice(itertools.cycle(calls), _AT_ONCE)
        with futures.ThreadPoolExecutor(_AT_ONCE) as threads:
            asked = [threads.submit(repeat, call) for call in each]
            try:
                yield answers
            finally:
                stopped.set()
        for call in asked:
            call.result()

    return attack


def _measured(
    port: int,
    attack: contextlib.AbstractContextManager[dict[str, int]],
    seconds: int,
) -> dict[str, Any]:
    client = _client(port)
    waits: dict[str, list[float]] = {'/healthcheck': [], f'{_V2}/devices': []}
    with attack as answers:
        # All attackers have begun by then.
        time.sleep(1)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for path, found in waits.items():
                began = time.monotonic()
                _expect(client.ask('GET', path))
                found.append(time.monotonic() - began)
            time.sleep(0.02)
    return {
        'longest_wait_s': {
            path: round(max(found), 3) for path, found in waits.items()
        },
        'calls': sum(map(len, waits.values())),
        'answers_to_attackers': dict(answers),
    }


def _client(port: int) -> http_client.HttpClient:
    return http_client.HttpClient(
        port,
        {
            'X-User-Id': 'user',
            'X-Project-Id': 'project',
            'X-Roles': 'admin,member,reader,service',
            'X-Service-Roles': 'service',
            'Content-Type': 'application/json',
            'OpenStack-API-Version': 'accelerator latest',
        },
    )


def _expect(answer: tuple[int, bytes]) -> bytes:
    status, text = answer
    if status >= 300:
        raise RuntimeError(f'{status}: {text.decode()}')
    return text


def _report() -> dict[str, Any]:
    return {
        'node_uuid': _HOST.node_uuid,
        'service_host': _HOST.service_host,
        'orders_seen': None,
        'contract': _HOST.contract,
        'digest': 'attack',
        'devices': _HOST.reported(),
    }


def _deployables(client: http_client.HttpClient) -> list[str]:
    answer = json.loads(_expect(client.ask('GET', f'{_V2}/deployables')))
    return [each['uuid'] for each in answer['deployables']]


def _programming(uuid: str) -> Call:
    return 'POST', f'{_V2}/fpga/{uuid}', {'glance_bitstream_uuid': _IMAGE}


def _items() -> dict[str, Any]:
    return {'arqs': [{'number': number} for number in range(_ITEMS)]}
