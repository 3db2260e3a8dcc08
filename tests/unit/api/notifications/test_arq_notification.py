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

import datetime
import itertools
from typing import Any

import fixtures
import sqlalchemy as sa

from nova_accel.db import usage
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from unit import notifications
from unit.api import base
from unit.api.compute import test_bound_event
from unit.api.handlers import test_binding
from unit.api.handlers import test_owner_news

_PATH = f'/hosts/{base.HOSTNAME}/instances/{base.INSTANCE}'
_ACTIVE = f'{_PATH}/active'

#: The fields of a payload beside its ARQs.
_PLACE = (
    'instance_uuid',
    'hostname',
    'role',
    'project_id',
    'device_profile_name',
    'fault',
)
_ARQS = '/accelerator_requests'
_BIND = ['accelerator_request.bind.start', 'accelerator_request.bind.end']
_UNBIND = [
    'accelerator_request.unbind.start',
    'accelerator_request.unbind.end',
]


class ArqNotificationTestCase(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.sent = self.useFixture(notifications.Notifications('test'))
        self.report_host(functions=1)
        self.create_profile()

    def acquire(self, path: str = _ACTIVE, **more: Any) -> Any:
        return self.ok(
            'PUT', path, test_binding.wanted(**more), roles=base.SERVICE
        )['arqs']

    def pop_payloads(self) -> list[dict[str, Any]]:
        return [
            message['payload']['nova_object.data']
            for message in self.sent.pop()
        ]


class SamplesTest(ArqNotificationTestCase):
    """Those of the manual, each as it is sent."""

    def setUp(self) -> None:
        super().setUp()
        numbers = itertools.count(256)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.db.rows.arq_rows.uuidutils.generate_uuid',
                lambda: base.numbered_uuid(next(numbers)),
            )
        )
        now = schema.now().replace(
            2026, 11, 22, hour=12, minute=0, second=0, microsecond=0
        )
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.db.sql.schema.now', lambda: now)
        )
        get_last = usage.get_last

        def held_for_an_hour(uuids: list[str]) -> dict[str, usage.PeriodRow]:
            return {
                uuid: {
                    **period,
                    'began_at': now,
                    'ended_at': period['ended_at']
                    and now + datetime.timedelta(hours=1),
                }
                for uuid, period in get_last(uuids).items()
            }

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.db.usage.get_last', held_for_an_hour
            )
        )
        self.report_host(functions=1)

    def assert_samples(self, *event_types: str) -> None:
        sent = self.sent.pop()
        self.assertEqual(
            list(event_types), [message['event_type'] for message in sent]
        )
        for message in sent:
            self.assertEqual(*notifications.sample_of(message))

    def test_bind_and_unbind(self) -> None:
        self.acquire()
        self.assert_samples(*_BIND)
        self.ok('DELETE', f'{_ACTIVE}?attempt=1', roles=base.SERVICE)
        self.assert_samples(*_UNBIND)

    def test_fail_and_recover(self) -> None:
        self.useFixture(test_owner_news.ToldAtOnce())
        self.useFixture(test_bound_event.Nova())
        self.acquire()
        self.sent.pop()
        for fault, event_type in (('hot', 'fail'), (None, 'recover')):
            report = base.report(functions=1)
            report['devices'][0]['fault'] = fault
            report['digest'] = event_type
            self.ok(
                'PUT', f'/hosts/{base.HOSTNAME}', report, roles=base.SERVICE
            )
            self.assert_samples(f'accelerator_request.{event_type}')

    def test_bind_error(self) -> None:
        arqs = [self.create_arq(), self.create_arq()]
        self.bind(*arqs)
        self.sent.pop()
        self.assertEqual(
            ['BindFailed'] * 2,
            [self.ok('GET', f'{_ARQS}/{arq}')['state'] for arq in arqs],
        )
        answer = self.call(
            'PUT', _ACTIVE, test_binding.wanted(units=2), roles=base.SERVICE
        )
        self.assertEqual(409, answer.status_int)
        start, error = self.sent.pop()
        self.assertEqual(_BIND[0], start['event_type'])
        self.assertEqual(*notifications.sample_of(error))

    def test_unbind_error(self) -> None:
        self.acquire(attempt=2)
        self.sent.pop()
        answer = self.call(
            'DELETE', f'{_ACTIVE}?attempt=1', roles=base.SERVICE
        )
        self.assertEqual(409, answer.status_int)
        start, error = self.sent.pop()
        self.assertEqual(_UNBIND[0], start['event_type'])
        self.assertEqual(*notifications.sample_of(error))


