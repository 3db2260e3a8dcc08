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

"""How many statements a call takes, and what any of them failing leaves."""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import datetime
import functools
from typing import Any

from oslo_db import exception as db_exc
from oslo_utils import uuidutils
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import additions
from nova_accel.db import adoption
from nova_accel.db import attribute
from nova_accel.db import bitstream_demand
from nova_accel.db import cleaning_results
from nova_accel.db import client_arqs
from nova_accel.db import deployable
from nova_accel.db import device
from nova_accel.db import device_profile
from nova_accel.db import explanation
from nova_accel.db import free_units
from nova_accel.db import host as host_db
from nova_accel.db import host_arqs
from nova_accel.db import idle_regions
from nova_accel.db import lease
from nova_accel.db import programming
from nova_accel.db import provisioning
from nova_accel.db import server_arqs
from nova_accel.db.sql import schema
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import paging
from nova_accel.model.devices import hardware
from nova_accel.model.fpga import programming_record
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

FINDINGS = tuple(finding.Finding(kind, 'no guest') for kind in finding.Kind)


class Crash(Exception):
    """Nothing in the product expects it."""


class LifeTestCase(base.DatabaseTestCase):
    """Gives each writing call of the package, in a life's order."""

    def setUp(self) -> None:
        super().setUp()
        self.lives = 0
        self.host = reports.SimulatedHost(regions=(2, 1))
        self.make_profile()
        self.host.report()

    def hear_orders(self, host: reports.SimulatedHost | None = None) -> None:
        told = (host or self.host).report()
        assert told is not None
        self.revision = told.revision

    def life(self) -> list[tuple[str, Callable[[], Any]]]:
        """Names and calls; each relies on those before, all leave nothing."""
        pair = [
            self.request(
                self.host.allocated(),
                self.host.allocated(0, 1),
                device_profile_name='pair',
            )
        ] * 2
        pair[1] = dataclasses.replace(pair[0], attempt=2)
        newer = dataclasses.replace(
            pair[0],
            attempt=3,
            allocations=(self.host.allocated(), self.host.allocated(bus=1)),
        )
        changed = dataclasses.replace(self.host, regions=(2, None))
        created: list[str] = []
        held: list[str] = []
        profile_uuid = uuidutils.generate_uuid()
        instance_uuid = uuidutils.generate_uuid()
        key = instance_uuid, self.host.hostname, 'active'

        def create() -> None:
            created[:] = [
                arq['uuid'] for arq in client_arqs.create('pair', base.PROJECT)
            ]

        def bind() -> None:
            client_arqs.bind(
                {
                    uuid: self.place(rp_uuid, instance_uuid)
                    for uuid, rp_uuid in zip(
                        created,
                        (self.host.rp_uuid(), self.host.rp_uuid(1)),
                        strict=True,
                    )
                }
            )

        def acquire_anew() -> None:
            held[:] = [arq['uuid'] for arq in host_arqs.acquire(newer)]

        def move(source: str, target: str, attempt: int) -> None:
            adoption.adopt((*newer.key[:2], target), attempt, held, source)

        return [
            (
                'create profile',
                lambda: device_profile.create(
                    'pair', [base.FPGA, base.FPGA], uuid=profile_uuid
                ),
            ),
            (
                'update profile',
                lambda: device_profile.update(
                    profile_uuid, [base.FPGA, base.FPGA]
                ),
            ),
            ('acquire', lambda: host_arqs.acquire(pair[0])),
            ('acquire newer', lambda: host_arqs.acquire(pair[1])),
            ('acquire anew', acquire_anew),
            ('move', lambda: move('active', 'old', 4)),
            ('move back', lambda: move('old', 'active', 5)),
            ('remove device', changed.report),
            ('release', lambda: host_arqs.release(*newer.key, 5)),
            ('add device', self.host.report),
            ('create', create),
            ('bind', bind),
            ('unbind', lambda: client_arqs.unbind(created)),
            ('bind again', bind),
            ('adopt', lambda: adoption.adopt(key, 1, created)),
            (
                'provision',
                lambda: provisioning.replace(self.host.hostname, created),
            ),
            (
                'provisioned',
                lambda: provisioning.replace(self.host.hostname, []),
            ),
            ('adopt again', lambda: adoption.adopt(key, 2, created)),
            ('release the adopted', lambda: host_arqs.release(*key, 2)),
            ('create once more', create),
            ('bind once more', bind),
            (
                'delete by instance',
                lambda: client_arqs.delete_by_instance(instance_uuid),
            ),
            ('create the unadopted', create),
            ('bind the unadopted', bind),
            (
                'delete the unadopted',
                lambda: host_arqs.delete_unadopted(*key[:2], created),
            ),
            ('create again', create),
            ('delete', lambda: client_arqs.delete_by_uuids(created)),
            (
                'delete profile',
                lambda: device_profile.delete_by_names(['pair']),
            ),
            *self.life_of_an_addition(),
            *self.life_of_a_device(),
            *self.life_of_a_programming(),
            *self.life_of_an_attribute(),
        ]

    def life_of_an_addition(self) -> list[tuple[str, Callable[[], Any]]]:
        request = self.request()
        held: list[str] = []

        def add() -> None:
            held[:] = [
                arq['uuid']
                for arq in additions.add(
                    request.key,
                    2,
                    base.PROJECT,
                    [
                        arq_types.WantedArq(
                            'fpga', 0, base.FPGA, self.host.rp_uuid(1)
                        )
                    ],
                )
            ]

        def keep(attempt: int, leaving: Sequence[str] = ()) -> None:
            adoption.adopt(
                request.key,
                attempt,
                held[1:],
                names={
                    held[1]: {
                        'device_profile_name': 'other',
                        'device_profile_group_id': 1,
                    }
                },
                leaving=leaving,
            )

        return [
            (
                'acquire what fails',
                lambda: held.append(host_arqs.acquire(request)[0]['uuid']),
            ),
            ('add', add),
            (
                'devices fail',
                dataclasses.replace(
                    self.host, faults=((0, 'hot'), (1, 'dead'))
                ).report,
            ),
            ('devices work again', self.host.report),
            ('hold on to what has failed', lambda: keep(3, held[:1])),
            ('give back what has failed', lambda: keep(4)),
            (
                'release what was added',
                lambda: host_arqs.release(*request.key, 4),
            ),
        ]

    def life_of_a_device(self) -> list[tuple[str, Callable[[], Any]]]:
        cleaned = dataclasses.replace(self.host, cleaned=True)
        request = self.request()
        handles: list[str] = []

        def acquire() -> None:
            handles[:] = [
                arq['attach_handle_uuid'] for arq in host_arqs.acquire(request)
            ]

        def set_status(status: hardware.Status) -> None:
            device.set_status(self.host.device_uuid(), status)

        return [
            ('clean after use', cleaned.report),
            (
                'clean what is free',
                lambda: cleaning_results.note(
                    self.host.hostname,
                    [
                        handle.uuid
                        for found in cleaned.devices()
                        for handle in found.handles
                    ],
                    {},
                    10**6,
                ),
            ),
            ('acquire the cleaned', acquire),
            (
                'release the cleaned',
                lambda: host_arqs.release(*request.key, 1),
            ),
            ('hear of the unclean', lambda: self.hear_orders(cleaned)),
            (
                'cleaning fails',
                lambda: cleaning_results.note(
                    self.host.hostname, [], {handles[0]: 'why'}, self.revision
                ),
            ),
            (
                'cleaned',
                lambda: cleaning_results.note(
                    self.host.hostname, handles, {}, self.revision
                ),
            ),
            ('disable', lambda: set_status(hardware.Status.MAINTAINING)),
            ('enable', lambda: set_status(hardware.Status.ENABLED)),
            ('find', dataclasses.replace(cleaned, findings=FINDINGS).report),
            ('clean no more', self.host.report),
        ]

    def life_of_a_programming(self) -> list[tuple[str, Callable[[], Any]]]:
        self.programming = uuidutils.generate_uuid()
        begun = programming_record.Record(
            self.programming,
            self.host.device_uuid(),
            'region0',
            uuidutils.generate_uuid(),
            programming_record.Asker(),
            schema.now(),
        )
        ended = dataclasses.replace(begun, finished_at=schema.now())
        return [
            (
                name,
                functools.partial(
                    programming.note, self.host.hostname, record
                ),
            )
            for name, record in (('program', begun), ('programmed', ended))
        ] + self.life_of_a_demand()

    def life_of_a_demand(self) -> list[tuple[str, Callable[[], Any]]]:
        """Its rows stay; the number of the life keeps them apart."""
        self.lives += 1
        group = {
            **base.FPGA,
            'accel:bitstream_id': uuidutils.generate_uuid(),
        }
        requests = [
            self.request(device_profile_name='', groups=[group])
            for _ in range(2)
        ]
        return [
            call
            for name, request in zip(
                ('new bitstream', 'bitstream'), requests, strict=True
            )
            for call in (
                (
                    f'acquire a {name}',
                    functools.partial(host_arqs.acquire, request),
                ),
                (
                    f'release a {name}',
                    functools.partial(host_arqs.release, *request.key, 1),
                ),
            )
        ] + [
            ('take a lease', lambda: lease.take(f'stock {self.lives}', 60)),
            ('begin to be alone', self.begin_to_be_alone),
            ('end it', self.end_to_be_alone),
        ]

    def begin_to_be_alone(self) -> None:
        self.alone_since = lease._hold(f'region {self.lives}', 60)

    def end_to_be_alone(self) -> None:
        assert self.alone_since is not None
        lease._end(f'region {self.lives}', self.alone_since)

    def life_of_an_attribute(self) -> list[tuple[str, Callable[[], Any]]]:
        deployable_uuid = self.deployable_uuid()
        created: list[str] = []

        def create() -> None:
            created[:] = [
                attribute.create(deployable_uuid, 'rack', '7')['uuid']
            ]

        return [
            ('note', create),
            ('report what is noted', self.host.report),
            ('forget', lambda: attribute.delete(created[0])),
        ]

    def deployable_uuid(self) -> str:
        return next(
            row['uuid']
            for row in self.rows(schema.DEPLOYABLES)
            if row['rp_uuid'] == self.host.rp_uuid()
        )


