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

"""Whether each change reaches those who read only what has changed."""

from collections.abc import Callable
import dataclasses
import datetime
from typing import Any
from unittest import mock

import fixtures
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel.db import cleaning_results
from nova_accel.db import client_arqs
from nova_accel.db import device
from nova_accel.db import free_units
from nova_accel.db import host
from nova_accel.db import host_arqs
from nova_accel.db.sql import clock
from nova_accel.db.sql import schema
from nova_accel.model import naming
from nova_accel.model.devices import hardware
from nova_accel.model.units import known_units
from nova_accel.model.units import unit_changes
from nova_accel.scheduler import known_stock
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

_LONG_AGO = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


class FreeUnitsTestCase(base.DatabaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(2, 1), functions=3)
        self.make_profile()

    def make_old(self) -> None:
        """Have all changes be older than any transaction may last."""
        with self.database.engine.begin() as connection:
            for table in (schema.HOSTS, schema.ATTACH_HANDLES):
                connection.execute(
                    sa.update(table).values(changed_at=_LONG_AGO)
                )

    def now(self) -> datetime.datetime:
        with self.database.engine.connect() as connection:
            found = connection.scalar(sa.select(clock.now()))
        assert found is not None
        return found

    def changes(self, call: Callable[[], Any]) -> unit_changes.Changes:
        """What a reader sees that has seen all that was before."""
        self.make_old()
        since = self.now()
        call()
        return free_units.read(since)

    def free(
        self, deployables: Any, resource_class: str = 'FPGA'
    ) -> list[int]:
        return [
            each.free
            for each in sorted(deployables)
            if each.resource_class == resource_class
        ]


class TestWhyNotFree(FreeUnitsTestCase):
    scenarios = database.SCENARIOS

    def reasons(self) -> list[dict[str | None, int]]:
        known = known_units.KnownUnits()
        known.apply(free_units.read(None), 0)
        return [dict(each.units) for each in known.inventories(['FPGA'])]

    def test_in_the_words_for_tenants(self) -> None:
        self.host = reports.SimulatedHost(cleaned=True)
        self.host.clean()
        self.assertEqual([{None: 1}], self.reasons())
        request = self.request()
        host_arqs.acquire(request)
        self.assertEqual([{'in use': 1}], self.reasons())
        host_arqs.release(*request.key, 1)
        self.assertEqual([{'not clean': 1}], self.reasons())
        dataclasses.replace(self.host, faults=((0, 'hot'),)).report()
        self.assertEqual([{'faulty': 1}], self.reasons())
        device.set_status(self.host.device_uuid(), hardware.Status.MAINTAINING)
        self.assertEqual([{'disabled': 1}], self.reasons())


class TestRead(FreeUnitsTestCase):
    scenarios = database.SCENARIOS

    def test_everything(self) -> None:
        self.host.report()
        found = free_units.read(None)
        self.assertTrue(found.is_all)
        self.assertEqual((), tuple(found.others))
        self.assertEqual(frozenset(), found.silent)
        self.assertEqual({'compute-1'}, found.of_hosts.keys())
        here = found.of_hosts['compute-1']
        self.assertEqual(6, len(here))
        [region] = [
            each for each in here if each.rp_uuid == self.host.rp_uuid(0, 1)
        ]
        self.assertEqual(
            unit_changes.ChangedDeployable(
                'compute-1',
                region.uuid,
                self.host.rp_uuid(0, 1),
                'FPGA',
                frozenset(
                    {
                        'CUSTOM_REGION1',
                        naming.OWNERSHIP_TRAIT,
                        naming.OWNER_TRAIT,
                    }
                ),
                self.host.device_uuid(),
                0,
                'region1',
                None,
                1,
                1,
            ),
            region,
        )
        self.assertEqual(
            3, sum(each.resource_class == 'CUSTOM_QAT' for each in here)
        )

    def test_link_sets(self) -> None:
        self.host.report()
        linked = dataclasses.replace(self.host, link_sets=('four', 'two'))
        found = self.changes(linked.report)
        for each in found.of_hosts['compute-1']:
            self.assertEqual(('four', 'two'), each.link_sets)
        found = self.changes(self.host.report)
        self.assertEqual(
            {()}, {each.link_sets for each in found.of_hosts['compute-1']}
        )

    def test_the_clock_is_that_of_the_database(self) -> None:
        before = self.now()
        found = free_units.read(None).at
        self.assertTrue(before <= found <= self.now())

    def test_hosts_of_which_placement_lacks_a_change(self) -> None:
        self.host.report()
        reports.SimulatedHost('compute-2').report()
        self.assertEqual(frozenset(), free_units.read(None).unpublished)
        device.set_status(self.host.device_uuid(), hardware.Status.MAINTAINING)
        for since in (None, self.now()):
            self.assertEqual({'compute-1'}, free_units.read(since).unpublished)
        self.host.follow()
        self.assertEqual(frozenset(), free_units.read(None).unpublished)

    def test_one_statement(self) -> None:
        self.host.report()
        for since in (None, self.now()):
            self.assertEqual(
                1,
                len(self.statements(lambda at=since: free_units.read(at))),
            )

    def test_a_host_without_devices(self) -> None:
        dataclasses.replace(self.host, regions=(), functions=0).report()
        self.assertEqual({'compute-1': []}, free_units.read(None).of_hosts)

    def test_nothing(self) -> None:
        self.host.report()
        found = self.changes(lambda: None)
        self.assertFalse(found.is_all)
        self.assertEqual(({}, []), (found.of_hosts, found.others))

    def test_silent_hosts(self) -> None:
        self.host.report()
        reports.SimulatedHost('compute-2').report()
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.HOSTS)
                .where(schema.HOSTS.c.hostname == 'compute-2')
                .values(reported_at=clock.ago(3600))
            )
        for since in (None, self.now()):
            self.assertEqual({'compute-2'}, free_units.read(since).silent)


