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

from collections.abc import Mapping
import dataclasses
import functools
from typing import Any

from oslo_utils import uuidutils
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import host_arqs
from nova_accel.db import replacement
from nova_accel.db.rows import arq_rows
from nova_accel.db.sql import schema
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios


class ReplacementTestCase(base.DatabaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(1, 2), functions=6)
        self.host.report()
        self.make_profile(name='fpga')
        self.make_profile({'resources:CUSTOM_QAT': '2'}, name='qat')
        self.request_ = self.request(image_uuid='b' * 36)
        [self.old] = host_arqs.acquire(self.request_)

    def report(self, **fields: Any) -> None:
        dataclasses.replace(self.host, **fields).report()

    def add(
        self, wanted: Mapping[str, str] | None = None, attempt: int = 2
    ) -> list[arq_rows.ArqRow]:
        """Replace what is held by a unit of another card."""
        return replacement.add(
            self.request_.key,
            attempt,
            {self.old['uuid']: self.host.rp_uuid(1)}
            if wanted is None
            else wanted,
        )


class TestAdd(ReplacementTestCase):
    scenarios = database.SCENARIOS

    def test_bound_beside(self) -> None:
        self.report(faults=((0, 'dead'),))
        old, new = self.add()
        self.assertEqual(self.old, old)
        handle = self.host.devices()[1].deployables[0].handles[0]
        self.assertEqual(
            {
                **old,
                'uuid': new['uuid'],
                'created_at': new['created_at'],
                'device_rp_uuid': self.host.rp_uuid(1),
                'attach_handle_uuid': handle.uuid,
                'attach_handle_info': handle.info,
                'attach_handle_identity': handle.identity,
            },
            new,
        )
        first, second = self.rows(schema.ARQS)
        for name in ('image_uuid', 'resource_class', 'chosen_because'):
            self.assertEqual(first[name], second[name], name)
        self.assertIsNotNone(second['bind_ms'])
        self.assert_consistent()

    def test_the_host_gives_the_old_one_back(self) -> None:
        self.report(faults=((0, 'dead'),))
        _old, new = self.add()
        self.assertEqual(
            [new], host_arqs.adopt(self.request_.key, 3, [new['uuid']])
        )
        self.assertEqual(
            {new['attach_handle_uuid']: new['uuid']}, self.taken()
        )
        self.assertRaises(exceptions.StaleAttempt, self.add, attempt=2)
        host_arqs.release(*self.request_.key, 4)
        self.assertEqual([], self.rows(schema.ARQS))

    def test_repeated(self) -> None:
        held = self.add()
        before = self.everything()
        self.assertEqual(held, self.add())
        self.assertEqual(before, self.everything())

    def test_two_of_one_group_and_one_provider(self) -> None:
        qat = self.host.allocated_functions(2)
        request = self.request(qat, device_profile_name='qat')
        old = host_arqs.acquire(request)
        held = replacement.add(
            request.key, 2, {arq['uuid']: qat.rp_uuid for arq in old}
        )
        self.assertEqual(old, held[:2])
        self.assertEqual(4, len({arq['attach_handle_uuid'] for arq in held}))
        self.assert_consistent()

    def test_one_of_several_joined_groups(self) -> None:
        joined = {**base.QAT, 'accel:link': 'pcie'}
        self.make_profile(joined, joined, name='joined')
        one = self.host.allocated_functions(1)
        request = self.request(
            self.host.allocated_functions(2), device_profile_name='joined'
        )
        old, _other = host_arqs.acquire(request)
        *_held, new = replacement.add(
            request.key, 2, {old['uuid']: one.rp_uuid}
        )
        self.assertEqual(joined, new['group'])

    def test_sick_devices_are_not_free(self) -> None:
        self.report(faults=((1, 'dead'),))
        self.assertRaises(exceptions.AcceleratorsBusy, self.add)

    def test_refusals_leave_nothing(self) -> None:
        other = self.request(self.host.allocated(bus=1))
        [others] = host_arqs.acquire(other)
        before = self.everything()
        rp_uuid = self.host.rp_uuid(1, 1)
        nothing = uuidutils.generate_uuid()
        for fault, text, wanted, attempt in (
            (exceptions.StaleAttempt, 'too late', None, 0),
            (exceptions.FarAttempt, 'too far', None, 2**61),
            (exceptions.NotFound, nothing, {nothing: rp_uuid}, 2),
            (
                exceptions.NotFound,
                others['uuid'],
                {self.old['uuid']: rp_uuid, others['uuid']: rp_uuid},
                2,
            ),
            (exceptions.NotFound, nothing, {self.old['uuid']: nothing}, 2),
            (exceptions.AcceleratorsBusy, self.host.rp_uuid(1), None, 2),
        ):
            error = self.assertRaises(fault, self.add, wanted, attempt)
            self.assertIn(text, str(error))
            self.assertEqual(before, self.everything())

    def test_a_released_binding(self) -> None:
        host_arqs.release(*self.request_.key, 3)
        self.assertRaises(exceptions.StaleAttempt, self.add, attempt=3)
        self.assertRaises(exceptions.NotFound, self.add, attempt=4)
        self.assertEqual([], self.rows(schema.ARQS))

    def test_all_at_once(self) -> None:
        """No two servers get the same handle."""
        self.make_profile(base.QAT, name='one')
        qat = self.host.allocated_functions(1)
        requests = [
            self.request(qat, device_profile_name='one') for _number in '123'
        ]
        held = [host_arqs.acquire(each)[0]['uuid'] for each in requests]
        results = base.race(
            [
                functools.partial(
                    replacement.add, each.key, 2, {uuid: qat.rp_uuid}
                )
                for each, uuid in zip(requests, held, strict=True)
            ]
        )
        self.assertEqual([2, 2, 2], [len(arqs) for arqs in results])
        self.assertEqual(7, len(self.taken()))
        self.assert_consistent()

    def test_the_last_unit(self) -> None:
        other = self.request(self.host.allocated(1, 1))
        [arq] = host_arqs.acquire(other)
        last = self.host.rp_uuid(1)
        results = base.race(
            [
                self.add,
                functools.partial(
                    replacement.add, other.key, 2, {arq['uuid']: last}
                ),
            ]
        )
        self.assertEqual(
            [exceptions.AcceleratorsBusy],
            [type(each) for each in results if isinstance(each, Exception)],
        )
        self.assertEqual(3, len(self.taken()))
        self.assert_consistent()

    def test_the_same_at_once(self) -> None:
        results = base.race([self.add] * 4)
        self.assertEqual([results[0]] * 4, results)
        self.assertEqual(2, len(results[0]))

    def test_statements(self) -> None:
        qat = self.host.allocated_functions(2)
        request = self.request(qat, device_profile_name='qat')
        two = host_arqs.acquire(request)
        self.assertEqual(
            len(self.statements(self.add)),
            len(
                self.statements(
                    lambda: replacement.add(
                        request.key,
                        2,
                        {arq['uuid']: qat.rp_uuid for arq in two},
                    )
                )
            ),
        )


