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

"""The pool for Nova's services, with the file that the package installs.

No part of Nova is in it but what the pool itself imports: what works only
because something else of Nova has run in the same process fails here.
"""

import collections
from concurrent import futures
import contextlib
import json
import re
import socket
import time

import requests
import testtools
from unit.api import base
from unit.api import described

from nova_accel.api import routes
from nova_accel.api.http import microversion
from nova_accel.testing import reports
from rig.serving import api as served_api
from rig.serving import slow_clients

#: For how long a host is waited for: no one listens to this bus, in seconds.
_TIMEOUT_S = 2

#: How many regions can be programmed. The file has 2 processes of 8 threads,
#: of which half may wait.
_REGIONS = 24
_MOST_WAITING = 8
_WORKERS = 16

#: As long as Keystone's are for users with many roles, in bytes.
_TOKEN_BYTES = 1000

#: More than any server has.
_ARQS = 128


class PoolTestCase(testtools.TestCase):
    """Who asks is said by headers: there is no Keystone."""

    #: For how long a host is waited for, in seconds.
    timeout_s = _TIMEOUT_S

    def setUp(self) -> None:
        super().setUp()
        self.pool = self.useFixture(
            served_api.ServedApi(
                processes=None,
                sections={
                    'DEFAULT': {
                        'transport_url': 'fake:/',
                        'rpc_response_timeout': f'{self.timeout_s}',
                        'long_rpc_timeout': f'{self.timeout_s}',
                    }
                },
            )
        )
        self.pool.map_host(base.HOSTNAME)
        self.addOnException(
            lambda _fault: self.addDetail(
                'pool',
                testtools.content.content_from_file(
                    self.pool.log, buffer_now=True
                ),
            )
        )

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> requests.Response:
        """The answer to Nova, which everything is allowed."""
        return requests.request(
            method,
            f'{self.pool.url}/v2{path}',
            json=body,
            headers={
                'X-User-Id': 'user',
                'X-Project-Id': base.PROJECT,
                'X-Roles': ','.join(base.ADMIN + base.SERVICE),
                'X-Service-Roles': 'service',
                'OpenStack-API-Version': (
                    f'accelerator {microversion.VERSIONS[-1]}'
                ),
                **(headers or {}),
            },
            timeout=60,
        )

    def ok(self, *args: object) -> object:
        answer = self.ask(*args)
        self.assertLess(answer.status_code, 300, answer.text)
        return answer.json() if answer.content else None


