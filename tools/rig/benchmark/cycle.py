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

"""The cycle of requests that is measured, on any server of Cyborg's API.

These are the requests of Nova 34's Cyborg client while it builds and deletes
a server. It creates an accelerator request (ARQ) and binds it. It gets the
instance's ARQs until they are bound, and finally deletes them.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent import futures
import dataclasses
import itertools
import json
import math
import statistics
import time
from typing import Any

from oslo_utils import uuidutils

from rig.benchmark import counted_database
from rig.benchmark import http_client
from rig.serving import usage

#: The callers: a member of a project that has no other ARQs, or a user who is
#: an administrator as well.
ROLES = {'member': 'member,reader', 'admin': 'admin,member,reader'}

#: The cycles before a measurement, which fill caches, and their time limit in
#: seconds. After them, the statements of as many cycles are counted.
_WARM_UP = 20
_WARM_UP_S = 5

_STEPS = ('create', 'bind', 'get', 'delete')

#: Each measurement is split into so many turns, which alternate with others.
_TURNS = 3

_POLL_S = 0.01

_PATH = '/v2/accelerator_requests'


def headers(caller: str) -> dict[str, str]:
    """The headers of Nova's request for a caller, without a token."""
    return {
        'Content-Type': 'application/json',
        'X-User-Id': 'nova',
        'X-Project-Id': 'a' * 32,
        'X-Roles': ROLES[caller],
        'X-Service-Roles': 'service',
    }


@dataclasses.dataclass(frozen=True)
class Target:
    """The API to measure, and the ARQs that it binds.

    :ivar port: of the API, on 127.0.0.1
    :ivar profile: the name of the ARQs' device profile
    :ivar hostname: the host whose handles are bound
    :ivar rp_uuid: the provider of the handles
    """

    port: int
    profile: str
    hostname: str
    rp_uuid: str


@dataclasses.dataclass(frozen=True)
class Scale:
    """The scale of a benchmark, from the command line.

    :ivar others: the numbers of another project's ARQs to measure beside
    :ivar clients: the numbers of clients at once
    :ivar seconds: the time of each measurement; a client makes at least one
        cycle in each turn
    :ivar callers: keys of ``ROLES``
    """

    others: Sequence[int]
    clients: Sequence[int]
    seconds: float
    callers: Sequence[str] = ('member',)


class Client:
    """A client that makes cycles, one after the other.

    :ivar latencies_ms: of each step, in the order of the cycles
    """

    def __init__(self, target: Target, caller: str) -> None:
        self._target = target
        self._http = http_client.HttpClient(target.port, headers(caller))
        self.latencies_ms: dict[str, list[float]] = {
            step: [] for step in _STEPS
        }

    def cycle(self) -> None:
        """:raises AssertionError: an answer is wrong"""
        body = {'device_profile_name': self._target.profile}
        [arq] = self._ask('create', 201, 'POST', _PATH, body)['arqs']
        instance_uuid = uuidutils.generate_uuid()
        fields = {
            'hostname': self._target.hostname,
            'device_rp_uuid': self._target.rp_uuid,
            'instance_uuid': instance_uuid,
        }
        self._ask(
            'bind',
            202,
            'PATCH',
            _PATH,
            {
                arq['uuid']: [
                    {'op': 'add', 'path': f'/{name}', 'value': value}
                    for name, value in fields.items()
                ]
            },
        )
        of_instance = f'{_PATH}?instance={instance_uuid}'
        self._wait_until_bound(of_instance)
        self._ask('delete', 204, 'DELETE', of_instance)

    def _wait_until_bound(self, path: str) -> None:
        end = time.monotonic() + http_client.TIMEOUT_S
        while True:
            [found] = self._ask('get', 200, 'GET', path)['arqs']
            if found['state'] == 'Bound':
                return
            assert found['state'] in ('Initial', 'BindStarted'), found
            assert time.monotonic() < end, found
            time.sleep(_POLL_S)

    def _ask(
        self, step: str, status: int, method: str, path: str, body: Any = None
    ) -> Any:
        begin = time.perf_counter()
        found, text = self._http.ask(method, path, body)
        self.latencies_ms[step].append((time.perf_counter() - begin) * 1000)
        assert found == status, f'{step}: {found} {text!r}'
        return json.loads(text) if text else None


