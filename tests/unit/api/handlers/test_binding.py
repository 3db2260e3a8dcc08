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

from nova_accel.model import arq_types
from nova_accel.model import host_binding
from unit.api import base

_LIST = f'/hosts/{base.HOSTNAME}/instances'
_PATH = f'{_LIST}/{base.INSTANCE}/active'


def wanted(attempt: int = 1, units: int = 1, **more: Any) -> dict[str, Any]:
    return {
        'attempt': attempt,
        'project_id': base.PROJECT,
        'device_profile_name': 'profile',
        'providers': {
            base.RP: {'allocated': {'FPGA': units}, 'traits': base.TRAITS}
        },
        **more,
    }


def of_groups(*groups: dict[str, Any]) -> dict[str, Any]:
    body = wanted(groups=list(groups))
    del body['device_profile_name']
    return body


def wanted_besides(**fields: Any) -> dict[str, Any]:
    return {'attempt': 3, 'arqs': [{**base.WANTED, **fields}]}


class BindingTestCase(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.report_host(functions=2)
        self.create_profile()

    def acquire(self, path: str = _PATH, **more: Any) -> Any:
        return self.ok('PUT', path, wanted(**more), roles=base.SERVICE)['arqs']

    def held(self, path: str = _PATH) -> Any:
        return self.ok('GET', path, roles=base.SERVICE)['arqs']

    def fault(
        self,
        status: int,
        method: str = 'PUT',
        path: str = _PATH,
        body: Any = None,
    ) -> str:
        answer = self.call(method, path, body, roles=base.SERVICE)
        self.assertEqual(status, answer.status_int, answer.text)
        return str(answer.json['error_code'])


class BindingTest(BindingTestCase):
    def test_gives_what_the_model_reads(self) -> None:
        [value] = self.acquire()
        arq = arq_types.Arq.from_dict(value)
        self.assertEqual(arq_types.State.BOUND, arq.state)
        self.assertEqual(base.RP, arq.device_rp_uuid)
        self.assertEqual(base.GROUP, arq.group)
        self.assertEqual(value, arq.to_dict())
        self.assertEqual([value], self.held())

    def test_numa_nodes_are_few_and_small(self) -> None:
        for nodes in ([-1], [1024], [0, 0], [1.5], ['0'], list(range(65)), 0):
            self.assertEqual(
                'InvalidRequest',
                self.fault(400, body=wanted(numa_nodes=nodes)),
            )
        self.acquire(numa_nodes=[0, 1023.0])

    def test_the_same_attempt_gets_the_same(self) -> None:
        self.assertEqual(self.acquire(), self.acquire())
        self.assertEqual(self.acquire(), self.acquire(attempt=1.0))

    def test_an_older_attempt_is_stale(self) -> None:
        self.acquire(attempt=2)
        self.assertEqual('StaleAttempt', self.fault(409, body=wanted(1)))

    def test_a_stale_attempt_is_told_the_newest(self) -> None:
        self.acquire(attempt=2)
        self.acquire(f'{_LIST}/{base.INSTANCE}/old', attempt=7)
        answer = self.call('PUT', _PATH, wanted(1), roles=base.SERVICE)
        self.assertEqual(7, answer.json['newest_attempt'])

    def test_a_far_attempt_frees_nothing(self) -> None:
        held = self.acquire()
        bodies: tuple[dict[str, Any], ...] = (
            wanted(),
            {'arqs': [held[0]['uuid']]},
            {'arqs': [held[0]['uuid']], 'from_role': 'active'},
        )
        for attempt, code in (
            (2**63 - 1, 'InvalidRequest'),
            (2**62, 'FarAttempt'),
            (2**61, 'FarAttempt'),
            (2**21, 'FarAttempt'),
        ):
            self.assertEqual(
                code, self.fault(400, 'DELETE', f'{_PATH}?attempt={attempt}')
            )
            for path, body in zip(
                (_PATH, f'{_PATH}/arqs', f'{_LIST}/{base.INSTANCE}/old/arqs'),
                bodies,
                strict=True,
            ):
                self.assertEqual(
                    code,
                    self.fault(
                        400, path=path, body={**body, 'attempt': attempt}
                    ),
                )
            self.assertEqual(held, self.held())
        answer = self.call(
            'DELETE', f'{_PATH}?attempt={2**61}', roles=base.SERVICE
        )
        self.assertEqual(1, answer.json['newest_attempt'])

    def test_a_number_that_another_request_had(self) -> None:
        """A host that lost its journal begins to count again."""
        [held] = self.acquire(attempt=4)
        answer = self.call(
            'PUT', _PATH, wanted(4, units=2), roles=base.SERVICE
        )
        self.assertEqual(
            (409, 'StaleAttempt', 4),
            (
                answer.status_int,
                answer.json['error_code'],
                answer.json['newest_attempt'],
            ),
        )
        arq = self.create_arq()
        self.bind(arq)
        self.assertEqual(
            'StaleAttempt',
            self.fault(
                409, path=f'{_PATH}/arqs', body={'attempt': 4, 'arqs': [arq]}
            ),
        )
        self.assertEqual([held], self.held())

    def test_groups_instead_of_a_profile(self) -> None:
        [value] = self.ok(
            'PUT', _PATH, of_groups({'resources: FPGA': 1}), roles=base.SERVICE
        )['arqs']
        self.assertEqual(
            ('', 0, {'resources:FPGA': '1'}),
            (
                value['device_profile_name'],
                value['device_profile_group_id'],
                value['group'],
            ),
        )
        [arq] = self.ok(
            'GET',
            f'/accelerator_requests?instance={base.INSTANCE}',
            roles=base.READER,
        )['arqs']
        self.assertEqual('', arq['device_profile_name'])

    def test_refuses_groups_that_are_none(self) -> None:
        for body in (
            wanted(groups=[base.GROUP]),
            {
                key: value
                for key, value in wanted().items()
                if key != 'device_profile_name'
            },
            of_groups(),
            of_groups({'resources:FPGA': '0'}),
            of_groups({'trait:CUSTOM_A': 'required'}),
        ):
            self.fault(400, body=body)
        self.assertEqual([], self.held())

    def test_a_released_attempt_is_stale(self) -> None:
        self.acquire()
        for _number in range(2):
            self.ok('DELETE', f'{_PATH}?attempt=1', roles=base.SERVICE)
        self.assertEqual([], self.held())
        self.assertEqual('StaleAttempt', self.fault(409, body=wanted(1)))

    def test_the_tenant_sees_it_and_cannot_delete_it(self) -> None:
        [value] = self.acquire(image_uuid=base.NOBODY)
        path = '/accelerator_requests'
        [arq] = self.ok(
            'GET', f'{path}?instance={base.INSTANCE}', roles=base.READER
        )['arqs']
        self.assertEqual(value['uuid'], arq['uuid'])
        self.refused(
            403, 'DELETE', f'{path}?arqs={arq["uuid"]}', roles=base.MEMBER
        )

    def test_adopts_what_nova_has_bound(self) -> None:
        arqs = [self.create_arq() for _number in range(2)]
        self.bind(*arqs)
        body = {'attempt': 1, 'arqs': arqs}
        adopted = self.ok('PUT', f'{_PATH}/arqs', body, roles=base.SERVICE)[
            'arqs'
        ]
        self.assertEqual(arqs, [value['uuid'] for value in adopted])
        self.assertEqual(adopted, self.held())
        path = f'/accelerator_requests?instance={base.INSTANCE}'
        shown = self.ok('GET', path)['arqs']
        # As Nova does when the server is deleted.
        self.ok('DELETE', path, roles=base.MEMBER, token=True)
        self.assertEqual(shown, self.ok('GET', path)['arqs'])
        self.refused(
            409,
            'DELETE',
            '/accelerator_requests?arqs=' + ','.join(arqs),
            roles=base.MEMBER,
            token=True,
        )
        self.ok('DELETE', f'{_PATH}?attempt=1', roles=base.SERVICE)
        self.assertEqual([], self.ok('GET', path)['arqs'])

    def test_binds_more(self) -> None:
        [old] = self.acquire()
        body = {
            'attempt': 2,
            'project_id': base.PROJECT,
            'arqs': [base.WANTED],
        }
        path = f'{_PATH}/additions'
        held = self.ok('PUT', path, body, roles=base.SERVICE)['arqs']
        self.assertEqual([old], held[:1])
        arq = arq_types.Arq.from_dict(held[1])
        self.assertEqual(held[1], arq.to_dict())
        self.assertEqual(
            (arq_types.State.BOUND, 'profile', 0, base.GROUP, base.RP),
            (
                arq.state,
                arq.device_profile_name,
                arq.device_profile_group_id,
                arq.group,
                arq.device_rp_uuid,
            ),
        )
        self.assertEqual(
            held, self.ok('PUT', path, body, roles=base.SERVICE)['arqs']
        )
        for name, status, more in (
            ('AcceleratorsBusy', 409, {'attempt': 3}),
            ('StaleAttempt', 409, {'attempt': 1}),
            ('FarAttempt', 400, {'attempt': 2**61}),
            ('NotFound', 404, wanted_besides(device_rp_uuid=base.NOBODY)),
            ('NotFound', 404, {'attempt': 3, 'kept': [base.NOBODY]}),
            ('InvalidRequest', 400, {'kept': ['x']}),
            ('InvalidRequest', 400, {'arqs': []}),
            ('InvalidRequest', 400, {'arqs': [old['uuid']]}),
            ('InvalidRequest', 400, {'arqs': [base.WANTED] * 257}),
            ('InvalidRequest', 400, wanted_besides(device_rp_uuid='x')),
            (
                'InvalidRequest',
                400,
                wanted_besides(device_profile_group_id=-1),
            ),
            ('InvalidDeviceProfile', 400, wanted_besides(group={})),
            (
                'InvalidRequest',
                400,
                wanted_besides(group={'resources:FPGA': 1}),
            ),
            (
                'InvalidDeviceProfile',
                400,
                wanted_besides(group={'resources:FPGA': '0'}),
            ),
            ('InvalidRequest', 400, {'attempt': -1}),
        ):
            self.assertEqual(
                name, self.fault(status, path=path, body={**body, **more})
            )
        self.assertEqual(held, self.held())

    def test_binds_what_a_server_without_any_gets(self) -> None:
        wanted_arq = {
            **base.WANTED,
            'device_profile_name': '',
            'device_profile_group_id': 1.0,
            'group': {'resources:FPGA': '1', 'accel:link': 'pcie'},
        }
        [value] = self.ok(
            'PUT',
            f'{_PATH}/additions',
            {
                'attempt': 1,
                'project_id': base.PROJECT,
                'arqs': [wanted_arq],
                'kept': [],
            },
            roles=base.SERVICE,
        )['arqs']
        self.assertEqual(
            wanted_arq, {name: value[name] for name in wanted_arq}
        )
        self.assertEqual([value], self.held())

    def keep(self, attempt: int, **fields: Any) -> Any:
        return self.ok(
            'PUT',
            f'{_PATH}/arqs',
            {'attempt': attempt, 'arqs': [], **fields},
            roles=base.SERVICE,
        )['arqs']

    def test_keeps_a_part_and_names_it_anew(self) -> None:
        old, new = (arq['uuid'] for arq in self.acquire_two())
        name = {'device_profile_name': 'other', 'device_profile_group_id': 3}
        for attempt, leaving, leaves in (
            (2, {'leaving': [old]}, {old: True, new: False}),
            (3, {}, {new: False}),
        ):
            kept = self.keep(attempt, arqs=[new], names={new: name}, **leaving)
            self.assertEqual(self.held(), kept)
            self.assertEqual(name, {key: kept[-1][key] for key in name})
            self.assertEqual(leaves, self.which_leave())

    def test_all_that_is_held_leaves(self) -> None:
        uuids = [arq['uuid'] for arq in self.acquire_two()]
        self.keep(2, leaving=uuids)
        self.assertEqual(dict.fromkeys(uuids, True), self.which_leave())

    def acquire_two(self) -> Any:
        self.create_profile('pair', base.GROUP, base.GROUP)
        return self.acquire(units=2, device_profile_name='pair')

    def which_leave(self) -> dict[str, bool]:
        return {
            arq['arq']: arq['is_leaving']
            for arq in self.ok(
                'GET',
                f'/servers/{base.INSTANCE}/accelerators',
                roles=base.READER,
                version='2.5',
            )['accelerators']
        }

    def test_moves_what_is_held_to_another_role(self) -> None:
        [value] = self.acquire()
        old = _PATH.replace('active', 'old')
        body = {'attempt': 2, 'arqs': [value['uuid']], 'from_role': 'active'}
        for _number in range(2):
            self.assertEqual(
                [value],
                self.ok('PUT', f'{old}/arqs', body, roles=base.SERVICE)[
                    'arqs'
                ],
            )
        self.assertEqual([], self.held())
        self.assertEqual([value], self.held(old))

    def test_moves_though_it_was_not_told_of_the_move_before(self) -> None:
        [value] = self.acquire()
        old = _PATH.replace('active', 'old')
        self.ok(
            'PUT',
            f'{old}/arqs',
            {'attempt': 2, 'arqs': [value['uuid']], 'from_role': 'incoming'},
            roles=base.SERVICE,
        )
        self.assertEqual([], self.held())
        self.assertEqual([value], self.held(old))

    def test_says_what_cannot_move(self) -> None:
        [value] = self.acquire()
        body = {'attempt': 2, 'arqs': [value['uuid']]}
        old = _PATH.replace('active', 'old')
        for name, status, path, more in (
            ('Conflict', 409, old, {}),
            ('StaleAttempt', 409, old, {'from_role': 'active', 'attempt': 0}),
            ('InvalidRequest', 400, _PATH, {'from_role': 'active'}),
            ('InvalidRequest', 400, old, {'from_role': 'other'}),
        ):
            self.assertEqual(
                name,
                self.fault(status, path=f'{path}/arqs', body={**body, **more}),
            )
        self.assertEqual([value], self.held())

    def test_says_what_cannot_be_adopted(self) -> None:
        arq = self.create_arq()
        for name, status, body in (
            ('NotFound', 404, {'attempt': 1, 'arqs': [base.NOBODY]}),
            ('Conflict', 409, {'attempt': 1, 'arqs': [arq]}),
            ('InvalidRequest', 400, {'attempt': 1, 'arqs': []}),
            ('InvalidRequest', 400, {'attempt': 1, 'arqs': [], 'leaving': []}),
            (
                'InvalidRequest',
                400,
                {'attempt': 1, 'arqs': [arq], 'names': {arq: {}}},
            ),
            (
                'NotFound',
                404,
                {'attempt': 1, 'arqs': [], 'leaving': [base.NOBODY]},
            ),
            ('InvalidRequest', 400, {'attempt': 1, 'arqs': ['x']}),
            ('InvalidRequest', 400, {'arqs': [arq]}),
        ):
            self.assertEqual(
                name, self.fault(status, path=f'{_PATH}/arqs', body=body)
            )
        self.assertEqual([], self.held())

    def test_says_what_cannot_be_done(self) -> None:
        for name, status, body in (
            ('NotFound', 404, wanted(device_profile_name='nope')),
            (
                'NotFound',
                404,
                wanted(
                    providers={
                        base.NOBODY: {'allocated': {'FPGA': 1}, 'traits': []}
                    }
                ),
            ),
            ('NoAssignment', 409, wanted(units=2)),
            ('InvalidRequest', 400, {}),
            ('InvalidRequest', 400, wanted(attempt=2**63)),
        ):
            self.assertEqual(name, self.fault(status, body=body))
        self.assertEqual([], self.held())

    def test_says_when_all_is_taken(self) -> None:
        for number in range(2):
            self.acquire(
                _PATH.replace(base.INSTANCE, base.numbered_uuid(number))
            )
        self.assertEqual('AcceleratorsBusy', self.fault(409, body=wanted()))

    def test_refuses_a_path_that_is_no_binding(self) -> None:
        for path in (
            _PATH.replace('active', 'other'),
            _PATH.replace(base.INSTANCE, 'xyz'),
            _PATH.replace(base.HOSTNAME, 'a%20b'),
        ):
            for method in ('GET', 'PUT', 'DELETE'):
                self.assertEqual(
                    'InvalidRequest', self.fault(400, method, path)
                )

    def test_refuses_a_release_without_its_attempt(self) -> None:
        for query in (
            '',
            '?attempt=',
            '?attempt=-1',
            '?attempt=1.5',
            '?attempt=%C2%B2',
            f'?attempt={2**63}',
            f'?attempt={"9" * 9999}',
        ):
            self.assertEqual(
                'InvalidRequest', self.fault(400, 'DELETE', _PATH + query)
            )


class BindingsTest(BindingTestCase):
    def listed(self, path: str = _LIST) -> list[host_binding.Binding]:
        return [
            host_binding.from_dict(value)
            for value in self.ok('GET', path, roles=base.SERVICE)['bindings']
        ]

    def delete(self, *arqs: str) -> None:
        self.ok(
            'DELETE',
            f'{_LIST}/{base.INSTANCE}?arqs={",".join(arqs)}',
            roles=base.SERVICE,
        )

    def test_gives_all_of_a_host(self) -> None:
        [value] = self.acquire(attempt=5)
        arq = self.create_arq()
        self.bind(arq)
        held, unadopted = self.listed()
        self.assertEqual(
            (base.INSTANCE, 'active', 5, (value['uuid'],)),
            (held.instance_uuid, held.role, held.attempt, held.arq_uuids),
        )
        self.assertEqual(
            (None, None, (arq,)),
            (unadopted.role, unadopted.attempt, unadopted.arq_uuids),
        )
        self.assertTrue(held.is_whole)
        self.assertEqual([], self.listed('/hosts/compute-2/instances'))

    def test_gives_those_that_have_no_device(self) -> None:
        arqs = [self.create_arq() for _number in range(3)]
        self.bind(*arqs)
        [failed] = self.listed()
        self.assertEqual(set(arqs), set(failed.arq_uuids))
        self.assertEqual((), failed.arqs)

    def test_deletes_what_was_not_adopted(self) -> None:
        arqs = [self.create_arq() for _number in range(2)]
        self.bind(*arqs)
        self.delete(base.NOBODY, arqs[0])
        self.assertEqual(
            [(arqs[1],)], [binding.arq_uuids for binding in self.listed()]
        )
        self.ok(
            'PUT',
            f'{_PATH}/arqs',
            {'attempt': 1, 'arqs': arqs[1:]},
            roles=base.SERVICE,
        )
        self.delete(arqs[1])
        self.assertEqual(1, len(self.held()))

    def test_refuses_what_it_cannot_read(self) -> None:
        for method, path in (
            ('GET', '/hosts/a%20b/instances'),
            (
                'DELETE',
                f'/hosts/a%20b/instances/{base.INSTANCE}?arqs={base.NOBODY}',
            ),
            ('DELETE', f'{_LIST}/xyz?arqs={base.NOBODY}'),
            ('DELETE', f'{_LIST}/{base.INSTANCE}'),
            ('DELETE', f'{_LIST}/{base.INSTANCE}?arqs=xyz'),
            ('DELETE', f'{_LIST}/{base.INSTANCE}?uuids=xyz'),
        ):
            self.assertEqual(
                'InvalidRequest', self.fault(400, method, path), path
            )
