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

"""What a project may have, counted while others ask, too."""

from collections.abc import Callable
import functools
from typing import Any

from oslo_utils import uuidutils
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import adoption
from nova_accel.db import client_arqs
from nova_accel.db import host_arqs
from nova_accel.db.sql import schema
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

#: How often all ask at once.
_ROUNDS = 5


class QuotaTestCase(base.DatabaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(), functions=16)
        self.host.report()
        self.make_profile(base.QAT, name='qat')

    def asked(
        self, amount: int = 1, **fields: Any
    ) -> host_arqs.AcquireRequest:
        """What an instance is to have of the functions."""
        return self.request(
            self.host.allocated_functions(amount),
            **{
                'device_profile_name': 'qat',
                'groups': [{'resources:CUSTOM_QAT': str(amount)}],
                **fields,
            },
        )

    def acquire(self, limit: int | None, *args: Any, **fields: Any) -> Any:
        limits = None if limit is None else {'CUSTOM_QAT': limit}
        request = self.asked(*args, **fields)
        host_arqs.acquire(request, limits)
        return request

    def refused(self, *args: Any, **fields: Any) -> str:
        before = self.everything()
        fault = self.assertRaises(
            exceptions.OverQuota, self.acquire, *args, **fields
        )
        after = self.everything()
        for found in (before, after):
            # A row of the count is no more than that.
            del found[schema.QUOTA_COUNTS.name]
        self.assertEqual(before, after)
        return str(fault)

    def bound(self, instance_uuid: str) -> str:
        """An ARQ that Nova has bound, and that no host has adopted."""
        [arq] = client_arqs.create('qat', base.PROJECT)
        rp_uuid = self.host.allocated_functions(1).rp_uuid
        client_arqs.bind({arq['uuid']: self.place(rp_uuid, instance_uuid)})
        return str(arq['uuid'])

    def adopt(
        self, limit: int, instance_uuid: str, uuid: str, role: str = 'active'
    ) -> None:
        adoption.adopt(
            (instance_uuid, self.host.hostname, role),
            1,
            [uuid],
            limits_of_project={'CUSTOM_QAT': limit},
        )

    def assert_one(self, results: list[Any]) -> int:
        """One has got it, and the others are told why not.

        :returns: which one
        """
        faults = [
            each for each in results if isinstance(each, exceptions.OverQuota)
        ]
        self.assertEqual(len(results) - 1, len(faults), results)
        self.assertEqual(
            {'quota exceeded: class:CUSTOM_QAT: limit 1, in use 1, wanted 1'},
            set(map(str, faults)),
        )
        [winner] = [
            number
            for number, each in enumerate(results)
            if not isinstance(each, Exception)
        ]
        return winner


class TestRace(QuotaTestCase):
    """As many as ask at once, one gets the only unit that they may have."""

    scenarios = database.SCENARIOS

    def test_acquire(self) -> None:
        for _round in range(_ROUNDS):
            requests = [self.asked() for _racer in range(base.RACERS)]
            winner = requests[
                self.assert_one(
                    base.race(
                        [
                            functools.partial(
                                host_arqs.acquire, each, {'CUSTOM_QAT': 1}
                            )
                            for each in requests
                        ]
                    )
                )
            ]
            self.assertEqual(1, len(self.taken()))
            host_arqs.release(*winner.key, 1)
            # Now there is room for another.
            host_arqs.release(*self.acquire(1).key, 1)

    def test_adopt(self) -> None:
        """Those of Nova's own client, which it has bound before."""
        for _round in range(_ROUNDS):
            calls: list[Callable[[], Any]] = []
            instances = []
            for _racer in range(base.RACERS):
                instances.append(uuidutils.generate_uuid())
                uuid = self.bound(instances[-1])
                calls.append(
                    functools.partial(self.adopt, 1, instances[-1], uuid)
                )
            winner = self.assert_one(base.race(calls))
            host_arqs.release(
                instances[winner], self.host.hostname, 'active', 1
            )
            for instance_uuid in instances:
                client_arqs.delete_by_instance(instance_uuid)
            self.assertEqual({}, self.taken())

    def test_two_projects_do_not_count_together(self) -> None:
        found = base.race(
            [
                functools.partial(self.acquire, 1, project_id=project_id)
                for project_id in ('one', 'two')
            ]
        )
        self.assertEqual({'one', 'two'}, {each.project_id for each in found})


class TestCount(QuotaTestCase):
    scenarios = database.SCENARIOS

    def test_what_counts(self) -> None:
        """Each role of each binding, and no ARQ without a role."""
        for role in ('active', 'old', 'incoming', 'port'):
            self.acquire(None, role=role)
        self.bound(uuidutils.generate_uuid())
        self.assertEqual(
            'quota exceeded: class:CUSTOM_QAT: limit 4, in use 4, wanted 1',
            self.refused(4),
        )
        self.acquire(5)

    def test_the_same_again(self) -> None:
        request = self.acquire(1)
        host_arqs.acquire(request, {'CUSTOM_QAT': 1})
        # A rebuild is a newer attempt. It may also get less or as much anew.
        self.acquire(1, instance_uuid=request.instance_uuid, attempt=2)
        self.assertEqual(1, len(self.taken()))

    def test_moves(self) -> None:
        """What the server has on the source counts only for more of it."""
        for role in ('active', 'old'):
            source = self.acquire(None, role=role)
            server = {
                'instance_uuid': source.instance_uuid,
                'role': 'incoming',
            }
            self.acquire(0, **server)
            host_arqs.release(*source.key[:2], 'incoming', 1)
            self.assertEqual(
                'quota exceeded: class:CUSTOM_QAT: limit 2, in use 1, '
                'wanted 2',
                self.refused(2, 2, attempt=2, **server),
            )
            host_arqs.release(*source.key, 1)

    def test_adoption_of_what_the_role_has(self) -> None:
        instance_uuid = uuidutils.generate_uuid()
        uuid = self.bound(instance_uuid)
        self.adopt(1, instance_uuid, uuid)
        self.adopt(1, instance_uuid, uuid)

    def test_statements(self) -> None:
        """Two more with a limit, whatever the project has; else none."""
        self.acquire(1)
        free = len(self.statements(lambda: self.acquire(None)))
        other = len(
            self.statements(
                lambda: host_arqs.acquire(self.asked(), {'FPGA': 1})
            )
        )
        limited = len(self.statements(lambda: self.acquire(9)))
        self.acquire(None, 3)
        again = len(self.statements(lambda: self.acquire(9)))
        self.assertEqual((free, free + 2, free + 2), (other, limited, again))
