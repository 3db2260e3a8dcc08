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

"""Requests of several clients at the same time, each with a connection."""

from collections.abc import Callable
from concurrent import futures
import dataclasses
import os
import tempfile
import threading
from typing import Any

import fixtures
from oslo_concurrency import lockutils
from oslo_utils import uuidutils
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import cleaning_results
from nova_accel.db import client_arqs
from nova_accel.db import device
from nova_accel.db import host_arqs
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import host_orders
from nova_accel.model.devices import hardware
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

#: How often a crowd binds. A leak or a double binding would stay; a thousand
#: rounds are what the product is measured by. SQLite has its writers sleep
#: until it is their turn, so that a round takes long and has one order alone.
_CROWD_ROUNDS = {
    backend: int(os.environ.get('RACE_ROUNDS', rounds))
    for backend, rounds in (('sqlite', 4), ('mysql', 10), ('postgresql', 10))
}
_CROWD = 64
_HANDLES = 8


def _call(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    return lambda: function(*args)


class RaceTestCase(base.DatabaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(1, 2), functions=8)
        self.host.report()
        self.make_profile()
        self.make_profile(base.QAT, name='qat')

    def assert_faults(
        self, kind: type[Exception], amount: int, results: list[Any]
    ) -> None:
        faults = [
            result for result in results if isinstance(result, Exception)
        ]
        self.assertEqual(
            [kind] * amount,
            [type(fault) for fault in faults],
            [repr(fault.__cause__) for fault in faults],
        )


class TestAcquire(RaceTestCase):
    scenarios = database.SCENARIOS

    def test_one_free_handle(self) -> None:
        results = base.race(
            [
                _call(host_arqs.acquire, self.request())
                for _ in range(base.RACERS)
            ]
        )
        self.assert_faults(
            exceptions.AcceleratorsBusy, base.RACERS - 1, results
        )
        [[won]] = [result for result in results if isinstance(result, list)]
        self.assertEqual(
            {won['attach_handle_uuid']: won['uuid']}, self.taken()
        )
        self.assertEqual(
            [won['uuid']], [row['uuid'] for row in self.rows(schema.ARQS)]
        )
        self.assertEqual(1, len(self.rows(schema.BINDINGS)))

    def test_two_free_handles_for_pairs(self) -> None:
        self.make_profile(base.FPGA, base.FPGA, name='pair')
        pair = self.host.allocated(bus=1), self.host.allocated(1, 1)
        results = base.race(
            [
                _call(
                    host_arqs.acquire,
                    self.request(*providers, device_profile_name='pair'),
                )
                for providers in (pair, pair[::-1]) * (base.RACERS // 2)
            ]
        )
        self.assert_faults(
            exceptions.AcceleratorsBusy, base.RACERS - 1, results
        )
        self.assertEqual(2, len(self.taken()))
        self.assert_consistent()

    def test_enough_handles_for_all(self) -> None:
        requests = [
            self.request(
                self.host.allocated_functions(1), device_profile_name='qat'
            )
            for _ in range(base.RACERS)
        ]
        results = base.race(
            [_call(host_arqs.acquire, request) for request in requests]
        )
        self.assert_faults(Exception, 0, results)
        self.assertEqual(base.RACERS, len(self.taken()))
        self.assert_consistent()
        released = base.race(
            [_call(host_arqs.release, *request.key, 1) for request in requests]
        )
        self.assertEqual([None] * base.RACERS, released)
        self.assertEqual({}, self.taken())
        self.assertEqual([], self.rows(schema.ARQS))

    def test_same_request(self) -> None:
        self.make_profile({'resources:CUSTOM_QAT': '3'}, name='three')
        request = self.request(
            self.host.allocated_functions(3), device_profile_name='three'
        )
        first, *others = base.race(
            [_call(host_arqs.acquire, request)] * base.RACERS
        )
        self.assertEqual(3, len(first))
        self.assertEqual([first] * len(others), others)
        self.assertEqual(3, len(self.taken()))
        self.assert_consistent()

    def test_attempts_of_one_binding(self) -> None:
        request = self.request(attempt=0)
        held = host_arqs.acquire(request)
        for newest in (8, 16, 24, 32):
            results = base.race(
                [
                    _call(
                        host_arqs.acquire,
                        dataclasses.replace(request, attempt=attempt),
                    )
                    for attempt in range(newest - 7, newest + 1)
                ]
            )
            self.assertEqual(held, results[-1])
            for result in results[:-1]:
                if isinstance(result, Exception):
                    self.assertIsInstance(result, exceptions.StaleAttempt)
                else:
                    self.assertEqual(held, result)
            self.assertEqual(newest, self.rows(schema.BINDINGS)[0]['attempt'])
        self.assertEqual(1, len(self.taken()))

    def test_acquire_and_release_of_one_attempt(self) -> None:
        for _round in range(5):
            request = self.request()
            *_acquired, released = base.race(
                [_call(host_arqs.acquire, request)] * 3
                + [_call(host_arqs.release, *request.key, 1)]
            )
            self.assertIsNone(released)
            self.assertEqual({}, self.taken())
            self.assertEqual([], self.rows(schema.ARQS))


class TestBind(RaceTestCase):
    scenarios = database.SCENARIOS

    def test_one_free_handle(self) -> None:
        results = base.race(
            [
                _call(client_arqs.bind, {uuid: self.place()})
                for uuid in self.make_arqs(base.RACERS)
            ]
        )
        self.assertEqual(
            ['BindFailed'] * (base.RACERS - 1) + ['Bound'],
            sorted(arq['state'] for [arq] in results),
        )
        self.assertEqual(1, len(self.taken()))
        self.assert_consistent()

    def test_one_arq(self) -> None:
        self.make_profile(base.QAT, name='one')
        [created] = client_arqs.create('one', base.PROJECT)
        provider = self.host.allocated_functions(1).rp_uuid
        results = base.race(
            [
                _call(
                    client_arqs.bind, {created['uuid']: self.place(provider)}
                )
                for _ in range(base.RACERS)
            ]
        )
        self.assert_faults(
            exceptions.InvalidTransition, base.RACERS - 1, results
        )
        self.assertEqual(1, len(self.taken()))
        self.assert_consistent()

    def test_one_instance(self) -> None:
        provider = self.host.allocated_functions(1).rp_uuid
        created = [
            arq['uuid']
            for _ in range(base.RACERS)
            for arq in client_arqs.create('qat', base.PROJECT)
        ]
        instance_uuid = uuidutils.generate_uuid()
        results = base.race(
            [
                _call(
                    client_arqs.bind,
                    {uuid: self.place(provider, instance_uuid)},
                )
                for uuid in created
            ]
        )
        self.assert_faults(exceptions.InvalidRequest, base.RACERS - 1, results)
        self.assertEqual(
            1, len(client_arqs.get_all(instance_uuid=instance_uuid))
        )
        self.assertEqual(1, len(self.taken()))
        self.assert_consistent()

    def test_against_deletion(self) -> None:
        for _round in range(5):
            [uuid] = self.make_arqs(1)
            place = self.place()
            bound, deleted = base.race(
                [
                    _call(client_arqs.bind, {uuid: place}),
                    _call(client_arqs.delete_by_uuids, [uuid]),
                ]
            )
            if isinstance(bound, Exception):
                self.assertIsInstance(bound, exceptions.NotFound)
                self.assertIsNone(deleted)
            else:
                self.assertIsInstance(deleted, exceptions.Conflict)
                client_arqs.delete_by_instance(place['instance_uuid'])
            self.assertEqual({}, self.taken())


class TestCrowd(RaceTestCase):
    """Many more binders than attach handles, again and again."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        # Two crowds at a time have more connections than PostgreSQL allows.
        crowd = lockutils.external_lock(
            'nova_accel-crowd', lock_path=tempfile.gettempdir()
        )
        crowd.acquire()
        self.addCleanup(crowd.release)
        # It costs more to connect than to bind. As many as a pool may have
        # for a while stay from round to round.
        group = 'nova_accel_database'
        for name, value in (('max_pool_size', 55), ('max_overflow', 0)):
            engine.CONF.set_override(name, value, group)
            self.addCleanup(engine.CONF.clear_override, name, group)
        super().setUp()
        self.make_profile({'resources:CUSTOM_QAT': str(_CROWD)}, name='crowd')
        self.provider = self.host.allocated_functions(1).rp_uuid
        pool = {
            row['uuid']
            for row in self.rows(schema.DEPLOYABLES)
            if row['rp_uuid'] == self.provider
        }
        self.handles = {
            row['uuid']
            for row in self.rows(schema.ATTACH_HANDLES)
            if row['deployable_uuid'] in pool
        }
        self.assertEqual(_HANDLES, len(self.handles))

    def test_binders(self) -> None:
        for _round in range(_CROWD_ROUNDS[self.backend]):
            # A thousand rounds take longer than a host may be silent.
            self.host.report()
            uuids = [
                arq['uuid']
                for arq in client_arqs.create('crowd', base.PROJECT)
            ]
            with fixtures.FakeLogger() as log:
                results = base.race(
                    [
                        _call(
                            client_arqs.bind, {uuid: self.place(self.provider)}
                        )
                        for uuid in uuids
                    ]
                )
            self.assert_faults(Exception, 0, results)
            self.check_round(
                {arq['uuid']: arq['state'] for [arq] in results}, log
            )
            client_arqs.delete_by_uuids(uuids, bound_allowed=True)
            self.assertEqual({}, self.taken())
            self.assertEqual([], self.rows(schema.ARQS))

    def check_round(
        self, told: dict[str, str], log: fixtures.FakeLogger
    ) -> None:
        """What the binders were told is so, and no handle was left over."""
        found = client_arqs.get_all()
        self.assertEqual(told, {arq['uuid']: arq['state'] for arq in found})
        won = {
            arq['attach_handle_uuid']: arq['uuid']
            for arq in found
            if arq['state'] == 'Bound'
        }
        self.assertEqual(self.handles, won.keys())
        self.assertEqual(won, self.taken())
        self.assert_consistent()
        lost = [arq for arq in found if arq['state'] == 'BindFailed']
        self.assertEqual(_CROWD - _HANDLES, len(lost))
        for arq in lost:
            self.assertIsNone(arq['attach_handle_uuid'])
            self.assertIn(
                f'ARQ {arq["uuid"]} of instance {arq["instance_uuid"]} is '
                'BindFailed: 1 CUSTOM_QAT of resource provider '
                f'{self.provider} on host {self.host.hostname} wanted, '
                '0 free',
                log.output,
            )

    def test_hosts(self) -> None:
        """NATIVE: what the losers asked for leaves no trace."""
        for _round in range(-(-_CROWD_ROUNDS[self.backend] // 10)):
            self.host.report()
            requests = [
                self.request(
                    self.host.allocated_functions(1), device_profile_name='qat'
                )
                for _ in range(_CROWD)
            ]
            results = base.race(
                [_call(host_arqs.acquire, request) for request in requests]
            )
            self.assert_faults(
                exceptions.AcceleratorsBusy, _CROWD - _HANDLES, results
            )
            won = {
                arq['attach_handle_uuid']: arq['uuid']
                for result in results
                if not isinstance(result, Exception)
                for arq in result
            }
            self.assertEqual(self.handles, won.keys())
            self.assertEqual(won, self.taken())
            self.assert_consistent()
            for request, result in zip(requests, results, strict=True):
                if not isinstance(result, Exception):
                    host_arqs.release(*request.key, 1)
            self.assertEqual({}, self.taken())
            self.assertEqual([], self.rows(schema.ARQS))


class TestReport(RaceTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.without = dataclasses.replace(self.host, regions=(None, 2))

    def assert_free_handles_are_present(self) -> None:
        for handle in self.rows(schema.ATTACH_HANDLES):
            self.assertTrue(handle['present'] or handle['arq_uuid'])

    def interleave(
        self, first: Callable[[], Any], second: Callable[[], Any], number: int
    ) -> bool:
        """Let the second begin at a statement of the first.

        :returns: whether the first has that many statements
        """
        statements: list[str] = []
        started: list[futures.Future[None]] = []
        with futures.ThreadPoolExecutor(1) as executor:

            def start(statement: str) -> None:
                if threading.current_thread() is not threading.main_thread():
                    return
                statements.append(statement)
                if len(statements) == number + 1:
                    started.append(executor.submit(second))
                    # It may have to wait for the first.
                    futures.wait(started, 0.1)

            with self.before_statement(start):
                first()
            for future in started:
                future.result()
        return bool(started)

    def check_all_orders(
        self,
        order: Callable[
            [host_arqs.AcquireRequest], tuple[Callable[[], Any], ...]
        ],
    ) -> None:
        for number in range(99):
            self.host.report()
            request = self.request()
            first, second = order(request)
            both = self.interleave(first, second, number)
            if not both:
                second()
            self.assert_free_handles_are_present()
            self.assert_consistent()
            host_arqs.release(*request.key, 99)
            self.without.report()
            self.assertEqual(10, len(self.rows(schema.ATTACH_HANDLES)))
            if not both:
                break
        self.assertGreater(number, 2)

    def test_removal_while_released(self) -> None:
        def order(
            request: host_arqs.AcquireRequest,
        ) -> tuple[Callable[[], Any], ...]:
            host_arqs.acquire(request)
            return (
                _call(host_arqs.release, *request.key, 1),
                self.without.report,
            )

        self.check_all_orders(order)
        self.check_all_orders(lambda request: order(request)[::-1])

    def test_removal_while_acquired(self) -> None:
        def acquire(request: host_arqs.AcquireRequest) -> None:
            try:
                host_arqs.acquire(request)
            except (exceptions.AcceleratorsBusy, exceptions.NotFound):
                self.assertEqual([], host_arqs.get(*request.key))

        def order(
            request: host_arqs.AcquireRequest,
        ) -> tuple[Callable[[], Any], ...]:
            return _call(acquire, request), self.without.report

        self.check_all_orders(order)
        self.check_all_orders(lambda request: order(request)[::-1])

    def assert_told(self, told: host_orders.Orders) -> None:
        told = self.host.report(told.revision) or told
        self.assertEqual(
            {
                row['uuid']
                for row in self.rows(schema.ATTACH_HANDLES)
                if row['unclean_since'] is not None
            },
            told.uncleaned,
        )
        self.assertEqual(
            {
                row['uuid']
                for row in self.rows(schema.DEVICES)
                if row['status'] == hardware.Status.MAINTAINING
            },
            told.disabled,
        )

    def check_told(self, prepare: Callable[[], Callable[[], Any]]) -> None:
        """Whenever its orders change, a host knows them two reports later."""
        for number in range(99):
            told: list[host_orders.Orders] = []

            def report(told: list[host_orders.Orders] = told) -> None:
                answer = self.host.report()
                assert answer is not None
                told.append(answer)

            both = self.interleave(prepare(), report, number)
            if not both:
                break
            self.assert_told(told.pop())
            change = prepare()
            if not self.interleave(report, change, number):
                change()
            self.assert_told(told.pop())
        self.assertGreater(number, 1)

    def test_release_of_what_is_cleaned_while_reported(self) -> None:
        self.host = dataclasses.replace(self.host, cleaned=True)
        self.host.report()

        def prepare() -> Callable[[], Any]:
            handles = [row['uuid'] for row in self.rows(schema.ATTACH_HANDLES)]
            cleaning_results.note(self.host.hostname, handles, {}, 10**6)
            request = self.request()
            host_arqs.acquire(request)
            return _call(host_arqs.release, *request.key, 1)

        self.check_told(prepare)

    def test_disabled_while_reported(self) -> None:
        def prepare() -> Callable[[], Any]:
            uuid = self.host.device_uuid()
            device.set_status(uuid, hardware.Status.ENABLED)
            return _call(device.set_status, uuid, hardware.Status.MAINTAINING)

        self.check_told(prepare)

    def test_devices_that_come_and_go_under_load(self) -> None:
        def boot_and_delete() -> None:
            for _round in range(5):
                request = self.request()
                try:
                    host_arqs.acquire(request)
                except (exceptions.AcceleratorsBusy, exceptions.NotFound):
                    continue
                finally:
                    host_arqs.release(*request.key, 1)

        def come_and_go() -> None:
            for host in (self.without, self.host) * 3:
                host.report()

        with futures.ThreadPoolExecutor(5) as executor:
            for done in [
                executor.submit(boot_and_delete) for _ in range(4)
            ] + [executor.submit(come_and_go)]:
                done.result()
        self.assertEqual({}, self.taken())
        self.assert_free_handles_are_present()
        self.assertEqual(11, len(self.rows(schema.ATTACH_HANDLES)))