class TestPool(PoolTestCase):
    def setUp(self) -> None:
        super().setUp()
        #: (method, path as in the table) of all that was asked.
        self.asked: set[tuple[str, str]] = set()

    def ask(self, method: str, path: str, *args: object) -> requests.Response:
        self.asked.add((method, described.template(path)))
        return super().ask(method, path, *args)

    def test_each_route(self) -> None:
        profile = self.profiles()
        arqs = self.hosts_and_requests()
        self.bindings(arqs)
        self.devices()
        self.fleet()
        self.programming()
        self.ok('DELETE', f'/device_profiles/{profile}')
        self.ok('DELETE', '/device_profiles?value=silver')
        for path in ('', '/v2'):
            self.assertEqual(
                200, requests.get(self.pool.url + path, timeout=60).status_code
            )
        self.assertEqual(
            {
                (method, path)
                for path, methods in routes.API.items()
                for method in methods
            },
            self.asked,
        )

    def profiles(self) -> str:
        """The uuid of one; both have one unit."""
        group = {'resources:FPGA': '1'}
        [profile, _other] = [
            self.ok(
                'POST', '/device_profiles', [{'name': name, 'groups': [group]}]
            )
            for name in ('gold', 'silver')
        ]
        path = f'/device_profiles/{profile["uuid"]}'
        self.ok('GET', '/device_profiles')
        self.ok('GET', path)
        self.ok('PUT', path, {'groups': [group]})
        self.ok('GET', f'{path}/availability')
        self.ok('POST', f'{path}/room', {'count': 1, 'servers': {}})
        self.ok('GET', f'{path}/explain')
        return profile['uuid']

    def hosts_and_requests(self) -> list[str]:
        """The uuids of two that the host does not know of."""
        host = f'/hosts/{base.HOSTNAME}'
        self.ok('PUT', host, base.report())
        self.ok(
            'PUT',
            f'{host}/cleaning',
            {'revision': 1, 'cleaned': [], 'failed': {}},
        )
        self.ok('PUT', f'{host}/provisioning', {'arqs': []})
        self.ok('PUT', f'{host}/programmings/{base.NOBODY}', base.RECORD)
        requested, path = [], '/accelerator_requests'
        for _request in range(2):
            [arq] = self.ok('POST', path, {'device_profile_name': 'gold'})[
                'arqs'
            ]
            requested.append(arq['uuid'])
        first, second = requested
        self.ok('PATCH', path, {first: base.patch()})
        self.ok('PATCH', f'{path}/{second}', {second: base.patch(base.NOBODY)})
        self.ok('GET', path)
        self.ok('GET', f'{path}/{first}')
        self.made_again(host, first)
        return requested

    def made_again(self, host: str, arq: str) -> None:
        """Nova is told, which knows no such instance."""
        for provisioning in ([arq], []):
            self.ok('PUT', f'{host}/provisioning', {'arqs': provisioning})
        self.assertNotIn('Nova is not notified', self.pool.log.read_text())

    def bindings(self, arqs: list[str]) -> None:
        """What the host asks of two requests, and who deletes them."""
        path = f'/hosts/{base.HOSTNAME}/instances'
        active = f'{path}/{base.INSTANCE}/active'
        self.ok('GET', path)
        self.ok('PUT', f'{active}/arqs', {'attempt': 1, 'arqs': arqs[:1]})
        self.ok('GET', active)
        self.ok('DELETE', f'{active}?attempt=1')
        self.ok(
            'PUT',
            active,
            {
                'attempt': 2,
                'project_id': base.PROJECT,
                'device_profile_name': 'gold',
                'providers': {
                    base.RP: {'allocated': {'FPGA': 1}, 'traits': []}
                },
            },
        )
        self.ok('DELETE', f'{path}/{base.NOBODY}?arqs={arqs[1]}')
        self.server(active)
        self.failure()
        self.ok('DELETE', f'{active}?attempt=3')
        path = '/accelerator_requests'
        for name in ('/', '?arqs='):
            [arq] = self.ok('POST', path, {'device_profile_name': 'gold'})[
                'arqs'
            ]
            self.ok('DELETE', f'{path}{name}{arq["uuid"]}')

    def server(self, active: str) -> None:
        """What its owner and its guest ask, and its host for the owner."""
        [arq] = self.ok('GET', active)['arqs']
        self.ok(
            'PUT',
            f'{active}/additions',
            {
                'attempt': 3,
                'project_id': base.PROJECT,
                'arqs': [base.WANTED],
                'kept': [arq['uuid']],
            },
        )
        path = f'/servers/{base.INSTANCE}/accelerators'
        self.ok('GET', path)
        answer = self.ask('POST', f'{path}/replace', {})
        self.assertEqual(409, answer.status_code, answer.text)
        self.assertIn('has failed', answer.text)
        answer = self.ask('PUT', path, {'device_profile': 'gold'})
        self.assertEqual(404, answer.status_code, answer.text)
        self.assertIn('Nova has no server', answer.text)
        self.ok(
            'POST',
            '/vendordata',
            {'instance-id': base.INSTANCE, 'project-id': base.PROJECT},
        )

    def failure(self) -> None:
        """Nova is told, which knows no such server."""
        report = base.report()
        for digest, fault in (('broken', 'it is hot'), ('works', None)):
            report['digest'] = digest
            report['devices'][0]['fault'] = fault
            self.ok('PUT', f'/hosts/{base.HOSTNAME}', report)
        told = f'accelerator_recovered is not noted of servers {base.INSTANCE}'
        until = time.monotonic() + 30
        while told not in self.pool.log.read_text():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.1)
        self.assertIn(f'{told}: Nova does not have', self.pool.log.read_text())

    def fleet(self) -> None:
        [host] = self.ok('GET', '/topology')['topology']
        self.assertEqual(base.HOSTNAME, host['hostname'])
        path = f'/hosts/{base.HOSTNAME}/drain'
        self.ok('PUT', path, {'reason': 'new fans'})
        self.ok('GET', path)
        self.ok('GET', '/drains')
        self.ok('GET', '/usage')
        self.ok('DELETE', path)

    def devices(self) -> None:
        [device] = self.ok('GET', '/devices')['devices']
        path = f'/devices/{device["uuid"]}'
        self.ok('GET', path)
        self.ok('POST', f'{path}/disable')
        self.ok('POST', f'{path}/enable')
        [deployable] = self.ok('GET', '/deployables')['deployables']
        self.ok('GET', f'/deployables/{deployable["uuid"]}')
        noted = self.ok(
            'POST',
            '/attributes',
            {'deployable_id': deployable['uuid'], 'key': 'a', 'value': 'b'},
        )
        self.ok('GET', '/attributes')
        self.ok('GET', f'/attributes/{noted["uuid"]}')
        self.ok('DELETE', f'/attributes/{noted["uuid"]}')

    def programming(self) -> None:
        """The host is asked, and no one answers."""
        uuid = base.DEPLOYABLE
        patch = [
            {
                'op': 'replace',
                'path': '/bitstream_id',
                'value': [{'image_uuid': base.NOBODY}],
            }
        ]
        for method, path, body in (
            ('POST', f'/fpga/{uuid}', {'glance_bitstream_uuid': base.NOBODY}),
            ('PATCH', f'/deployables/{uuid}/program', patch),
            ('PATCH', f'/deployables/{uuid}/program/{uuid}', patch),
        ):
            answer = self.ask(method, path, body)
            self.assertEqual(504, answer.status_code, answer.text)
            self.assertIn('not answered in time', answer.text)
        self.ok('POST', f'/bitstreams/{base.NOBODY}/prefetch', {})
        self.ok('GET', '/programmings')