class TestHeld(ReplacementTestCase):
    scenarios = database.SCENARIOS

    def held(self, project_id: str | None = None) -> list[tuple[str, bool]]:
        return [
            (row['uuid'], row['has_failed'])
            for row in replacement.get_held(
                self.request_.instance_uuid, project_id
            )
        ]

    def test_which_have_failed(self) -> None:
        uuid = self.old['uuid']
        self.assertEqual([(uuid, False)], self.held())
        self.report(faults=((0, 'dead'),))
        self.assertEqual([(uuid, True)], self.held())
        self.report()
        self.assertEqual([(uuid, False)], self.held())
        self.report(regions=(None, 2))
        self.assertEqual([(uuid, True)], self.held())

    def test_only_of_the_project(self) -> None:
        self.assertEqual(1, len(self.held(base.PROJECT)))
        self.assertEqual([], self.held('c' * 32))

    def test_only_active_ones(self) -> None:
        host_arqs.adopt(
            (*self.request_.key[:2], 'old'), 2, [self.old['uuid']], 'active'
        )
        self.assertEqual([], self.held())

    def test_the_host(self) -> None:
        [row] = replacement.get_held(self.request_.instance_uuid)
        self.assertEqual(
            (self.host.hostname, self.host.service_host, self.host.contract),
            (row['hostname'], row['service_host'], row['contract']),
        )
        self.assertIs(False, row['is_silent'])

    def test_one_statement(self) -> None:
        self.assertEqual(1, len(self.statements(self.held)))
