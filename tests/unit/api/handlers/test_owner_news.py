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

import json
import threading
from typing import Any

import fixtures

from nova_accel.api.handlers import owner_news
from nova_accel.db import silence
from unit import notifications
from unit.api import base
from unit.api.compute import test_bound_event
from unit.api.handlers import test_binding

_HOST = f'/hosts/{base.HOSTNAME}'

_SECRET = '0000:0c:00.0 fell off the bus'

_FAILED = 'accelerator_failed'
_RECOVERED = 'accelerator_recovered'


class _AtOnce:
    """Stands in for the thread that tells."""

    def submit(self, call: Any, *arguments: Any) -> None:
        call(*arguments)


class ToldAtOnce(fixtures.MonkeyPatch):
    """A report waits until owners are told."""

    def __init__(self) -> None:
        super().__init__(
            'nova_accel.api.handlers.owner_news._TELLER', _AtOnce()
        )


class OwnerNewsTestCase(base.ApiTestCase):
    """Two servers on a host, each with a function of its only device.

    :ivar nova: has the servers
    """

    def setUp(self) -> None:
        super().setUp()
        self.nova = self.useFixture(test_bound_event.Nova())
        self.report_host()
        self.create_profile()
        self.servers = [self.nova.add('host', cell=1) for _ in range(2)]
        for server in self.servers:
            self.acquire(server)

    def acquire(self, server: str, role: str = 'active') -> None:
        self.ok(
            'PUT',
            f'{_HOST}/instances/{server}/{role}',
            test_binding.wanted(),
            roles=base.SERVICE,
        )

    def report(self, fault: str | None) -> None:
        report = base.report()
        report['devices'][0]['fault'] = fault
        report['digest'] = f'{fault}'
        self.ok('PUT', _HOST, report, roles=base.SERVICE)

    def pop_actions(self) -> list[tuple[str, int, str]]:
        actions, self.nova.actions = self.nova.actions, []
        return sorted(actions)

    def actions(self, name: str) -> list[tuple[str, int, str]]:
        return sorted((server, 1, name) for server in self.servers)