class Subject:
    """An API that is measured.

    :param database: of the API
    :param fill: makes other ARQs; gets the wanted and the present number
    :param unbind: takes all of these from their instances and hosts
    :param usage: returns what its processes use
    :param prepare: is called before each measurement
    :param most_others: the most other ARQs that it is measured beside
    :ivar found: the number of others -> figures; the key also says if these
        are not bound, and has the caller, unless that is a member
    """

    def __init__(
        self,
        target: Target,
        database: counted_database.CountedDatabase,
        fill: Callable[[int, int], object],
        unbind: Callable[[], object],
        usage: Callable[[], usage.Usage],
        prepare: Callable[[], object] = lambda: None,
        most_others: float = math.inf,
    ) -> None:
        self.target = target
        self.database = database
        self.fill = fill
        self.unbind = unbind
        self.usage = usage
        self.prepare = prepare
        self.most_others = most_others
        self.found: dict[str, Any] = {}

    def count(self, caller: str) -> dict[str, float]:
        """The database's statements for one client's cycles, when warm."""
        self.prepare()
        _warm_up(Client(self.target, caller))
        with self.database.counted() as count:
            cycles = _warm_up(Client(self.target, caller))
        return {
            'statements_per_cycle': round(count.statements / cycles, 1),
            'commits_per_cycle': round(count.others / cycles, 1),
        }


class _Crowd:
    """Several clients at once."""

    def __init__(self, subject: Subject, caller: str, amount: int) -> None:
        self._subject = subject
        self._clients = [
            Client(subject.target, caller) for _client in range(amount)
        ]
        self._cycles = 0
        self._seconds = 0.0
        self._cpu_s = 0.0

    def run(self, seconds: float, at_most: float) -> None:
        """Make cycles for some seconds, at least one of each client.

        :param at_most: seconds after which enough are made in earlier runs
        """
        if self._seconds >= at_most:
            return
        self._subject.prepare()
        cpu_s = self._subject.usage().cpu_s
        begin = time.monotonic()

        def cycles(client: Client) -> int:
            for done in itertools.count(1):
                client.cycle()
                if time.monotonic() > begin + seconds:
                    return done
            raise AssertionError('counting has no end')

        with futures.ThreadPoolExecutor(len(self._clients)) as executor:
            self._cycles += sum(executor.map(cycles, self._clients))
        self._seconds += time.monotonic() - begin
        self._cpu_s += self._subject.usage().cpu_s - cpu_s

    def rate(self) -> float:
        """The cycles of all clients in a second."""
        return round(self._cycles / self._seconds, 3)

    def cpu_ms(self) -> float:
        """How long the API's processes compute for a cycle."""
        return round(self._cpu_s * 1000 / self._cycles, 2)

    def latencies(self) -> Mapping[str, Mapping[str, float]]:
        result = {}
        for step in _STEPS:
            found = sorted(
                itertools.chain.from_iterable(
                    client.latencies_ms[step] for client in self._clients
                )
            )
            result[step] = {
                'median': round(statistics.median(found), 2),
                'p99': round(found[int(len(found) * 0.99)], 2),
            }
        return result


def measure(scale: Scale, *subjects: Subject) -> None:
    """Measure the subjects beside each number of other ARQs.

    The figures are in the subjects. The subjects take turns, so that other
    work of the machine slows all of them alike. An administrator also measures
    beside others that are not bound; they stay so.
    """
    already = 0
    for amount in sorted(scale.others):
        measured = [
            subject for subject in subjects if amount <= subject.most_others
        ]
        for subject in measured:
            subject.fill(amount, already)
        already = amount
        for caller in scale.callers:
            _measure_as(caller, f'{amount}', scale, measured)
        if amount and 'admin' in scale.callers:
            for subject in measured:
                subject.unbind()
            _measure_as('admin', f'{amount}_initial', scale, measured)


def _measure_as(
    caller: str, name: str, scale: Scale, subjects: Sequence[Subject]
) -> None:
    if caller != 'member':
        name += f'_{caller}'
    for subject in subjects:
        subject.found[name] = {
            'cycles_per_s': {},
            'cpu_ms_per_cycle': {},
            **subject.count(caller),
        }
    for amount in scale.clients:
        crowds = [_Crowd(subject, caller, amount) for subject in subjects]
        for _turn in range(_TURNS):
            for crowd in crowds:
                crowd.run(scale.seconds / _TURNS, scale.seconds)
        for subject, crowd in zip(subjects, crowds, strict=True):
            found = subject.found[name]
            found['cycles_per_s'][f'{amount}'] = crowd.rate()
            found['cpu_ms_per_cycle'][f'{amount}'] = crowd.cpu_ms()
            if amount == min(scale.clients):
                found['latency_ms'] = crowd.latencies()


def _warm_up(client: Client) -> int:
    """:returns: how many cycles the client has made"""
    end = time.monotonic() + _WARM_UP_S
    for done in range(1, _WARM_UP + 1):
        client.cycle()
        if time.monotonic() > end:
            return done
    return _WARM_UP