class TestSizes(PoolTestCase):
    def raw(self, target: str) -> bytes:
        """The answer to a GET of what need be no URL; empty for none."""
        head = {
            'Host': 'controller',
            'X-User-Id': 'somebody',
            'X-Project-Id': base.PROJECT,
            'X-Roles': ','.join(base.ADMIN),
            'Connection': 'close',
        }
        lines = [
            f'GET {target} HTTP/1.1',
            *(f'{name}: {value}' for name, value in head.items()),
            '',
            '',
        ]
        with socket.create_connection(
            ('127.0.0.1', self.pool.port), timeout=60
        ) as connection:
            connection.sendall('\r\n'.join(lines).encode())
            with (
                connection.makefile('rb') as answer,
                contextlib.suppress(ConnectionResetError),
            ):
                return answer.read()
        return b''

    def test_no_query_is_left_out(self) -> None:
        """uWSGI has one buffer for the URL and, once more, the query.

        Its router ends the connection if not both are below 64 KiB.
        """
        for path in ('accelerator_requests?instance=', 'devices?type='):
            for length in (17_000, 30_000, 33_000, 40_000, 60_000):
                answer = self.raw(f'/accelerator/v2/{path}{"a" * length}')
                if length < 32_000 or answer:
                    self.assertRegex(answer, b'^HTTP/1.1 414 ', length)

    def test_what_is_no_path(self) -> None:
        """The log says nothing of who has asked before."""
        self.assertRegex(
            self.raw('/accelerator/v2/devices'), b'^HTTP/1.1 200 '
        )
        for target in ('*', 'accelerator', '*?a=b'):
            self.assertRegex(self.raw(target), b'^HTTP/1.1 400 ', target)
        self.pool.stop()
        log = self.pool.log.read_text()
        self.assertNotIn('Traceback', log)
        self.assertNotIn('somebody', log)

    def test_long_tokens_and_many_requests(self) -> None:
        """As nova-compute asks for a user whose token is long."""
        uuids = ','.join(base.numbered_uuid(number) for number in range(_ARQS))
        answer = self.ask(
            'DELETE',
            f'/accelerator_requests?arqs={uuids}',
            None,
            {
                'X-Auth-Token': 'g' * _TOKEN_BYTES,
                'X-Service-Token': 'g' * _TOKEN_BYTES,
            },
        )
        self.assertEqual(404, answer.status_code, answer.text)
        self.assertIn(
            'not found',
            json.loads(answer.json()['error_message'])['faultstring'],
        )


class TestLog(PoolTestCase):
    def test_a_request_has_its_ids(self) -> None:
        given = f'req-{base.NOBODY}'
        first = self.ask(
            'GET', '/devices', None, {'X-OpenStack-Request-ID': given}
        )
        second = self.ask('GET', '/deployables')
        # A line is written when the answer is sent.
        self.pool.stop()
        ids = [
            answer.headers['X-OpenStack-Request-ID']
            for answer in (first, second)
        ]
        line = re.compile(
            r'^\S+ [+-]\d{4} \d+ \[(?P<ids>.+)\] 127\.0\.0\.1 '
            r'"GET /accelerator/v2/(?P<path>\w+) HTTP/1\.1" status: 200 ',
            re.M,
        )
        self.assertEqual(
            {'devices': f'{given} {ids[0]}', 'deployables': f'- {ids[1]}'},
            {
                found['path']: found['ids']
                for found in line.finditer(self.pool.log.read_text())
            },
        )


