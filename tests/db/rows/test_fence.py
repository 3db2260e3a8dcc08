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

import sqlalchemy as sa
import testscenarios

from db import test_host_arqs
from nova_accel import exceptions
from nova_accel.db import host_arqs
from nova_accel.db.rows import fence
from nova_accel.db.sql import clock
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.testing import database

load_tests = testscenarios.load_tests_apply_scenarios


class TestFence(test_host_arqs.BindingTestCase):
    scenarios = database.SCENARIOS

    def age_fences(self) -> None:
        fences = schema.BINDINGS
        with engine.writer() as connection:
            connection.execute(
                sa.update(fences).values(
                    released_at=clock.ago(fence.KEPT_S + 60)
                )
            )

    def test_older_attempt(self) -> None:
        request = self.request(attempt=7)
        host_arqs.acquire(request)
        before = self.everything()
        error = self.assertRaises(
            exceptions.StaleAttempt,
            host_arqs.acquire,
            self.again(request, attempt=6),
        )
        self.assertIn(request.instance_uuid, str(error))
        self.assertEqual(before, self.everything())

    def test_of_a_newer_attempt_frees_all(self) -> None:
        request = self.request()
        host_arqs.acquire(request)
        host_arqs.release(*request.key, attempt=3)
        self.assertEqual({}, self.taken())
        self.assertRaises(
            exceptions.StaleAttempt,
            host_arqs.acquire,
            self.again(request, attempt=3),
        )

    def test_of_an_older_attempt(self) -> None:
        request = self.request(attempt=3)
        host_arqs.acquire(request)
        before = self.everything()
        self.assertRaises(
            exceptions.StaleAttempt, host_arqs.release, *request.key, attempt=2
        )
        self.assertEqual(before, self.everything())

    def test_late_acquire_is_refused(self) -> None:
        request = self.request(attempt=3)
        host_arqs.acquire(request)
        host_arqs.release(*request.key, attempt=3)
        for attempt in (1, 3):
            self.assertRaises(
                exceptions.StaleAttempt,
                host_arqs.acquire,
                self.again(request, attempt=attempt),
            )
        self.assertEqual({}, self.taken())
        host_arqs.acquire(self.again(request, attempt=4))

    def test_before_the_acquire_arrives(self) -> None:
        request = self.request()
        host_arqs.release(*request.key, attempt=1)
        self.assertRaises(exceptions.StaleAttempt, host_arqs.acquire, request)
        host_arqs.acquire(self.again(request, attempt=2))

    def test_old_fences_of_the_host_go(self) -> None:
        old = self.request()
        host_arqs.release(*old.key, attempt=1)
        elsewhere = self.request(hostname='compute-2')
        host_arqs.release(*elsewhere.key, attempt=1)
        self.age_fences()
        recent = self.request()
        host_arqs.release(*recent.key, attempt=1)
        held = self.request()
        host_arqs.acquire(held)
        another = self.request()
        host_arqs.release(*another.key, attempt=1)
        self.assertEqual(
            [
                request.instance_uuid
                for request in (elsewhere, recent, held, another)
            ],
            [fence['instance_uuid'] for fence in self.rows(schema.BINDINGS)],
        )