class HeldTest(ArqNotificationTestCase):
    """What a bill needs."""

    def test_what_is_held(self) -> None:
        self.acquire()
        [arq] = self.ends()[0]
        self.assertEqual(
            ('PAC_ARRIA10', '', None, None),
            tuple(
                arq[name]
                for name in ('product', 'shape', 'unbound_at', 'held_seconds')
            ),
        )
        bound_at = arq['bound_at']
        self.ok('DELETE', f'{_ACTIVE}?attempt=1', roles=base.SERVICE)
        [arq] = self.ends()[0]
        self.assertEqual(bound_at, arq['bound_at'])
        self.assertGreaterEqual(arq['unbound_at'], bound_at)
        self.assertIn(arq['held_seconds'], range(60))

    def test_each_kind_of_units_has_a_notification(self) -> None:
        """They are told of together until then."""
        get_last = usage.get_last
        products = itertools.cycle(['one', 'other'])
        self.report_host(functions=3)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.db.usage.get_last',
                lambda uuids: {
                    uuid: {**period, 'product': next(products)}
                    for uuid, period in get_last(uuids).items()
                },
            )
        )
        arqs = [self.create_arq() for _arq in range(3)]
        self.sent.pop()
        self.bind(*arqs)
        found = self.ends()
        self.assertEqual([1, 2], sorted(map(len, found)))
        self.assertEqual(
            sorted(arqs), sorted(arq['uuid'] for each in found for arq in each)
        )
        for each in found:
            self.assertEqual(1, len({arq['product'] for arq in each}))

    def test_a_fault_of_the_history_hides_nothing_else(self) -> None:
        with fixtures.MonkeyPatch(
            'nova_accel.db.usage.get_last', lambda _uuids: 1 // 0
        ):
            self.acquire()
        [[arq]] = self.ends()
        self.assertIsNone(arq['product'])
        self.assertIn('cannot be read', self.log.output)

    def ends(self) -> list[list[dict[str, Any]]]:
        """The ARQs of each notification of an end."""
        return [
            [
                arq['nova_object.data']
                for arq in message['payload']['nova_object.data'][
                    'accelerator_requests'
                ]
            ]
            for message in self.sent.pop()
            if message['event_type'].endswith('.end')
        ]


