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
import random
import threading
from typing import Any

import fixtures
import hypothesis
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.api import routes
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from unit.api import base
from unit.api.compute import test_profile_setting
from unit.api.compute import test_replacing

_PATH = f'/servers/{base.INSTANCE}/accelerators'

_REPLACE = f'{_PATH}/replace'

_FAULT = '0000:0c:00.0 of compute-1 fell off the bus'

#: What Nova sends, with the longest user data and metadata.
_ASKED = {
    'project-id': base.PROJECT,
    'instance-id': base.INSTANCE,
    'image-id': base.NOBODY,
    'user-data': 'a' * 65535,
    'hostname': 'vm',
    'metadata': {
        f'{number:0255}': '\U0001f600' * 255 for number in range(128)
    },
    'boot-roles': 'reader,member',
}


class ServerTestCase(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.report_host()
        self.create_profile()
        self.arq = self.create_arq()
        self.bind(self.arq)

    def break_device(self) -> None:
        report = base.report()
        report['digest'] = 'broken'
        report['devices'][0]['fault'] = _FAULT
        self.ok('PUT', f'/hosts/{base.HOSTNAME}', report, roles=base.SERVICE)

    def drain(self) -> None:
        self.ok(
            'PUT',
            f'/hosts/{base.HOSTNAME}/drain',
            {'reason': 'new fans', 'until': '2120-11-24T06:00:00Z'},
            version='2.4',
        )

    def assert_tells_no_place(self, answer: Any) -> None:
        text = json.dumps(answer)
        for secret in (base.HOSTNAME, base.DEVICE, base.RP, '0c:00', 'bus'):
            self.assertNotIn(secret, text)


class ShowTest(ServerTestCase):
    def show(self, **who: Any) -> Any:
        return self.ok(
            'GET', _PATH, **{'roles': base.READER, 'version': '2.5', **who}
        )

    def test_a_device_fails(self) -> None:
        healthy = {
            'arq': self.arq,
            'device_profile_name': 'profile',
            'device_profile_group_id': 0,
            'resource_class': 'FPGA',
            'state': 'Bound',
            'is_leaving': False,
            'health': 'healthy',
            'reason': None,
            'since': None,
            'drain': None,
        }
        self.assertEqual({'accelerators': [healthy]}, self.show())
        self.break_device()
        answer = self.show()
        self.assert_tells_no_place(answer)
        [failed] = answer['accelerators']
        self.assertRegex(failed['since'], r'^\d{4}-.*\+00:00$')
        self.assertEqual(
            {
                **healthy,
                'health': 'failed',
                'reason': 'the device does not work',
                'since': failed['since'],
            },
            failed,
        )

    def test_the_host_is_silent(self) -> None:
        self.useFixture(base.SilentHosts())
        answer = self.show()
        self.assert_tells_no_place(answer)
        [arq] = answer['accelerators']
        self.assertEqual(('Unknown', 'unknown'), (arq['state'], arq['health']))
        self.assertIsNotNone(arq['since'])

    def test_the_host_is_drained(self) -> None:
        self.drain()
        answer = self.show()
        self.assert_tells_no_place(answer)
        [arq] = answer['accelerators']
        drain = arq['drain']
        self.assertRegex(drain.pop('from'), r'^\d{4}-.*\+00:00$')
        self.assertEqual(
            {'until': '2120-11-24T06:00:00+00:00', 'reason': 'new fans'}, drain
        )

    def test_servers_of_other_projects(self) -> None:
        self.assertEqual(
            f'Server {base.INSTANCE} has no accelerators',
            self.refused(
                404,
                'GET',
                _PATH,
                roles=base.MANAGER,
                project=base.OTHER_PROJECT,
                version='2.5',
            ),
        )
        for who in ({}, {'project': base.OTHER_PROJECT}):
            self.assertEqual(self.show(), self.show(roles=base.ADMIN, **who))

    def test_no_such_server(self) -> None:
        path = f'/servers/{base.NOBODY}/accelerators'
        for roles in (base.READER, base.ADMIN):
            self.refused(404, 'GET', path, roles=roles, version='2.5')
        self.refused(400, 'GET', '/servers/x/accelerators', version='2.5')

    def test_an_older_microversion(self) -> None:
        self.refused(406, 'GET', _PATH, version='2.4')


class VendordataTest(ServerTestCase):
    def wait(self, seconds: float) -> None:
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.api.handlers.server._PATIENCE_S', seconds
            )
        )

    def setUp(self) -> None:
        super().setUp()
        # The machine of a test may be slow.
        self.wait(60)

    def ask(self, **fields: Any) -> Any:
        return self.ok(
            'POST',
            '/vendordata',
            {**_ASKED, **fields},
            roles=base.SERVICE,
            version=None,
        )

    def test_a_guest_reads_what_its_owner_does(self) -> None:
        self.break_device()
        self.drain()
        answer = self.ask()
        self.assertEqual(
            self.ok('GET', _PATH, roles=base.READER, version='2.5'), answer
        )
        self.assert_tells_no_place(answer)
        self.assertEqual('failed', answer['accelerators'][0]['health'])

    def test_others_read_nothing(self) -> None:
        for fields in (
            {'instance-id': base.NOBODY},
            {'project-id': base.OTHER_PROJECT},
        ):
            self.assertEqual({}, self.ask(**fields))
        self.assertNotIn('The guest of', self.log.output)

    def test_the_database_fails(self) -> None:
        with engine.writer() as connection:
            connection.execute(sa.text('DROP TABLE attach_handles'))
        self.assertEqual({}, self.ask())
        self.assertIn(
            f'The guest of server {base.INSTANCE} is not told of its '
            'accelerators',
            self.log.output,
        )

    def test_the_database_is_slow(self) -> None:
        self.wait(0.01)
        is_over = threading.Event()
        self.addCleanup(is_over.set)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.db.server_arqs.get',
                lambda *_arguments: is_over.wait(60),
            )
        )
        for _request in range(9):
            self.assertEqual({}, self.ask())
        self.assertIn('TimeoutError', self.log.output)

    def test_no_one_else_may_ask(self) -> None:
        for roles in (base.ADMIN, base.READER):
            self.refused(403, 'POST', '/vendordata', _ASKED, roles=roles)

    def test_what_nova_does_not_send(self) -> None:
        for body in ({}, [], {**_ASKED, 'instance-id': 'x'}):
            self.refused(400, 'POST', '/vendordata', body, roles=base.SERVICE)

    def test_the_longest_body(self) -> None:
        longest = routes.API['/vendordata']['POST'].max_body_bytes
        self.assertLess(len(json.dumps(_ASKED)), longest)