class TestStop(PoolTestCase):
    def test_a_request_at_work_is_answered(self) -> None:
        self.ok('PUT', f'/hosts/{base.HOSTNAME}', base.report())
        with futures.ThreadPoolExecutor() as threads:
            asked = threads.submit(
                self.ask,
                'POST',
                f'/fpga/{base.DEPLOYABLE}',
                {'glance_bitstream_uuid': base.NOBODY},
            )
            time.sleep(_TIMEOUT_S / 2)
            self.assertFalse(asked.done())
            self.assertEqual(0, self.pool.stop())
        self.assertEqual(504, asked.result().status_code)


class TestSlowClients(PoolTestCase):
    """Each would keep a worker for as long as it goes on."""

    def check(self, *beginnings: bytes) -> None:
        """All workers are free beside three times as many slow clients."""
        self.useFixture(
            slow_clients.SlowClients(
                ('127.0.0.1', self.pool.port),
                beginnings * (3 * _WORKERS // len(beginnings)),
            )
        )
        health = self.pool.url.replace('accelerator', 'healthcheck')
        for _each in range(_WORKERS):
            self.assertEqual(200, requests.get(health, timeout=30).status_code)
            self.ok('GET', '/devices')

    def test_headers(self) -> None:
        self.check(slow_clients.HEADERS)

    def test_bodies(self) -> None:
        self.check(slow_clients.BODY)

    def test_lengths_that_are_no_numbers(self) -> None:
        self.check(*slow_clients.ODD_LENGTHS)

    def test_an_answer_without_reading_the_body(self) -> None:
        """The longest that a worker gets from a file, and a short one."""
        for length in (7_000_000, 100_000):
            answer = requests.post(
                f'{self.pool.url}/v2/no_such_call',
                headers={'X-User-Id': 'user', 'X-Roles': 'member'},
                data=b'x' * length,
                timeout=30,
            )
            self.assertEqual(404, answer.status_code)


class TestWaitingCalls(PoolTestCase):
    """The host is known, and does not answer."""

    timeout_s = 8

    def setUp(self) -> None:
        super().setUp()
        host = reports.SimulatedHost(
            base.HOSTNAME, regions=(8,) * (_REGIONS // 8)
        )
        self.ok(
            'PUT',
            f'/hosts/{host.hostname}',
            {
                **base.report(),
                'node_uuid': host.node_uuid,
                'service_host': base.HOSTNAME,
                'devices': host.reported(),
            },
        )
        self.deployables = [
            each['uuid']
            for each in self.ok('GET', '/deployables')['deployables']
        ]

    def program(self, uuid: str) -> requests.Response:
        return self.ask(
            'POST', f'/fpga/{uuid}', {'glance_bitstream_uuid': base.NOBODY}
        )

    def answers(self, uuids: list[str]) -> collections.Counter[int]:
        """How often each status came when all were programmed at once.

        Meanwhile all other calls are answered.
        """
        with futures.ThreadPoolExecutor(len(uuids)) as threads:
            asked = [threads.submit(self.program, uuid) for uuid in uuids]
            health = self.pool.url.replace('accelerator', 'healthcheck')
            beside = 0
            while not all(each.done() for each in asked):
                requests.get(health, timeout=30).raise_for_status()
                self.ok('GET', '/devices')
                # They were answered while somebody still waited.
                beside += not all(each.done() for each in asked)
        self.assertGreaterEqual(beside, 1)
        answers = [each.result() for each in asked]
        for answer in answers:
            self.assertEqual(
                '5' if answer.status_code == 503 else None,
                answer.headers.get('Retry-After'),
            )
        return collections.Counter(each.status_code for each in answers)

    def test_one_region(self) -> None:
        """It does not matter which process gets the others."""
        self.assertEqual(
            {504: 1, 409: 5}, self.answers(self.deployables[:1] * 6)
        )
        # It is free again.
        self.assertEqual(504, self.program(self.deployables[0]).status_code)

    def test_many_regions(self) -> None:
        self.assertEqual(_REGIONS, len(self.deployables))
        answers = self.answers(self.deployables)
        self.assertLessEqual(answers[504], _MOST_WAITING)
        self.assertEqual(_REGIONS, answers[504] + answers[503], answers)