class AdditionTest(ArqNotificationTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.report_host(functions=2)
        [self.old] = self.acquire()
        self.body = {
            'attempt': 2,
            'project_id': base.PROJECT,
            'arqs': [base.WANTED],
        }
        self.sent.pop()

    def add(self) -> Any:
        return self.ok(
            'PUT', f'{_ACTIVE}/additions', self.body, roles=base.SERVICE
        )['arqs']

    def test_what_is_told_is_what_is_new(self) -> None:
        _old, new = self.add()
        start, end = self.pop_payloads()
        self.assertEqual([], start['accelerator_requests'])
        self.assertEqual(
            [new['uuid']],
            [
                told['nova_object.data']['uuid']
                for told in end['accelerator_requests']
            ],
        )
        self.ok(
            'PUT',
            f'{_ACTIVE}/arqs',
            {
                'attempt': 3,
                'arqs': [new['uuid']],
                'leaving': [self.old['uuid']],
            },
            roles=base.SERVICE,
        )
        self.assertEqual([], self.sent.pop())
        self.ok(
            'PUT',
            f'{_ACTIVE}/arqs',
            {'attempt': 4, 'arqs': [new['uuid']]},
            roles=base.SERVICE,
        )
        self.assertEqual(
            _UNBIND, [message['event_type'] for message in self.sent.pop()]
        )

    def test_a_server_without_any(self) -> None:
        self.ok('DELETE', f'{_ACTIVE}?attempt=1', roles=base.SERVICE)
        self.sent.pop()
        self.add()
        start, end = self.pop_payloads()
        self.assertEqual(
            (0, 1),
            tuple(
                len(payload['accelerator_requests'])
                for payload in (start, end)
            ),
        )
        for payload in (start, end):
            self.assertEqual(
                (
                    base.INSTANCE,
                    base.HOSTNAME,
                    'active',
                    base.PROJECT,
                    'profile',
                    None,
                ),
                tuple(payload[name] for name in _PLACE),
            )

    def test_the_same_again(self) -> None:
        self.add()
        self.sent.pop()
        self.add()
        for payload in self.pop_payloads():
            self.assertEqual([], payload['accelerator_requests'])

    def test_a_fault(self) -> None:
        self.report_host(functions=1)
        answer = self.call(
            'PUT', f'{_ACTIVE}/additions', self.body, roles=base.SERVICE
        )
        self.assertEqual(409, answer.status_int)
        start, error = self.pop_payloads()
        self.assertIsNone(start['fault'])
        self.assertIn('wanted, ', str(error['fault']))


class NativeTest(ArqNotificationTestCase):
    def test_what_is_told_is_what_is_held(self) -> None:
        [arq] = self.acquire()
        start, end = self.pop_payloads()
        self.assertEqual([], start['accelerator_requests'])
        for payload in (start, end):
            self.assertEqual(
                (
                    base.INSTANCE,
                    base.HOSTNAME,
                    'active',
                    base.PROJECT,
                    'profile',
                    None,
                ),
                tuple(payload[name] for name in _PLACE),
            )
        [told] = end['accelerator_requests']
        told = told['nova_object.data']
        self.assertEqual(
            (
                arq['uuid'],
                'Bound',
                'FPGA',
                base.RP,
                arq['attach_handle']['uuid'],
            ),
            tuple(
                told[name]
                for name in (
                    'uuid',
                    'state',
                    'resource_class',
                    'device_rp_uuid',
                    'attach_handle_uuid',
                )
            ),
        )

    def test_a_newer_attempt_that_keeps_it_unbinds_nothing(self) -> None:
        self.acquire()
        self.acquire(attempt=2)
        self.assertEqual(_BIND * 2, self.sent.pop_types())

    def test_a_newer_attempt_that_replaces_it_unbinds_the_old(self) -> None:
        [old] = self.acquire()
        self.create_profile('other')
        self.sent.pop()
        self.acquire(attempt=2, device_profile_name='other')
        start, *unbound, end = self.sent.pop()
        self.assertEqual(_BIND, [start['event_type'], end['event_type']])
        self.assertEqual(
            _UNBIND, [message['event_type'] for message in unbound]
        )
        for message in unbound:
            [told] = message['payload']['nova_object.data'][
                'accelerator_requests'
            ]
            self.assertEqual(old['uuid'], told['nova_object.data']['uuid'])

    def test_the_end_names_the_profile_that_was_chosen(self) -> None:
        self.create_profile('large', {'resources:FPGA': '2'})
        self.acquire(device_profile_name='large,profile')
        start, end = self.sent.pop()
        self.assertEqual(
            ['large,profile', 'profile'],
            [
                each['payload']['nova_object.data']['device_profile_name']
                for each in (start, end)
            ],
        )

    def test_a_release_of_nothing_tells_nothing(self) -> None:
        self.ok('DELETE', f'{_ACTIVE}?attempt=1', roles=base.SERVICE)
        self.assertEqual([], self.sent.pop())

    def test_an_adoption_unbinds_what_it_drops(self) -> None:
        arq = self.create_arq()
        self.bind(arq)
        self.assertEqual(_BIND, self.sent.pop_types())
        body = {'attempt': 1, 'arqs': [arq]}
        self.ok('PUT', f'{_ACTIVE}/arqs', body, roles=base.SERVICE)
        self.assertEqual([], self.sent.pop())
        self.ok('DELETE', f'{_ACTIVE}?attempt=1', roles=base.SERVICE)
        self.assertEqual(_UNBIND, self.sent.pop_types())


class CompatTest(ArqNotificationTestCase):
    def test_bind_and_unbind(self) -> None:
        arq = self.create_arq()
        self.bind(arq)
        start, end = self.pop_payloads()
        for payload, state in ((start, 'Initial'), (end, 'Bound')):
            self.assertEqual(
                (base.INSTANCE, base.HOSTNAME, None, base.PROJECT),
                tuple(
                    payload[name]
                    for name in (
                        'instance_uuid',
                        'hostname',
                        'role',
                        'project_id',
                    )
                ),
            )
            [told] = payload['accelerator_requests']
            told = told['nova_object.data']
            self.assertEqual(
                (arq, state, base.RP),
                tuple(
                    told[name] for name in ('uuid', 'state', 'device_rp_uuid')
                ),
            )
        self.ok(
            'PATCH',
            _ARQS,
            {
                arq: [
                    {'op': 'remove', 'path': f'/{name}'}
                    for name in ('hostname', 'device_rp_uuid', 'instance_uuid')
                ]
            },
            roles=base.MEMBER,
            token=True,
        )
        start, end = self.pop_payloads()
        self.assertEqual(
            ['Bound', 'Unbound'],
            [
                payload['accelerator_requests'][0]['nova_object.data']['state']
                for payload in (start, end)
            ],
        )

    def test_each_instance_has_its_own(self) -> None:
        winner, loser = self.create_arq(), self.create_arq()
        self.ok(
            'PATCH',
            _ARQS,
            {winner: base.patch(), loser: base.patch(base.NOBODY)},
            roles=base.MEMBER,
            token=True,
        )
        sent = self.sent.pop()
        self.assertEqual(
            [
                ('accelerator_request.bind.start', base.INSTANCE, 'Initial'),
                ('accelerator_request.bind.start', base.NOBODY, 'Initial'),
                ('accelerator_request.bind.end', base.INSTANCE, 'Bound'),
                ('accelerator_request.bind.error', base.NOBODY, 'BindFailed'),
            ],
            [
                (
                    message['event_type'],
                    data['instance_uuid'],
                    data['accelerator_requests'][0]['nova_object.data'][
                        'state'
                    ],
                )
                for message in sent
                for data in [message['payload']['nova_object.data']]
            ],
        )
        self.assertIn(
            '0 free', sent[-1]['payload']['nova_object.data']['fault']
        )

    def test_a_refused_binding(self) -> None:
        arq = self.create_arq()
        self.refused(
            404,
            'PATCH',
            _ARQS,
            {arq: base.patch(rp=base.NOBODY)},
            roles=base.MEMBER,
            token=True,
        )
        _start, error = self.pop_payloads()
        self.assertIn(base.NOBODY, error['fault'])

    def test_deletions_unbind(self) -> None:
        for path in (
            f'{_ARQS}?arqs={{}}',
            f'{_ARQS}?instance={base.INSTANCE}',
            f'{_PATH}?arqs={{}}',
        ):
            arq = self.create_arq()
            self.bind(arq)
            self.sent.pop()
            self.ok(
                'DELETE',
                path.format(arq),
                token=True,
                roles=base.ADMIN + base.SERVICE,
            )
            self.assertEqual(_UNBIND, self.sent.pop_types())

    def test_any_number_of_servers_takes_one_statement(self) -> None:
        self.report_host(functions=2)
        arqs = [self.create_arq(), self.create_arq()]
        for arq, instance in zip(
            arqs, (base.INSTANCE, base.NOBODY), strict=True
        ):
            self.bind(arq, instance=instance)
        statements: list[str] = []
        sa.event.listen(
            engine.manager().reader.get_engine(),
            'before_cursor_execute',
            lambda _connection, _cursor, text, *_: statements.append(text),
        )
        self.sent.pop()
        self.ok('DELETE', f'{_ARQS}?arqs={",".join(arqs)}', token=True)
        self.assertEqual(4, len(self.sent.pop_types()))
        self.assertEqual(
            1, sum('FROM held_periods' in text for text in statements)
        )

    def test_a_deletion_of_what_holds_nothing_tells_nothing(self) -> None:
        self.ok('DELETE', f'{_ARQS}?arqs={self.create_arq()}')
        self.ok('DELETE', f'{_ARQS}?instance={base.INSTANCE}', token=True)
        self.assertEqual([], self.sent.pop())

    def test_a_deletion_that_finds_only_a_part(self) -> None:
        arq = self.create_arq()
        self.bind(arq)
        self.sent.pop()
        path = f'{_ARQS}?arqs={arq},{base.NOBODY}'
        # All or none, but for Nova's clean-up.
        self.refused(404, 'DELETE', path)
        self.assertEqual(
            [
                f'accelerator_request.unbind.{phase}'
                for phase in ('start', 'error')
            ],
            self.sent.pop_types(),
        )
        self.ok('DELETE', path, token=True)
        self.assertEqual(_UNBIND, self.sent.pop_types())


class QuietTest(base.ApiTestCase):
    """No one is told: nothing is read for it."""

    def test_no_statement_more(self) -> None:
        self.report_host(functions=1)
        self.create_profile()
        self.useFixture(
            fixtures.MockPatch(
                'nova_accel.db.host_arqs.get', side_effect=AssertionError
            )
        )
        self.useFixture(
            fixtures.MockPatch(
                'nova_accel.db.client_arqs.get_by_uuids',
                side_effect=AssertionError,
            )
        )
        self.ok('PUT', _ACTIVE, test_binding.wanted(), roles=base.SERVICE)
        self.ok('DELETE', f'{_ACTIVE}?attempt=1', roles=base.SERVICE)
        arq = self.create_arq()
        self.bind(arq)
        self.ok('DELETE', f'{_ARQS}?arqs={arq}', token=True)


class UnreadableTest(ArqNotificationTestCase):
    def test_what_cannot_be_read_fails_no_request(self) -> None:
        with fixtures.MockPatch(
            'nova_accel.db.host_arqs.get', side_effect=OSError('away')
        ):
            self.acquire()
        self.assertIn('away', self.log.output)
        self.assertEqual(_BIND, self.sent.pop_types())
