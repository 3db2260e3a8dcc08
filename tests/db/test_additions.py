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

from collections.abc import Sequence
import dataclasses
import functools
from typing import Any

from oslo_utils import uuidutils
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import additions
from nova_accel.db import adoption
from nova_accel.db import host_arqs
from nova_accel.db import server_arqs
from nova_accel.db.rows import arq_rows
from nova_accel.db.rows import fence
from nova_accel.db.sql import schema
from nova_accel.model import arq_types
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios


def of_qat(rp_uuid: str) -> arq_types.WantedArq:
    return arq_types.WantedArq(
        'qat', 0, {'resources:CUSTOM_QAT': '2'}, rp_uuid
    )


class AdditionTestCase(base.DatabaseTestCase):
    """A server has the region of the first card, of two."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(1, 2), functions=6)
        self.host.report()
        self.make_profile(name='fpga')
        self.request_ = self.request(image_uuid='b' * 36)
        [self.old] = host_arqs.acquire(self.request_)
        self.qat = self.host.allocated_functions(2).rp_uuid

    def report(self, **fields: Any) -> None:
        dataclasses.replace(self.host, **fields).report()

    def wanted(self, rp_uuid: str | None = None) -> arq_types.WantedArq:
        """An FPGA, of the other card unless a provider is given."""
        return arq_types.WantedArq(
            'fpga', 0, base.FPGA, rp_uuid or self.host.rp_uuid(1)
        )

    def add(
        self,
        wanted: Sequence[arq_types.WantedArq] | None = None,
        attempt: int = 2,
        key: fence.Key | None = None,
        **fields: Any,
    ) -> list[arq_rows.ArqRow]:
        return additions.add(
            key or self.request_.key,
            attempt,
            base.PROJECT,
            wanted or [self.wanted()],
            **fields,
        )

    def plain(self) -> fence.Key:
        """The binding of a server that has nothing."""
        return uuidutils.generate_uuid(), self.host.hostname, 'active'


class TestAdd(AdditionTestCase):
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

    def test_to_a_server_that_has_nothing(self) -> None:
        key = self.plain()
        wanted = [self.wanted(), of_qat(self.qat), of_qat(self.qat)]
        held = self.add(wanted, 1, key)
        self.assertEqual(
            [
                (*key, base.PROJECT, each.device_profile_name, each.group)
                for each in wanted
            ],
            [
                (
                    arq['instance_uuid'],
                    arq['hostname'],
                    arq['role'],
                    arq['project_id'],
                    arq['device_profile_name'],
                    arq['group'],
                )
                for arq in held
            ],
        )
        self.assertEqual({'Bound'}, {arq['state'] for arq in held})
        self.assertEqual(
            [None] * 3,
            [
                row['image_uuid']
                for row in self.rows(schema.ARQS)
                if row['instance_uuid'] == key[0]
            ],
        )
        self.assertEqual(held, host_arqs.get(*key))
        self.assert_consistent()
        host_arqs.release(*key, 1)
        self.assertEqual([self.old], host_arqs.get(*self.request_.key))
        self.assertEqual(1, len(self.taken()))

    def test_the_host_gives_the_old_one_back(self) -> None:
        self.report(faults=((0, 'dead'),))
        _old, new = self.add()
        self.assertEqual(
            [new], adoption.adopt(self.request_.key, 3, [new['uuid']])
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
        # A number that another call has used binds nothing.
        self.assertEqual(held, self.add([of_qat(self.qat)]))
        self.assertEqual(before, self.everything())

    def test_two_of_one_group_and_one_provider(self) -> None:
        key = self.plain()
        two = [of_qat(self.qat)] * 2
        old = self.add(two, 1, key)
        held = self.add(two, 2, key)
        self.assertEqual(old, held[:2])
        self.assertEqual(4, len({arq['attach_handle_uuid'] for arq in held}))
        self.assert_consistent()

    def test_one_of_several_joined_groups(self) -> None:
        joined = {**base.QAT, 'accel:link': 'pcie'}
        *_held, new = self.add(
            [arq_types.WantedArq('joined', 1, joined, self.qat)]
        )
        self.assertEqual(
            ('joined', 1, joined),
            (
                new['device_profile_name'],
                new['device_profile_group_id'],
                new['group'],
            ),
        )

    def test_sick_devices_are_not_free(self) -> None:
        self.report(faults=((1, 'dead'),))
        self.assertRaises(exceptions.AcceleratorsBusy, self.add)

    def test_refusals_leave_nothing(self) -> None:
        other = self.request(self.host.allocated(bus=1))
        [others] = host_arqs.acquire(other)
        before = self.everything()
        nothing = uuidutils.generate_uuid()
        free = self.wanted(self.host.rp_uuid(1, 1))
        for fault, text, wanted, fields in (
            (exceptions.StaleAttempt, 'too late', free, {'attempt': 0}),
            (exceptions.FarAttempt, 'too far', free, {'attempt': 2**61}),
            (exceptions.NotFound, nothing, free, {'kept': [nothing]}),
            (
                exceptions.NotFound,
                others['uuid'],
                free,
                {'kept': [self.old['uuid'], others['uuid']]},
            ),
            (
                exceptions.NotFound,
                self.old['uuid'],
                free,
                {'key': self.plain(), 'kept': [self.old['uuid']]},
            ),
            (exceptions.NotFound, nothing, self.wanted(nothing), {}),
            (
                exceptions.NotFound,
                nothing,
                self.wanted(nothing),
                {'key': self.plain()},
            ),
            (
                exceptions.InvalidDeviceProfile,
                'accel:x',
                dataclasses.replace(free, group={**base.FPGA, 'accel:x': '1'}),
                {},
            ),
            (
                exceptions.AcceleratorsBusy,
                self.host.rp_uuid(1),
                self.wanted(),
                {},
            ),
        ):
            error = self.assertRaises(fault, self.add, [wanted], **fields)
            self.assertIn(text, str(error))
            self.assertEqual(before, self.everything())

    def test_too_few_are_free(self) -> None:
        wanted = [self.wanted(self.host.rp_uuid(1, 1))] * 2
        for key in (self.request_.key, self.plain()):
            error = self.assertRaises(
                exceptions.AcceleratorsBusy, self.add, wanted, key=key
            )
            self.assertIn('2 FPGA', str(error))
        self.assertEqual(1, len(self.taken()))

    def test_a_released_binding(self) -> None:
        host_arqs.release(*self.request_.key, 3)
        self.assertRaises(exceptions.StaleAttempt, self.add, attempt=3)
        [new] = self.add(attempt=4)
        self.assertEqual([new], host_arqs.get(*self.request_.key))

    def test_all_at_once(self) -> None:
        """No two servers get the same handle."""
        keys = [self.plain() for _number in '123']
        for key in keys[1:]:
            self.add([of_qat(self.qat)], 1, key)
        results = base.race(
            [
                functools.partial(self.add, [of_qat(self.qat)], 2, key)
                for key in keys
            ]
        )
        self.assertEqual([1, 2, 2], [len(arqs) for arqs in results])
        self.assertEqual(6, len(self.taken()))
        self.assert_consistent()

    def test_the_last_unit(self) -> None:
        results = base.race(
            [self.add, functools.partial(self.add, key=self.plain())]
        )
        self.assertEqual(
            [exceptions.AcceleratorsBusy],
            [type(each) for each in results if isinstance(each, Exception)],
        )
        self.assertEqual(2, len(self.taken()))
        self.assert_consistent()

    def test_the_same_at_once(self) -> None:
        for key, amount in ((self.request_.key, 2), (self.plain(), 1)):
            results = base.race(
                [
                    functools.partial(
                        self.add,
                        [self.wanted(self.host.rp_uuid(1, amount - 1))],
                        key=key,
                    )
                ]
                * 4
            )
            self.assertEqual([results[0]] * 4, results)
            self.assertEqual(amount, len(results[0]))

    def test_statements(self) -> None:
        key = self.plain()
        self.add([of_qat(self.qat)], 1, key)
        self.assertEqual(
            len(self.statements(self.add)),
            len(
                self.statements(
                    lambda: self.add([of_qat(self.qat)] * 4, key=key)
                )
            ),
        )


class TestQuota(AdditionTestCase):
    """Another server of the project has one, too."""

    def setUp(self) -> None:
        super().setUp()
        host_arqs.acquire(self.request(self.host.allocated(1, 1)))

    def limited(
        self, limit: int, kept: list[str] | None, **fields: Any
    ) -> list[arq_rows.ArqRow]:
        return self.add(kept=kept, limits_of_project={'FPGA': limit}, **fields)

    def test_what_is_kept_counts(self) -> None:
        kept = [self.old['uuid']]
        error = self.assertRaises(exceptions.OverQuota, self.limited, 2, kept)
        self.assertIn('limit 2, in use 1, wanted 2', str(error))
        self.assertEqual([self.old], host_arqs.get(*self.request_.key))
        self.assertEqual(2, len(self.limited(3, kept)))

    def test_what_is_given_back_does_not_count(self) -> None:
        self.assertRaises(exceptions.OverQuota, self.limited, 1, [])
        self.assertEqual(2, len(self.limited(2, [])))

    def test_a_server_that_has_nothing(self) -> None:
        key = self.plain()
        self.assertRaises(exceptions.OverQuota, self.limited, 2, [], key=key)
        self.assertEqual(1, len(self.limited(3, [], key=key)))

    def test_other_classes_do_not_count(self) -> None:
        self.limited(0, [], wanted=[of_qat(self.qat)])

    def test_not_counted(self) -> None:
        self.assertEqual(2, len(self.limited(0, None)))

    def test_counted_once(self) -> None:
        held = self.limited(2, [])
        self.assertEqual(held, self.limited(0, []))

    def test_one_server_after_the_other(self) -> None:
        results = base.race(
            [
                functools.partial(
                    self.limited,
                    3,
                    [],
                    wanted=[self.wanted(rp_uuid)],
                    key=self.plain(),
                )
                for rp_uuid in (self.host.rp_uuid(1), self.host.rp_uuid(1))
            ]
        )
        self.assertEqual(
            1, len([each for each in results if isinstance(each, list)])
        )
        self.assertEqual(3, len(self.taken()))


class TestKeep(AdditionTestCase):
    """What the host tells of a binding to which it has added."""

    def setUp(self) -> None:
        super().setUp()
        _old, self.new = self.add([of_qat(self.qat)])

    def keep(
        self,
        kept: Sequence[str],
        leaving: Sequence[str] = (),
        attempt: int = 3,
        **names: int,
    ) -> dict[str, tuple[str, int, bool]]:
        """Uuid -> profile, number of group, whether it leaves."""
        adoption.adopt(
            self.request_.key,
            attempt,
            kept,
            names={
                uuid: {
                    'device_profile_name': name,
                    'device_profile_group_id': number,
                }
                for uuid in kept
                for name, number in names.items()
            },
            leaving=leaving,
        )
        return {
            row['uuid']: (
                row['device_profile_name'],
                row['device_profile_group_id'],
                row['is_leaving'],
            )
            for row in server_arqs.get(self.request_.instance_uuid)
        }

    def test_the_guest_holds_on_and_lets_go(self) -> None:
        old, new = self.old['uuid'], self.new['uuid']
        for _number in range(2):
            self.assertEqual(
                {old: ('fpga', 0, True), new: ('both', 1, False)},
                self.keep([new], [old], both=1),
            )
        self.assertEqual({new: ('both', 1, False)}, self.keep([new], (), 4))
        self.assertEqual([new], list(self.taken().values()))
        self.assert_consistent()

    def test_all_leave(self) -> None:
        both = [self.old['uuid'], self.new['uuid']]
        self.assertEqual(
            dict(
                zip(both, (('fpga', 0, True), ('qat', 0, True)), strict=True)
            ),
            self.keep([], both),
        )
        # They are kept after all.
        self.assertEqual(
            dict.fromkeys(both, ('all', 7, False)),
            self.keep(both, (), 4, all=7),
        )

    def test_one_that_leaves_has_not_failed(self) -> None:
        self.keep([self.new['uuid']], [self.old['uuid']])
        self.report(faults=((0, 'dead'),))
        self.assertEqual(
            [False, False],
            [
                row['has_failed']
                for row in server_arqs.get_held(self.request_.instance_uuid)
            ],
        )

    def test_what_it_does_not_have(self) -> None:
        [others] = host_arqs.acquire(self.request(self.host.allocated(1)))
        before = self.everything()
        nothing = uuidutils.generate_uuid()
        for fault, uuid in (
            (exceptions.NotFound, nothing),
            (exceptions.Conflict, others['uuid']),
        ):
            for kept, leaving in (
                ([uuid], [self.old['uuid']]),
                ([self.old['uuid']], [uuid]),
            ):
                error = self.assertRaises(fault, self.keep, kept, leaving, x=1)
                self.assertIn(uuid, str(error))
        self.assertEqual(before, self.everything())

    def test_names_of_others(self) -> None:
        [others] = host_arqs.acquire(self.request(self.host.allocated(1)))
        adoption.adopt(
            self.request_.key,
            3,
            [self.new['uuid']],
            names={
                others['uuid']: {
                    'device_profile_name': 'x',
                    'device_profile_group_id': 1,
                }
            },
        )
        self.assertEqual(
            ['fpga'],
            [
                row['device_profile_name']
                for row in server_arqs.get(others['instance_uuid'] or '')
            ],
        )

    def test_a_number_that_another_call_has_used(self) -> None:
        self.assertRaises(
            exceptions.StaleAttempt,
            self.keep,
            [self.new['uuid']],
            attempt=2,
        )

    def test_statements(self) -> None:
        def keep(attempt: int, amount: int) -> int:
            return len(
                self.statements(
                    lambda: adoption.adopt(
                        self.request_.key,
                        attempt,
                        uuids[:amount],
                        names={
                            uuid: {
                                'device_profile_name': 'x',
                                'device_profile_group_id': number,
                            }
                            for number, uuid in enumerate(uuids[:amount])
                        },
                        leaving=uuids[amount:],
                    )
                )
            )

        uuids = [
            arq['uuid'] for arq in self.add([of_qat(self.qat)] * 3, attempt=3)
        ]
        self.assertEqual(keep(4, 1), keep(5, 4))