class ReplaceFailedTest(test_replacing.ReplacingTestCase):
    def replace(self, body: Any, path: str = _REPLACE, **more: Any) -> int:
        more = {'roles': base.MEMBER, 'version': '2.5', **more}
        return int(self.call('POST', path, body, **more).status_int)

    def test_answers_when_it_is_done(self) -> None:
        self.lose_devices()
        for body, arqs in (
            ({}, self.arqs),
            ({'arq': self.arqs[0]}, self.arqs[:1]),
        ):
            answer = self.call(
                'POST', _REPLACE, body, roles=base.MEMBER, version='2.5'
            )
            self.assertEqual((204, b''), (answer.status_int, answer.body))
            self.assertEqual(arqs, self.host.replaced.pop()[2])

    def test_refusals(self) -> None:
        self.assertEqual(409, self.replace({}))
        self.assertEqual(404, self.replace({'arq': base.NOBODY}))
        self.assertEqual(
            404, self.replace({}, _REPLACE.replace(base.INSTANCE, base.NOBODY))
        )
        bodies: tuple[Any, ...] = (
            {'arq': 'x'},
            {'arq': None},
            {'arqs': []},
            [],
        )
        for body in bodies:
            self.assertEqual(400, self.replace(body), str(body))
        self.assertEqual(
            400, self.replace({}, _REPLACE.replace(base.INSTANCE, 'x'))
        )
        self.assertEqual(406, self.replace({}, version='2.4'))