class TellTest(OwnerNewsTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(ToldAtOnce())

    def test_once_for_each_change(self) -> None:
        for fault, expected in (
            (None, []),
            (_SECRET, self.actions(_FAILED)),
            (_SECRET, []),
            ('other words', []),
            (None, self.actions(_RECOVERED)),
            (None, []),
            (_SECRET, self.actions(_FAILED)),
        ):
            self.report(fault)
            self.assertEqual(expected, self.pop_actions())

    def test_the_notifications(self) -> None:
        self.acquire(self.servers[0], 'port')
        sent = self.useFixture(notifications.Notifications('test'))
        for fault, event_type, reason in (
            (_SECRET, 'accelerator_request.fail', 'the device does not work'),
            (None, 'accelerator_request.recover', None),
        ):
            for messages in (3, 0):
                self.report(fault)
                told = sent.pop()
                self.assertEqual(
                    [(event_type, 'INFO')] * messages,
                    [(each['event_type'], each['priority']) for each in told],
                )
                self.assertNotIn('bus', json.dumps(told))
                payloads = [
                    each['payload']['nova_object.data'] for each in told
                ]
                self.assertEqual(
                    [
                        (server, role, base.PROJECT, reason)
                        for server, role in (
                            (self.servers[0], 'active'),
                            (self.servers[1], 'active'),
                            (self.servers[0], 'port'),
                        )
                    ][:messages],
                    [
                        tuple(
                            payload[name]
                            for name in (
                                'instance_uuid',
                                'role',
                                'project_id',
                                'fault',
                            )
                        )
                        for payload in payloads
                    ],
                )

    def test_nova_is_away(self) -> None:
        """The report is taken, and the notifications are sent."""
        sent = self.useFixture(notifications.Notifications('test'))

        def fail(*_args: Any) -> None:
            raise OSError('away')

        with fixtures.MonkeyPatch(
            'nova.objects.InstanceMappingList.get_by_instance_uuids', fail
        ):
            self.report(_SECRET)
        self.assertIn('away', self.log.output)
        self.assertEqual(['accelerator_request.fail'] * 2, sent.pop_types())

    def test_what_no_one_expects(self) -> None:
        with fixtures.MockPatch(
            'nova_accel.api.compute.server_action.add', side_effect=KeyError
        ):
            self.report(_SECRET)
        self.assertEqual(
            'Owners are not told of devices of their servers: KeyError\n',
            self.log.output,
        )

    def test_no_more_than_may_be_told_of(self) -> None:
        with fixtures.MonkeyPatch(f'{owner_news.__name__}._MOST_SERVERS', 1):
            self.report(_SECRET)
        self.assertEqual([(self.servers[0], 1, _FAILED)], self.pop_actions())
        self.assertIn(
            f'owners of servers {self.servers[1]} are not told',
            self.log.output,
        )


class SilenceTest(OwnerNewsTestCase):
    """Another host reports, and a process looks at each report."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(ToldAtOnce())
        find = silence.find
        for name, value in (
            ('db.silence.find', lambda _silence_s: find(-1)),
            ('db.lease.take', lambda *_arguments: True),
            ('api.handlers.owner_news._TRY_S', 0),
        ):
            self.useFixture(fixtures.MonkeyPatch(f'nova_accel.{name}', value))

    def other_reports(self) -> None:
        report = {
            **base.report(),
            'node_uuid': base.numbered_uuid(7),
            'devices': [],
        }
        self.ok('PUT', '/hosts/other', report, roles=base.SERVICE)

    def test_a_host_falls_silent_and_is_back(self) -> None:
        for expected in ([], self.actions(_FAILED), []):
            self.other_reports()
            self.assertEqual(expected, self.pop_actions())
        self.report_host()
        self.assertEqual(self.actions(_RECOVERED), self.pop_actions())

    def test_the_notifications(self) -> None:
        sent = self.useFixture(notifications.Notifications('test'))
        self.other_reports()
        self.assertEqual([], sent.pop())
        self.other_reports()
        self.assertEqual(
            [
                (
                    'accelerator_request.fail',
                    'the host of the server does not report',
                )
            ]
            * 2,
            [
                (
                    each['event_type'],
                    each['payload']['nova_object.data']['fault'],
                )
                for each in sent.pop()
            ],
        )

    def test_one_process_looks(self) -> None:
        with fixtures.MonkeyPatch(
            'nova_accel.db.lease.take', lambda *_arguments: False
        ):
            for _ in range(3):
                self.other_reports()
        self.assertEqual([], self.pop_actions())

    def test_a_look_that_fails(self) -> None:
        """The report is taken all the same."""

        def fail(_silence_s: int) -> None:
            raise OSError('away')

        with fixtures.MonkeyPatch('nova_accel.db.silence.find', fail):
            self.other_reports()
        self.assertEqual(
            'Silent hosts are not looked for: away\n', self.log.output
        )


class WaitTest(OwnerNewsTestCase):
    """No report waits until somebody is told."""

    def setUp(self) -> None:
        super().setUp()
        self.go_on = threading.Event()
        self.addCleanup(self.drain)
        self.addCleanup(self.go_on.set)
        self.useFixture(
            fixtures.MockPatch(
                'nova_accel.api.compute.server_action.add', self.add
            )
        )
        self.added: list[str] = []

    def add(self, name: str, servers: Any) -> None:
        self.go_on.wait(60)
        self.added.append(name)

    def drain(self) -> None:
        """Wait until all are told."""
        owner_news._TELLER.submit(lambda: None).result(60)

    def test_those_told_later_keep_their_order(self) -> None:
        for fault in (_SECRET, None, _SECRET):
            self.report(fault)
        self.assertEqual([], self.added)
        self.go_on.set()
        self.drain()
        self.assertEqual([_FAILED, _RECOVERED, _FAILED], self.added)

    def test_too_many_wait(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch(
                f'{owner_news.__name__}._ROOM', threading.Semaphore(1)
            )
        )
        self.report(_SECRET)
        self.assertEqual('', self.log.output)
        self.report(None)
        self.assertIn('reports are told of before', self.log.output)
        self.go_on.set()
        self.drain()
        self.report(_SECRET)
        self.drain()
        self.assertEqual([_FAILED] * 2, self.added)

    def test_the_process_ends(self) -> None:
        with fixtures.MockPatch(
            f'{owner_news.__name__}._TELLER.submit',
            side_effect=RuntimeError('shut down'),
        ):
            self.report(_SECRET)
        self.assertIn('shut down', self.log.output)