class TestNumberOfStatements(LifeTestCase):
    scenarios = database.SCENARIOS

    def counts(self) -> dict[str, int]:
        calls = self.life()
        reported = attribute.get_all(self.deployable_uuid())[0]['uuid']
        reads: list[tuple[str, Callable[[], Any]]] = [
            ('get', lambda: host_arqs.get('', self.host.hostname, 'active')),
            ('get of host', lambda: host_arqs.get_of_host('compute-2')),
            ('list', lambda: client_arqs.get_all(base.PROJECT)),
            (
                'list of instance',
                lambda: client_arqs.get_of_instance(uuidutils.generate_uuid()),
            ),
            (
                'get of hosts',
                lambda: host_arqs.get_of_hosts(['compute-1', 'compute-2']),
            ),
            (
                'held units',
                lambda: server_arqs.get_held(uuidutils.generate_uuid()),
            ),
            (
                'forgotten',
                lambda: client_arqs.get_forgotten(datetime.timedelta(days=1)),
            ),
            ('hosts', lambda: host_db.get_all(180)),
            ('all units', lambda: free_units.read(None)),
            ('changed units', lambda: free_units.read(schema.now())),
            ('list profiles', device_profile.get_all),
            ('list devices', device.get_all),
            ('list deployables', deployable.get_all),
            ('explain', lambda: explanation.get_page(['FPGA'], 100)),
            ('list attributes', attribute.get_all),
            ('show attribute', lambda: attribute.get(reported)),
            (
                'holders',
                lambda: deployable.get_holders(
                    self.host.device_uuid(), 'region0'
                ),
            ),
            ('hosts of regions', deployable.get_hosts_of_regions),
            (
                'deployable of an ARQ',
                lambda: self.assertRaises(
                    exceptions.NotFound,
                    deployable.get_of_arq,
                    uuidutils.generate_uuid(),
                ),
            ),
            ('demand', bitstream_demand.read),
            ('idle regions', lambda: idle_regions.read_idle(180)),
            ('list programmings', programming.get_all),
            (
                'next programmings',
                lambda: programming.get_all(paging.Page(2, self.programming)),
            ),
            ('page of arqs', lambda: client_arqs.get_all(page=paging.Page(2))),
            ('page of devices', lambda: device.get_all(page=paging.Page(2))),
            (
                'page of deployables',
                lambda: deployable.get_all(page=paging.Page(2)),
            ),
            ('hear orders', self.hear_orders),
            ('unchanged report', lambda: self.host.report(self.revision)),
        ]
        return {
            name: len(self.statements(call)) for name, call in calls + reads
        }

    def test_does_not_depend_on_what_else_is_there(self) -> None:
        self.make_noise(reports.SimulatedHost('compute-2'))
        few = self.counts()
        self.make_noise(reports.SimulatedHost('compute-3', (8,) * 25))
        self.assertEqual(201, len(self.rows(schema.ARQS)))
        self.assertEqual(few, self.counts())
        for name in (
            'get',
            'get of hosts',
            'held units',
            'forgotten',
            'hosts',
            'list',
            'list of instance',
            'all units',
            'changed units',
            'list profiles',
            'holders',
            'hosts of regions',
            'list programmings',
            'unchanged report',
            'demand',
            'idle regions',
        ):
            self.assertEqual(1, few[name], name)
        for name in (
            'get of host',
            'list devices',
            'list deployables',
            'list attributes',
            'deployable of an ARQ',
            'explain',
        ):
            self.assertEqual(2, few[name], name)
        for name, count in few.items():
            self.assertLessEqual(count, 16, name)

    def counts_of_a_cycle(self) -> dict[str, int]:
        """Of what Nova's Cyborg client does in the life of a server."""
        made: list[str] = []
        instance_uuid = uuidutils.generate_uuid()
        calls: dict[str, Callable[[], Any]] = {
            'create': lambda: made.extend(self.make_arqs(1)),
            'bind': lambda: client_arqs.bind(
                {made[0]: self.place(instance_uuid=instance_uuid)}, read=False
            ),
            'get': lambda: client_arqs.get_of_instance(instance_uuid),
            'delete': lambda: client_arqs.delete_by_instance(instance_uuid),
        }
        return {
            name: len(self.statements(call)) for name, call in calls.items()
        }

    def test_cycle_of_novas_cyborg_client(self) -> None:
        alone = self.counts_of_a_cycle()
        self.assertEqual(
            {'create': 2, 'bind': 6, 'get': 1, 'delete': 4}, alone
        )
        self.make_noise(reports.SimulatedHost('compute-2', (8,) * 25))
        self.assertEqual(alone, self.counts_of_a_cycle())

    def counts_of_functions(self, amount: int) -> list[int]:
        """Of the report, acquire and release of so many."""
        host = reports.SimulatedHost(f'host-{amount}', functions=amount)
        name = f'qat-{amount}'
        self.make_profile({'resources:CUSTOM_QAT': str(amount)}, name=name)
        request = self.request(
            host.allocated_functions(amount),
            hostname=host.hostname,
            device_profile_name=name,
        )
        return [
            len(self.statements(call))
            for call in (
                host.report,
                lambda: host_arqs.acquire(request),
                lambda: host_arqs.release(*request.key, 1),
            )
        ]

    def test_does_not_depend_on_how_much_is_asked_for(self) -> None:
        self.assertEqual(
            self.counts_of_functions(1), self.counts_of_functions(40)
        )

    def test_groups_of_no_profile_cost_no_more(self) -> None:
        counts = [
            len(
                self.statements(
                    lambda request=request: host_arqs.acquire(request)
                )
            )
            for request in (
                self.request(),
                self.request(
                    self.host.allocated(0, 1),
                    device_profile_name='',
                    groups=[base.FPGA],
                ),
            )
        ]
        # They do not have to be read.
        self.assertEqual(counts[0] - 1, counts[1])

    def test_does_not_depend_on_what_is_forgotten(self) -> None:
        counts = []
        for name, regions in (('compute-2', (1,)), ('compute-3', (8,) * 25)):
            self.make_noise(reports.SimulatedHost(name, regions))
            counts.append(
                len(
                    self.statements(
                        # A report a second from now would still be too old.
                        lambda name=name: host_db.forget(name, -1)
                    )
                )
            )
        self.assertEqual([10, 10], counts)
        self.assertEqual({}, self.taken())
        self.assertEqual([], self.rows(schema.ARQS))

    def test_does_not_depend_on_the_size_of_a_report(self) -> None:
        small = reports.SimulatedHost('compute-2')
        large = reports.SimulatedHost('compute-3', (8,) * 64)
        self.assertEqual(
            len(self.statements(small.report)),
            len(self.statements(large.report)),
        )
        self.assertEqual(1, len(self.statements(lambda: large.report(0))))


class TestFailureOfAStatement(LifeTestCase):
    scenarios = database.SCENARIOS

    def test_leaves_all_as_it_was(self) -> None:
        for name, call in self.life():
            before = self.everything()
            number = 0
            while self.fails_at(number, call, Crash()):
                self.assertEqual(
                    before, self.everything(), f'{name}, {number}'
                )
                number += 1
            self.assertGreater(number, 0)
        self.assertEqual({}, self.taken())

    def test_deadlock_begins_the_transaction_again(self) -> None:
        for name, call in self.life():
            self.assertFalse(self.fails_at(0, call, db_exc.DBDeadlock()), name)
        self.assertEqual({}, self.taken())
        self.assertEqual([], self.rows(schema.ARQS))

    def fails_at(
        self, number: int, call: Callable[[], Any], fault: Exception
    ) -> bool:
        """Whether the call got so far that its statement could fail."""
        statements: list[str] = []

        def fail(statement: str) -> None:
            statements.append(statement)
            if len(statements) == number + 1:
                raise fault

        with self.before_statement(fail):
            try:
                call()
            except type(fault):
                return True
        return False
