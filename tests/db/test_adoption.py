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

from oslo_utils import uuidutils
import testscenarios

from db import test_host_arqs
from nova_accel import exceptions
from nova_accel.db import adoption
from nova_accel.db import client_arqs
from nova_accel.db import host_arqs
from nova_accel.db.sql import schema
from nova_accel.testing import database

load_tests = testscenarios.load_tests_apply_scenarios


class TestAdopt(test_host_arqs.BindingTestCase):
    """What Nova's Cyborg client has bound becomes the host's."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.instance_uuid = uuidutils.generate_uuid()
        self.key = self.instance_uuid, self.host.hostname, 'active'

    def bound(self, *rp_uuids: str) -> list[str]:
        """ARQs of the instance, one for each provider."""
        uuids = self.make_arqs(len(rp_uuids))
        client_arqs.bind(
            {
                uuid: self.place(rp_uuid, self.instance_uuid)
                for uuid, rp_uuid in zip(uuids, rp_uuids, strict=True)
            }
        )
        return uuids

    def two(self) -> list[str]:
        return self.bound(self.host.rp_uuid(), self.host.rp_uuid(1))

    def test_they_are_what_they_were(self) -> None:
        uuids = self.two()
        before = client_arqs.get_all(instance_uuid=self.instance_uuid)
        found = adoption.adopt(self.key, 1, uuids)
        self.assertEqual([{**arq, 'role': 'active'} for arq in before], found)
        self.assertEqual(found, host_arqs.get(*self.key))
        self.assertEqual(
            found, client_arqs.get_all(instance_uuid=self.instance_uuid)
        )
        self.assert_consistent()

    def test_only_the_host_gives_them_back(self) -> None:
        uuids = self.two()
        before = adoption.adopt(self.key, 1, uuids)
        client_arqs.delete_by_instance(self.instance_uuid)
        for call in (
            client_arqs.unbind,
            lambda uuids: client_arqs.delete_by_uuids(
                uuids, bound_allowed=True
            ),
        ):
            self.assertRaises(exceptions.Conflict, call, uuids)
        self.assertEqual(before, host_arqs.get(*self.key))
        self.assert_consistent()
        host_arqs.release(*self.key, attempt=1)
        self.assertEqual([], self.rows(schema.ARQS))
        self.assertEqual({}, self.taken())

    def test_nova_may_bind_others_before_that(self) -> None:
        """On another host, while this one still has a stuck device."""
        adoption.adopt(self.key, 1, self.bound(self.host.rp_uuid()))
        [uuid] = self.bound(self.host.rp_uuid(1))
        self.assertEqual('Bound', client_arqs.get(uuid)['state'])
        self.assert_consistent()

    def test_again(self) -> None:
        uuids = self.two()
        found = adoption.adopt(self.key, 1, uuids)
        before = self.everything()
        self.assertEqual(found, adoption.adopt(self.key, 1, uuids))
        self.assertEqual(before, self.everything())
        self.assertEqual(found, adoption.adopt(self.key, 2, uuids))

    def test_the_same_attempt_for_others(self) -> None:
        """From a host that has lost its journal."""
        adoption.adopt(self.key, 1, self.bound(self.host.rp_uuid()))
        others = self.bound(self.host.rp_uuid(1))
        before = self.everything()
        self.assertRaises(
            exceptions.StaleAttempt, adoption.adopt, self.key, 1, others
        )
        self.assertEqual(before, self.everything())

    def test_older_and_released_attempts(self) -> None:
        uuids = self.two()
        adoption.adopt(self.key, 3, uuids)
        self.assertRaises(
            exceptions.StaleAttempt, adoption.adopt, self.key, 2, uuids
        )
        host_arqs.release(*self.key, attempt=3)
        self.assertRaises(
            exceptions.StaleAttempt, adoption.adopt, self.key, 3, uuids
        )

    def test_what_a_newer_attempt_does_not_name_goes(self) -> None:
        [old] = self.bound(self.host.rp_uuid())
        adoption.adopt(self.key, 1, [old])
        [new] = self.bound(self.host.rp_uuid(1))
        [found] = adoption.adopt(self.key, 2, [new])
        self.assertEqual(new, found['uuid'])
        self.assertEqual(
            [new], [row['uuid'] for row in self.rows(schema.ARQS)]
        )
        self.assert_consistent()

    def test_refusals_change_nothing(self) -> None:
        thief = self.place()
        client_arqs.bind({self.make_arqs(1)[0]: thief})
        [failed] = self.bound(self.host.rp_uuid())
        [unbound] = self.make_arqs(1)
        [of_other] = self.make_arqs(1)
        client_arqs.bind({of_other: self.place(self.host.rp_uuid(1))})
        before = self.everything()
        nowhere = uuidutils.generate_uuid()
        elsewhere = self.instance_uuid, 'compute-2', 'active'
        for fault, text, key, uuid in (
            (exceptions.NotFound, nowhere, self.key, nowhere),
            (exceptions.Conflict, 'BindFailed', self.key, failed),
            (exceptions.Conflict, 'Initial', self.key, unbound),
            (exceptions.Conflict, self.instance_uuid, self.key, of_other),
            (exceptions.Conflict, 'compute-2', elsewhere, of_other),
        ):
            error = self.assertRaises(fault, adoption.adopt, key, 1, [uuid])
            # It is not for the number of the attempt.
            self.assertIs(fault, type(error))
            self.assertIn(text, str(error))
            self.assertEqual(before, self.everything())

    def test_those_of_another_role(self) -> None:
        uuids = self.two()
        adoption.adopt(self.key, 1, uuids)
        self.assertRaises(
            exceptions.Conflict,
            adoption.adopt,
            (*self.key[:2], 'old'),
            1,
            uuids,
        )


class TestMove(test_host_arqs.BindingTestCase):
    """The host gives what it holds for an instance another role."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.active = self.request()
        [self.arq] = host_arqs.acquire(self.active)
        self.old = (*self.active.key[:2], 'old')

    def move(self, attempt: int = 2, *uuids: str) -> list[dict[str, Any]]:
        return adoption.adopt(
            self.old, attempt, uuids or [self.arq['uuid']], 'active'
        )

    def move_back(self, attempt: int) -> list[dict[str, Any]]:
        return adoption.adopt(
            self.active.key, attempt, [self.arq['uuid']], 'old'
        )

    def test_nothing_else_changes(self) -> None:
        handles = self.taken()
        found = self.move()
        self.assertEqual([{**self.arq, 'role': 'old'}], found)
        self.assertEqual(found, host_arqs.get(*self.old))
        self.assertEqual([], host_arqs.get(*self.active.key))
        self.assertEqual(handles, self.taken())

    def test_again(self) -> None:
        found = self.move()
        before = self.everything()
        self.assertEqual(found, self.move())
        self.assertEqual(before, self.everything())
        self.assertEqual(found, self.move(attempt=3))

    def test_there_and_back(self) -> None:
        self.move()
        self.assertEqual([self.arq], self.move_back(3))
        self.assertEqual([], host_arqs.get(*self.old))

    def test_back_though_it_never_arrived_there(self) -> None:
        """The newer request says where they are, and then is the last."""
        self.assertEqual([self.arq], self.move_back(3))
        before = self.everything()
        self.assertRaises(exceptions.StaleAttempt, self.move, 2)
        self.assertEqual(before, self.everything())

    def test_late_requests_of_both_roles_are_refused(self) -> None:
        self.move(3)
        before = self.everything()
        for call in (
            lambda: host_arqs.acquire(self.active),
            lambda: host_arqs.acquire(self.again(self.active, attempt=3)),
            lambda: host_arqs.release(*self.active.key, attempt=2),
            lambda: self.move(2),
            lambda: host_arqs.release(*self.old, attempt=2),
        ):
            self.assertRaises(exceptions.StaleAttempt, call)
            self.assertEqual(before, self.everything())

    def test_the_role_is_free_for_others_then(self) -> None:
        """As for the destination of a resize on the same host."""
        self.move()
        [active] = host_arqs.acquire(
            self.again(
                self.active,
                attempt=3,
                allocations=(self.host.allocated(bus=1),),
            )
        )
        self.assertNotEqual(self.arq['uuid'], active['uuid'])
        host_arqs.release(*self.old, attempt=2)
        self.assertEqual([active], host_arqs.get(*self.active.key))
        self.assert_consistent()

    def test_what_stands_in_the_way_goes(self) -> None:
        self.move()
        host_arqs.acquire(
            self.again(
                self.active,
                attempt=3,
                allocations=(self.host.allocated(bus=1),),
            )
        )
        self.assertEqual([self.arq], self.move_back(4))
        self.assertEqual([self.arq['uuid']], list(self.taken().values()))

    def test_released_it_does_not_come_back(self) -> None:
        self.move()
        host_arqs.release(*self.old, attempt=2)
        self.assertRaises(exceptions.StaleAttempt, self.move, 2)
        self.assertRaises(exceptions.NotFound, self.move, 3)
        self.assertEqual({}, self.taken())

    def test_refusals_change_nothing(self) -> None:
        [other] = host_arqs.acquire(self.request(self.host.allocated(bus=1)))
        before = self.everything()
        for call in (
            lambda: self.move(2, other['uuid']),
            lambda: self.move(2, self.arq['uuid'], other['uuid']),
        ):
            self.assertRaises(exceptions.Conflict, call)
            self.assertEqual(before, self.everything())

    def test_the_first_of_two_moves_was_not_told(self) -> None:
        incoming = (*self.active.key[:2], 'incoming')
        [moved] = adoption.adopt(incoming, 2, [self.arq['uuid']], 'old')
        self.assertEqual(
            (self.arq['uuid'], 'incoming'), (moved['uuid'], moved['role'])
        )
        self.assertEqual([], host_arqs.get(*self.active.key))