class TestChanges(FreeUnitsTestCase):
    """By how each change is found: the host's row or the handle's."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        reports.SimulatedHost('compute-2', functions=2).report()
        self.host.report()

    def changed_host(self, call: Callable[[], Any]) -> list[Any]:
        """The deployables of the one host that a call changes."""
        found = self.changes(call)
        self.assertEqual(['compute-1'], list(found.of_hosts))
        return list(found.of_hosts['compute-1'])

    def changed_units(self, call: Callable[[], Any]) -> list[Any]:
        """The deployables that a call changes, and no host."""
        found = self.changes(call)
        self.assertEqual({}, found.of_hosts)
        return list(found.others)

    def test_a_heartbeat(self) -> None:
        self.assertEqual([], self.changed_units(self.host.report))

    def test_taken_and_given_back(self) -> None:
        request = self.request()
        [taken] = self.changed_units(lambda: host_arqs.acquire(request))
        self.assertEqual(self.host.rp_uuid(), taken.rp_uuid)
        self.assertEqual((1, 0), (taken.total, taken.free))
        [given] = self.changed_units(
            lambda: host_arqs.release(*request.key, 1)
        )
        self.assertEqual((1, 1), (given.total, given.free))

    def test_bound_and_unbound_by_novas_cyborg_client(self) -> None:
        arqs = self.make_arqs(1)
        [bound] = self.changed_units(
            lambda: client_arqs.bind({arqs[0]: self.place()})
        )
        self.assertEqual(0, bound.free)
        [unbound] = self.changed_units(lambda: client_arqs.unbind(arqs))
        self.assertEqual(1, unbound.free)

    def test_a_new_host(self) -> None:
        new = reports.SimulatedHost('compute-3')
        found = self.changes(new.report)
        self.assertEqual(['compute-3'], list(found.of_hosts))
        self.assertEqual(1, len(found.of_hosts['compute-3']))

    def test_the_last_device_goes(self) -> None:
        empty = dataclasses.replace(self.host, regions=(), functions=0)
        self.assertEqual([], self.changed_host(empty.report))

    def test_a_fault_comes_and_goes(self) -> None:
        faulty = dataclasses.replace(self.host, faults=((0, 'too hot'),))
        self.assertEqual(
            [0, 0, 1], sorted(self.free(self.changed_host(faulty.report)))
        )
        self.assertEqual(
            [1, 1, 1], self.free(self.changed_host(self.host.report))
        )

    def test_disabled_and_enabled(self) -> None:
        def set_status(status: hardware.Status) -> Callable[[], Any]:
            return lambda: device.set_status(self.host.device_uuid(), status)

        disabled = self.changed_host(set_status(hardware.Status.MAINTAINING))
        self.assertEqual([0, 0, 1], sorted(self.free(disabled)))
        self.assertEqual(6, sum(each.total for each in disabled))
        enabled = self.changed_host(set_status(hardware.Status.ENABLED))
        self.assertEqual([1, 1, 1], self.free(enabled))

    def test_a_pool_shrinks(self) -> None:
        smaller = dataclasses.replace(self.host, functions=1)
        self.assertEqual(
            [1], self.free(self.changed_host(smaller.report), 'CUSTOM_QAT')
        )

    def test_a_handle_that_is_gone_is_given_back(self) -> None:
        request = self.request()
        host_arqs.acquire(request)
        without = dataclasses.replace(self.host, regions=(None, 1))
        kept = self.changed_host(without.report)
        self.assertEqual(5, len(kept))
        self.assertEqual([0, 1], sorted(self.free(kept)))
        self.changed_host(lambda: host_arqs.release(*request.key, 1))
        self.assertEqual(4, len(self.changed_host(without.report)))

    def test_cleaning(self) -> None:
        cleaned = dataclasses.replace(self.host, cleaned=True)
        cleaned.clean()
        request = self.request()
        host_arqs.acquire(request)
        given = self.changed_host(lambda: host_arqs.release(*request.key, 1))
        self.assertEqual([0, 1, 1], sorted(self.free(given)))
        told = cleaned.report()
        assert told is not None
        clean = self.changed_host(
            lambda: cleaning_results.note(
                'compute-1', told.uncleaned, {}, told.revision
            )
        )
        self.assertEqual([1, 1, 1], self.free(clean))

    def test_another_content(self) -> None:
        devices = self.host.reported()
        devices[0]['deployables'][0]['bitstream_id'] = 'b' * 36
        changed = self.changed_host(
            lambda: host.report(
                'compute-1',
                self.host.node_uuid,
                self.host.service_host,
                devices,
                'another digest',
            )
        )
        self.assertEqual(
            {None, 'b' * 36}, {each.bitstream_id for each in changed}
        )

    def test_parts_of_a_report(self) -> None:
        devices = self.host.reported()

        def part(number: int, some: Any, others: Any = None) -> None:
            host.report(
                'compute-1',
                self.host.node_uuid,
                self.host.service_host,
                some,
                'another digest',
                part=number,
                others=others,
            )

        self.changed_host(lambda: part(0, devices[:1]))
        self.assertEqual(
            6,
            len(
                self.changed_host(
                    lambda: part(1, devices[1:], [devices[0]['uuid']])
                )
            ),
        )

    def test_each_change_is_known_in_the_end(self) -> None:
        """A reader of changes knows the same as one who reads everything."""
        known, since = known_units.KnownUnits(), None
        request = self.request()
        smaller = dataclasses.replace(self.host, regions=(2,), functions=1)
        for call in (
            lambda: None,
            lambda: host_arqs.acquire(request),
            lambda: device.set_status(
                self.host.device_uuid(1), hardware.Status.MAINTAINING
            ),
            smaller.report,
            lambda: host_arqs.release(*request.key, 1),
            self.host.report,
        ):
            call()
            changes = free_units.read(since)
            known.apply(changes, 0)
            since = changes.at
            everything = known_units.KnownUnits()
            everything.apply(free_units.read(None), 0)
            for bus, region in ((0, 0), (0, 1), (1, 0)):
                rp_uuid = self.host.rp_uuid(bus, region)
                self.assertEqual(everything.pool(rp_uuid), known.pool(rp_uuid))


class TestLateCommit(FreeUnitsTestCase):
    """A transaction that is overtaken by others, and by a reader."""

    scenarios = database.SCENARIOS

    #: How long ago the transaction has made its change.
    late = datetime.timedelta(seconds=25)

    def setUp(self) -> None:
        super().setUp()
        self.other = reports.SimulatedHost('compute-2')
        self.host.report()
        self.other.report()
        self.known = known_units.KnownUnits()
        self.since: datetime.datetime | None = None
        self.read()
        self.make_old()

    def read(self) -> None:
        changes = free_units.read(self.since)
        self.since = changes.at
        self.known.apply(changes, 0)

    def overtaken(self, table: sa.Table, call: Callable[[], Any]) -> None:
        """Have a call's transaction end only after others and a reader.

        :param table: in which the call sets the times
        """
        dialect = self.database.engine.dialect
        commit = dialect.do_commit
        overtaken = []

        def do_commit(connection: Any) -> None:
            if not overtaken:
                overtaken.append(True)
                at = self.now() - self.late
                connection.cursor().execute(
                    f'UPDATE {table.name} SET changed_at = '
                    f"'{at:%Y-%m-%d %H:%M:%S}.000000' WHERE changed_at > "
                    f"'{_LONG_AGO:%Y-%m-%d %H:%M:%S}.000000'"
                )
                self.overtake()
            commit(connection)

        with mock.patch.object(dialect, 'do_commit', do_commit):
            call()
        self.assertEqual([True], overtaken)

    def overtake(self) -> None:
        # SQLite has one writer at a time, but readers beside it.
        if self.backend != 'sqlite':
            host_arqs.acquire(
                self.request(self.other.allocated(), hostname='compute-2')
            )
        self.read()
        self.assertEqual(
            [1, int(self.backend == 'sqlite')],
            [
                self.known.pool(found.rp_uuid())[0].free
                for found in (self.host, self.other)
            ],
        )

    def assert_taken(self) -> None:
        self.read()
        self.assertEqual(0, self.known.pool(self.host.rp_uuid())[0].free)

    def test_units_that_are_taken(self) -> None:
        self.overtaken(
            schema.ATTACH_HANDLES, lambda: host_arqs.acquire(self.request())
        )
        self.assert_taken()

    def test_a_host_that_changes(self) -> None:
        faulty = dataclasses.replace(self.host, faults=((0, 'too hot'),))
        self.overtaken(schema.HOSTS, faulty.report)
        self.assert_taken()


class TestKnownStock(FreeUnitsTestCase):
    """A scheduler that knows by its readings alone what the units are."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.clock = 0.0
        self.ahead = datetime.timedelta()
        self.whole = 0
        self.stock = known_stock.KnownStock(lambda: self.clock)
        read = free_units.read

        def shifted(
            since: datetime.datetime | None,
        ) -> unit_changes.Changes:
            """As if the clock of the database were ahead."""
            self.whole += since is None
            changes = read(None if since is None else since - self.ahead)
            return changes._replace(at=changes.at + self.ahead)

        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.db.free_units.read', shifted)
        )
        self.host.report()

    def units(self) -> Any:
        known = self.stock.current(0)
        assert known is not None
        return known.pool(self.host.rp_uuid())

    def take(self) -> None:
        """By a transaction that changes nothing but the units."""
        host_arqs.acquire(self.request())

    def test_a_clock_that_goes_back(self) -> None:
        self.ahead = datetime.timedelta(hours=1)
        self.assertEqual(1, self.units()[0].free)
        self.ahead = datetime.timedelta()
        self.take()
        self.units()
        self.assertEqual(0, self.units()[0].free)
        self.assertEqual(2, self.whole)
        self.units()
        self.assertEqual(2, self.whole)

    def test_a_clock_that_goes_back_while_nobody_reads(self) -> None:
        """By more than it went on meanwhile, as only our own clock tells."""
        self.units()
        self.take()
        self.make_old()
        self.clock += 1000
        self.ahead = datetime.timedelta(seconds=60)
        self.assertEqual(1, self.units()[0].free)
        self.assertEqual(0, self.units()[0].free)

    def test_a_host_that_is_forgotten(self) -> None:
        self.units()
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.HOSTS).values(reported_at=clock.ago(3600))
            )
        self.assertEqual(1, len(self.units()))
        host.forget('compute-1', 180)
        self.units()
        self.clock += 301
        self.ahead += datetime.timedelta(seconds=301)
        self.assertEqual((), tuple(self.units()))

    def test_a_host_that_reports_again(self) -> None:
        self.units()
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.HOSTS).values(reported_at=clock.ago(3600))
            )
        for is_silent in (True, False):
            known = self.stock.current(0)
            assert known is not None
            self.assertEqual(is_silent, 'compute-1' in known.silent)
            self.host.report()
        self.assertEqual(1, len(self.units()))

    def test_a_change_that_nobody_has_noted(self) -> None:
        """As by hand in the database; it is seen in the end."""
        self.units()
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.ATTACH_HANDLES).values(
                    present=False, changed_at=_LONG_AGO
                )
            )
            connection.execute(
                sa.update(schema.HOSTS).values(changed_at=_LONG_AGO)
            )
        self.assertEqual(1, self.units()[0].free)
        self.clock += 3601
        self.ahead += datetime.timedelta(seconds=3601)
        self.assertEqual(0, self.units()[0].free)


class TestSeveralReaders(FreeUnitsTestCase):
    scenarios = database.SCENARIOS

    def test_two_schedulers(self) -> None:
        self.host.report()
        schedulers = [known_units.KnownUnits() for _ in range(2)]
        times: list[datetime.datetime | None] = [None, None]
        request = self.request()
        rp_uuid = self.host.rp_uuid()
        for call, free in (
            (lambda: None, 1),
            (lambda: host_arqs.acquire(request), 0),
            (lambda: host_arqs.release(*request.key, 1), 1),
        ):
            call()
            for number, known in enumerate(schedulers):
                changes = free_units.read(times[number])
                times[number] = changes.at
                known.apply(changes, 0)
                [units] = known.pool(rp_uuid)
                self.assertEqual(free, units.free)
