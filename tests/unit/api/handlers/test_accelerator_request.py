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

from typing import Any

import fixtures
import sqlalchemy as sa
import webob

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db.rows import free_handles
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.units import handle_stock
from unit.api import base

CONF = conf.CONF

_PATH = '/accelerator_requests'
_REMOVE = [
    {'op': 'remove', 'path': f'/{name}'}
    for name in ('hostname', 'device_rp_uuid', 'instance_uuid')
]
_INSTANCE_2 = base.numbered_uuid(7)


class AcceleratorRequestTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.report_host(functions=2)
        self.create_profile()

    def states(self, query: str = '', **kwargs: Any) -> dict[str, str]:
        arqs = self.ok('GET', f'{_PATH}{query}', **kwargs)['arqs']
        return {arq['uuid']: arq['state'] for arq in arqs}

    def test_makes_one_arq_for_each_unit_of_each_group(self) -> None:
        self.create_profile(
            'many', {'resources:FPGA': '2'}, {'resources:FPGA': '1'}
        )
        arqs = self.ok('POST', _PATH, {'device_profile_name': 'many'})['arqs']
        self.assertEqual(
            [0, 0, 1], [arq['device_profile_group_id'] for arq in arqs]
        )

    def test_makes_none_of_a_profile_that_is_not_there(self) -> None:
        for name in ('none', '', '!@#$%^&*()=-[]'):
            self.assertIn(
                f'name={name}',
                self.refused(
                    404, 'POST', _PATH, {'device_profile_name': name}
                ),
            )
        self.assertEqual({}, self.states())

    def test_a_project_has_only_so_many_that_are_not_bound(self) -> None:
        CONF.set_override('max_unbound_arqs', 1, 'nova_accel')
        self.addCleanup(CONF.clear_override, 'max_unbound_arqs', 'nova_accel')
        arq = self.create_arq()
        told = self.refused(
            403,
            'POST',
            _PATH,
            {'device_profile_name': 'profile'},
            roles=base.MEMBER,
        )
        self.assertIn('delete those that no one needs', told)
        self.assertEqual({arq: 'Initial'}, self.states())
        self.create_arq(base.OTHER_PROJECT)

    def test_a_project_sees_its_own(self) -> None:
        mine, other = (
            self.create_arq(project)
            for project in (base.PROJECT, base.OTHER_PROJECT)
        )
        self.assertEqual({mine}, set(self.states(roles=base.READER)))
        for caller in (
            {'roles': base.ADMIN},
            {'roles': base.SERVICE},
            {'roles': base.MEMBER, 'token': True},
        ):
            self.assertEqual({mine, other}, set(self.states(**caller)))

    def test_filters_of_2_6(self) -> None:
        bound, other, failed = (
            self.create_arq(),
            self.create_arq(base.OTHER_PROJECT),
            [self.create_arq() for _number in range(2)],
        )
        self.bind(bound)
        self.bind(*failed, instance=_INSTANCE_2)
        for query, found in (
            ('state=Bound', {bound}),
            ('state=Initial', {other}),
            ('state=Bound&bind_state=resolved', {bound}),
            ('state=Initial&bind_state=resolved', set()),
            (f'state=BindFailed&instance={_INSTANCE_2}', {*failed}),
            (f'hostname={base.HOSTNAME}', {bound, *failed}),
            (f'hostname={base.HOSTNAME}&state=Bound', {bound}),
            ('hostname=compute-2', set()),
            (f'project_id={base.OTHER_PROJECT}', {other}),
            ('project_id=nobody', set()),
        ):
            self.assertEqual(
                found, set(self.states(f'?{query}', version='2.4')), query
            )
            self.refused(400, 'GET', f'{_PATH}?{query}', version='2.3')
        self.assertIn(
            '"Frob"',
            self.refused(400, 'GET', f'{_PATH}?state=Frob', version='2.4'),
        )

    def test_another_projects_are_for_who_reaches_all(self) -> None:
        mine, other = (
            self.create_arq(project)
            for project in (base.PROJECT, base.OTHER_PROJECT)
        )
        reader = {'roles': base.READER, 'version': '2.4'}
        self.assertEqual(
            {mine}, set(self.states(f'?project_id={base.PROJECT}', **reader))
        )
        self.assertIn(
            'all_projects',
            self.refused(
                403,
                'GET',
                f'{_PATH}?project_id={base.OTHER_PROJECT}',
                **reader,
            ),
        )
        self.assertIn(
            other,
            self.refused(400, 'GET', f'{_PATH}?marker={other}', **reader),
        )

    def test_another_projects_instance_has_none(self) -> None:
        other = self.create_arq(base.OTHER_PROJECT)
        self.bind(other)
        query = f'?instance={base.INSTANCE}'
        for version in ('2.0', '2.4'):
            for roles, found in (
                (base.MEMBER, {}),
                (base.SERVICE, {other: 'Bound'}),
            ):
                self.assertEqual(
                    found, self.states(query, roles=roles, version=version)
                )
        self.ok('DELETE', f'{_PATH}{query}', roles=base.SERVICE)
        self.assertEqual({}, self.states(query, roles=base.SERVICE))

    def test_another_projects_is_not_there(self) -> None:
        other = self.create_arq(base.OTHER_PROJECT)
        reason = f'ExtArq not found with uuid={other}'
        self.assertEqual(
            reason,
            self.refused(404, 'GET', f'{_PATH}/{other}', roles=base.MEMBER),
        )
        self.assertEqual(
            reason,
            self.refused(
                404, 'DELETE', f'{_PATH}?arqs={other}', roles=base.MEMBER
            ),
        )
        self.ok('GET', f'{_PATH}/{other}', roles=base.SERVICE)

    def test_binding_shows_the_handle(self) -> None:
        arq = self.create_arq()
        self.bind(arq)
        shown = self.ok('GET', f'{_PATH}/{arq}', roles=base.MEMBER, token=True)
        self.assertEqual('Bound', shown['state'])
        self.assertEqual('PCI', shown['attach_handle_type'])
        self.assertEqual('0c', shown['attach_handle_info']['bus'])
        self.assertEqual(
            (base.HOSTNAME, base.RP, base.INSTANCE),
            (
                shown['hostname'],
                shown['device_rp_uuid'],
                shown['instance_uuid'],
            ),
        )

    def test_a_lost_race_leaves_no_handle_behind(self) -> None:
        arqs = [self.create_arq() for _number in range(3)]
        self.bind(*arqs)
        self.assertEqual(
            dict.fromkeys(arqs, 'BindFailed'),
            self.states(f'?instance={base.INSTANCE}'),
        )
        more = [self.create_arq() for _number in range(2)]
        self.bind(*more, instance=_INSTANCE_2)
        self.assertEqual(
            dict.fromkeys(more, 'Bound'),
            self.states(f'?instance={_INSTANCE_2}&bind_state=resolved'),
        )

    def test_the_reason_of_a_failure(self) -> None:
        arqs = [self.create_arq() for _number in range(3)]
        self.bind(*arqs)
        path = f'{_PATH}/{arqs[0]}'
        shown = self.ok('GET', path, version='2.4')
        self.assertIn('3 FPGA of resource provider', shown['reason'])
        self.assertIn('wanted, 2 free', shown['reason'])
        self.assertNotIn('reason', self.ok('GET', path, version='2.3'))
        for body in ({arqs[0]: _REMOVE}, {arqs[0]: base.patch(_INSTANCE_2)}):
            self.ok('PATCH', _PATH, body, roles=base.SERVICE)
            self.assertIsNone(self.ok('GET', path, version='2.4')['reason'])

    def test_why_it_has_its_device(self) -> None:
        arq = self.create_arq()
        path = f'{_PATH}/{arq}'
        for body, expected in (
            (
                {arq: base.patch()},
                'a free set of 2 was broken; others fitted: 1',
            ),
            ({arq: _REMOVE}, None),
        ):
            self.ok('PATCH', _PATH, body, roles=base.SERVICE)
            shown = self.ok('GET', path, version='2.4')
            self.assertEqual(expected, shown['chosen_because'])
        self.assertNotIn('chosen_because', self.ok('GET', path, version='2.3'))

    def test_whether_its_device_works(self) -> None:
        """For tenants, too, and in words that are always the same."""
        bound, unbound = [self.create_arq() for _number in range(2)]
        self.bind(bound)
        nothing = (None, None, None)
        for fault, expected in (
            (None, ('healthy', None, None)),
            ('0000:0c:00.0 is hot', ('failed', 'the device does not work')),
        ):
            report = {**base.report(), 'digest': f'{fault}'}
            report['devices'][0]['fault'] = fault
            self.ok(
                'PUT', f'/hosts/{base.HOSTNAME}', report, roles=base.SERVICE
            )
            who = {'version': '2.5', 'roles': base.READER}
            arqs = [
                *self.ok('GET', _PATH, **who)['arqs'],
                *self.ok('GET', f'{_PATH}?instance={base.INSTANCE}', **who)[
                    'arqs'
                ],
                *(
                    self.ok('GET', f'{_PATH}/{uuid}', **who)
                    for uuid in (bound, unbound)
                ),
            ]
            for arq, is_bound in zip(
                arqs, (True, False, True, True, False), strict=True
            ):
                health = tuple(
                    arq[name]
                    for name in ('health', 'health_reason', 'health_since')
                )
                if not is_bound:
                    self.assertEqual(nothing, health)
                    continue
                self.assertEqual(expected, health[: len(expected)])
                self.assertIs(fault is None, health[2] is None)
        for path in (f'{_PATH}/{bound}', _PATH):
            answer = self.call('GET', path, version='2.4')
            self.assertNotIn('health', answer.text)

    def test_the_reason_tells_nothing_of_others_devices(self) -> None:
        self.ok('POST', f'/devices/{base.DEVICE}/disable')
        arq = self.create_arq()
        self.bind(arq)
        self.assertIn('0 free (2 disabled', self.log.output)
        self.assertTrue(
            self.ok(
                'GET',
                f'{_PATH}/{arq}',
                version='2.4',
            )['reason'].endswith('0 free')
        )

    def test_a_tenant_sees_neither_host_nor_device(self) -> None:
        """Of a bound one no more than of one that is bound to nothing."""
        bound, failed = [self.create_arq() for _number in range(2)]
        self.bind(bound)
        self.ok('POST', f'/devices/{base.DEVICE}/disable')
        self.bind(failed, instance=_INSTANCE_2)
        for roles in (base.MANAGER, base.MEMBER, base.READER):
            for query in (
                '',
                f'?instance={base.INSTANCE}',
                f'?instance={_INSTANCE_2}',
            ):
                answer = self.call(
                    'GET', f'{_PATH}{query}', version='2.4', roles=roles
                )
                self._check_tells_nothing(answer)
            for uuid, state in ((bound, 'Bound'), (failed, 'BindFailed')):
                answer = self.call(
                    'GET', f'{_PATH}/{uuid}', version='2.4', roles=roles
                )
                self._check_tells_nothing(answer)
                self.assertEqual(state, answer.json['state'])
        self.assertEqual(
            exceptions.AcceleratorsBusy.PUBLIC, answer.json['reason']
        )

    def _check_tells_nothing(self, answer: webob.Response) -> None:
        for arq in answer.json.get('arqs', [answer.json]):
            self.assertEqual(
                [None, None, None, None, {}],
                [
                    arq[name]
                    for name in (
                        'hostname',
                        'device_rp_uuid',
                        'chosen_because',
                        'attach_handle_uuid',
                        'attach_handle_info',
                    )
                ],
            )
        for secret in (base.HOSTNAME, base.RP, '0c'):
            self.assertNotIn(f'"{secret}"', answer.text)

    def test_a_tenant_cannot_look_for_a_host(self) -> None:
        for query in (
            f'hostname={base.HOSTNAME}',
            'sort=hostname',
            'sort=state,device_rp_uuid:desc',
        ):
            self.assertIn(
                'nova_accel:host:show',
                self.refused(
                    403,
                    'GET',
                    f'{_PATH}?{query}',
                    version='2.4',
                    roles=base.MEMBER,
                ),
            )
            self.ok('GET', f'{_PATH}?{query}', version='2.4')
            self.ok(
                'GET',
                f'{_PATH}?{query}',
                version='2.4',
                roles=base.MEMBER,
                token=True,
            )

    def test_all_of_an_instance_is_not_asked_for_in_parts(self) -> None:
        query = f'instance={base.INSTANCE}&bind_state=resolved'
        self.ok('GET', f'{_PATH}?{query}', version='2.4')
        for part in (
            'limit=1',
            f'marker={base.NOBODY}',
            'state=Bound',
            'hostname=a',
            'project_id=p',
        ):
            self.assertIn(
                part.partition('=')[0],
                self.refused(
                    400, 'GET', f'{_PATH}?{query}&{part}', version='2.4'
                ),
            )

    def test_unbinding_frees_the_handle(self) -> None:
        for _number in range(3):
            arq = self.create_arq()
            self.bind(arq)
            self.ok('PATCH', _PATH, {arq: _REMOVE}, roles=base.SERVICE)
            self.assertEqual('Unbound', self.states()[arq])

    def test_one_by_its_path(self) -> None:
        arq, other = self.create_arq(), self.create_arq()
        for body, state in (
            ({arq: base.patch()}, 'Bound'),
            ({arq: _REMOVE}, 'Unbound'),
        ):
            self.ok('PATCH', f'{_PATH}/{arq}', body, roles=base.SERVICE)
            self.assertEqual(state, self.states()[arq])
        self.assertIn(
            other,
            self.refused(
                400,
                'PATCH',
                f'{_PATH}/{arq}',
                {arq: base.patch(), other: base.patch()},
                roles=base.SERVICE,
            ),
        )
        self.ok('DELETE', f'{_PATH}/{arq}', roles=base.MEMBER)
        self.assertEqual({other: 'Initial'}, self.states())
        self.assertIn(arq, self.refused(404, 'DELETE', f'{_PATH}/{arq}'))
        self.refused(400, 'DELETE', f'{_PATH}/x')

    def test_gives_an_arq_to_another_project(self) -> None:
        arq = self.create_arq()
        body = {arq: base.patch(project_id=base.OTHER_PROJECT)}
        self.refused(
            406, 'PATCH', _PATH, body, roles=base.SERVICE, version='2.0'
        )
        self.ok('PATCH', _PATH, body, roles=base.SERVICE, version='2.1')
        self.assertEqual({}, self.states(roles=base.MEMBER))
        self.assertEqual(
            {arq},
            set(self.states(roles=base.MEMBER, project=base.OTHER_PROJECT)),
        )

    def test_an_unknown_provider_changes_nothing(self) -> None:
        good, bad = self.create_arq(), self.create_arq()
        self.assertIn(
            base.NOBODY,
            self.refused(
                404,
                'PATCH',
                _PATH,
                {good: base.patch(), bad: base.patch(rp=base.NOBODY)},
                roles=base.SERVICE,
            ),
        )
        self.assertEqual({good: 'Initial', bad: 'Initial'}, self.states())

    def test_a_host_that_never_reported_changes_nothing(self) -> None:
        arq = self.create_arq()
        self.assertEqual(
            'Host compute-9 not found: it has never reported its devices',
            self.refused(
                404,
                'PATCH',
                _PATH,
                {arq: base.patch(hostname='compute-9')},
                roles=base.SERVICE,
            ),
        )
        self.assertEqual({arq: 'Initial'}, self.states())

    def test_a_race_that_is_lost_each_time(self) -> None:
        """No one knows what the next attempt would give."""
        arq, thief = self.create_arq(), self.create_arq()
        stock, attempts = free_handles.read, []

        def stock_of_which_one_is_taken(
            connection: sa.Connection, *args: Any
        ) -> handle_stock.HandleStock:
            read = stock(connection, *args)
            attempts.append(read)
            connection.execute(
                sa.update(schema.ATTACH_HANDLES)
                .where(
                    schema.ATTACH_HANDLES.c.uuid
                    == base.report()['devices'][0]['deployables'][0][
                        'attach_handles'
                    ][0]['uuid']
                )
                .values(arq_uuid=thief)
            )
            return read

        self.report_host(functions=1)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.db.rows.free_handles.read',
                stock_of_which_one_is_taken,
            )
        )
        self.assertEqual(
            'other requests took the free attach handles',
            self.refused(
                409, 'PATCH', _PATH, {arq: base.patch()}, roles=base.SERVICE
            ),
        )
        self.assertEqual(engine.RETRIES + 1, len(attempts))
        self.assertEqual({arq: 'Initial', thief: 'Initial'}, self.states())

    def test_a_silent_host_is_not_bound_to(self) -> None:
        arq = self.create_arq()
        self.useFixture(base.SilentHosts())
        self.bind(arq)
        # It is resolved for Nova, which reads the state of no silent host.
        self.assertEqual(
            {arq: 'BindFailed'},
            self.states(f'?instance={base.INSTANCE}&bind_state=resolved'),
        )
        self.assertIn(
            'host compute-1 has not reported for 180 s', self.log.output
        )

    def test_resolved_filters_where_no_instance_is_named(self) -> None:
        bound, unbound = self.create_arq(), self.create_arq()
        self.bind(bound)
        self.assertEqual({bound: 'Bound'}, self.states('?bind_state=resolved'))
        self.refused(400, 'GET', f'{_PATH}?bind_state=bound')
        self.assertIn(unbound, self.states())

    def test_an_unresolved_arq_of_the_instance_locks_the_answer(self) -> None:
        self.bind(self.create_arq())
        self.useFixture(base.SilentHosts())
        self.assertEqual(
            {'Unknown'},
            set(self.states(f'?instance={base.INSTANCE}').values()),
        )
        answer = self.call(
            'GET', f'{_PATH}?instance={base.INSTANCE}&bind_state=resolved'
        )
        self.assertEqual(423, answer.status_int)

    def test_deletes_all_or_none(self) -> None:
        arq = self.create_arq()
        for roles in (base.MEMBER, base.ADMIN):
            for query in (f'{base.NOBODY},{arq}', f'{arq},{base.NOBODY}'):
                self.assertEqual(
                    f'ExtArq not found with uuid={base.NOBODY}',
                    self.refused(
                        404, 'DELETE', f'{_PATH}?arqs={query}', roles=roles
                    ),
                )
                self.assertEqual({arq: 'Initial'}, self.states())
        # Nova cleans up by it, and asks only once.
        self.ok(
            'DELETE',
            f'{_PATH}?arqs={base.NOBODY},{arq}',
            roles=base.MEMBER,
            token=True,
        )
        self.assertEqual({}, self.states())
        self.refused(
            404,
            'DELETE',
            f'{_PATH}?arqs={base.NOBODY},{arq}',
            roles=base.MEMBER,
            token=True,
        )

    def test_a_token_for_no_project_reaches_nothing(self) -> None:
        arq = self.create_arq()
        self.bind(self.create_arq())
        for project in (None, ''):
            for call in (
                ('GET', _PATH),
                ('GET', f'{_PATH}/{arq}'),
                ('GET', f'{_PATH}?instance={base.INSTANCE}'),
                ('DELETE', f'{_PATH}?arqs={arq}'),
                ('POST', _PATH, {'device_profile_name': 'profile'}),
            ):
                self.assertIn(
                    'belong to projects',
                    self.refused(
                        403, *call, roles=base.MEMBER, project=project
                    ),
                )
        self.assertEqual(2, len(self.states()))

    def test_unbinds_one_that_was_never_bound(self) -> None:
        arq = self.create_arq()
        self.ok('PATCH', _PATH, {arq: _REMOVE}, roles=base.SERVICE)
        self.assertEqual({arq: 'Unbound'}, self.states())

    def test_deletes_bound_ones_for_nova_alone(self) -> None:
        arq = self.create_arq()
        self.bind(arq)
        self.refused(403, 'DELETE', f'{_PATH}?arqs={arq}', roles=base.MEMBER)
        self.assertEqual({arq: 'Bound'}, self.states())
        self.ok('DELETE', f'{_PATH}?arqs={arq}', roles=base.MEMBER, token=True)
        self.assertEqual({}, self.states())

    def test_deletes_those_of_an_instance(self) -> None:
        arq = self.create_arq()
        self.bind(arq)
        for _number in range(2):
            self.ok(
                'DELETE',
                f'{_PATH}?instance={base.INSTANCE}',
                roles=base.MEMBER,
                token=True,
            )
        self.assertEqual({}, self.states())

    def test_does_not_delete_all_for_want_of_an_argument(self) -> None:
        arq = self.create_arq()
        for query in (
            '',
            f'?arqs={arq}&instance={base.INSTANCE}',
            '?arqs=',
            '?instance=',
            f'?arqs={arq},',
        ):
            self.refused(400, 'DELETE', f'{_PATH}{query}', token=True)
        self.assertEqual({arq: 'Initial'}, self.states())