class SetProfileTest(test_profile_setting.ProfileSettingTestCase):
    def put(self, name: str | None) -> Any:
        return self.ok('PUT', _PATH, {'device_profile': name}, version='2.5')

    def refusal(self, status: int, name: Any = 'profile', **more: Any) -> str:
        body = {'device_profile': name}
        return self.refused(
            status, 'PUT', _PATH, body, **{'version': '2.5', **more}
        )

    def test_answers_what_the_server_has(self) -> None:
        self.host.effect = lambda *_asked: self.bind(self.create_arq())
        [found] = self.put('profile')['accelerators']
        self.assertEqual('profile', found['device_profile_name'])
        self.assertEqual(
            self.ok('GET', _PATH, version='2.5')['accelerators'], [found]
        )

    def test_answers_that_it_has_none(self) -> None:
        self.assertEqual({'accelerators': []}, self.put(None))

    def test_refusals(self) -> None:
        bodies: tuple[Any, ...] = (
            {},
            [],
            {'device_profile': ''},
            {'device_profile': 1},
            {'device_profile': 'profile', 'arq': base.NOBODY},
        )
        for body in bodies:
            self.refused(400, 'PUT', _PATH, body, version='2.5')
        self.assertIn(
            'nova_accel:server:set', self.refusal(403, roles=base.MANAGER)
        )
        self.assertIn('gold', self.refusal(404, 'gold'))
        self.host.fault = exceptions.OverQuota('too many')
        self.assertEqual('too many', self.refusal(403))
        self.host.fault = exceptions.AcceleratorsBusy('none is free')
        self.assertEqual('none is free', self.refusal(409))
        answer = self.call(
            'PUT', _PATH, {'device_profile': 'profile'}, version='2.4'
        )
        self.assertEqual(406, answer.status_int)

    def test_no_such_server(self) -> None:
        for uuid, status in (('x', 400), (base.NOBODY, 404)):
            self.refused(
                status,
                'PUT',
                f'/servers/{uuid}/accelerators',
                {'device_profile': None},
                version='2.5',
            )


class OthersTest(test_profile_setting.ProfileSettingTestCase):
    """No caller of another project reaches a server, whatever is asked."""

    #: With the long search of hypothesis, more.
    CALLS = 10_000 if hypothesis.settings().max_examples > 1000 else 500

    def setUp(self) -> None:
        super().setUp()
        self.arq = self.create_arq()
        self.bind(self.arq)

    def state(self) -> list[Any]:
        """All that a call could change."""
        with engine.reader() as connection:
            return [
                self.nova.extra_specs(base.INSTANCE),
                self.host.profiles,
                self.host.replaced,
                *(
                    list(connection.execute(sa.select(table)))
                    for table in (schema.ARQS, schema.LEASES)
                ),
            ]

    def test_many_calls(self) -> None:
        choice = random.Random(1)
        servers = [f'/servers/{uuid}' for uuid in (base.INSTANCE, self.arq)]
        calls: list[tuple[str, str, list[Any]]] = [
            ('GET', '/accelerators', [None]),
            (
                'PUT',
                '/accelerators',
                [{'device_profile': name} for name in (None, 'profile', 'x')],
            ),
            (
                'POST',
                '/accelerators/replace',
                [{}, {'arq': self.arq}, {'arq': base.NOBODY}],
            ),
        ]
        before = self.state()
        statuses = set()
        for _call in range(self.CALLS):
            method, path, bodies = choice.choice(calls)
            answer = self.call(
                method,
                choice.choice(servers) + path,
                choice.choice(bodies),
                # Nova's services reach all projects.
                roles=choice.choice(
                    [(), base.READER, base.MEMBER, base.MANAGER]
                ),
                project=choice.choice([base.OTHER_PROJECT, base.NOBODY, '']),
                version='2.5',
            )
            statuses.add(answer.status_int)
            self.assertNotIn(base.HOSTNAME, answer.text)
        self.assertEqual({403, 404}, statuses)
        self.assertEqual(before, self.state())
