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

import collections
from collections.abc import Mapping
from collections.abc import Sequence
import datetime
import itertools
import os
import random
import threading

import fixtures
from oslo_db import exception as db_exc
from oslo_utils import uuidutils
import testtools

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db import device_profile as device_profile_db
from nova_accel.db import host_arqs
from nova_accel.db.sql import engine
from nova_accel.model import naming
from nova_accel.model.links import link_division
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import provider_allocation
from nova_accel.model.units import known_units
from nova_accel.model.units import unit_changes
from nova_accel.scheduler import known_stock
from nova_accel.testing import database
from nova_accel.testing import reports
from rig import quick_database
from rig.loopback import board_cloud
from rig.loopback import board_host

CONF = conf.CONF

START = datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC)

_NIC = {'resources:CUSTOM_NIC': '1'}


def _joined(amount: int) -> dict[str, str]:
    """A group of GPUs that NVLink joins."""
    return {'resources:PGPU': f'{amount}', 'accel:link': 'nvlink'}


class KnownStockTestCase(testtools.TestCase):
    """The database's clock and ours go alike, and only the test moves them."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.manager = object()
        self.now = 100.0
        self.fault = None
        self.read = []
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.db.sql.engine.manager', lambda: self.manager
            )
        )
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.db.free_units.read', self._read)
        )
        self.stock = known_stock.KnownStock(lambda: self.now)

    def _read(self, since):
        self.read.append(since)
        if self.fault is not None:
            raise self.fault
        return unit_changes.Changes(self.at(), since is None, {})

    def at(self):
        return START + datetime.timedelta(seconds=self.now)


class TestAge(KnownStockTestCase):
    def test_a_request_reads_once(self):
        """The host filter uses what the request filter has read."""
        known = self.stock.current(known_stock.FRESH_S)
        self.now += 50
        self.assertIs(known, self.stock.current(known_stock.DECIDING_S))
        self.assertEqual([None], self.read)

    def test_the_next_request_reads_the_changes(self):
        self.stock.current(known_stock.FRESH_S)
        since = self.at()
        self.now += 7
        self.stock.current(known_stock.FRESH_S)
        self.assertEqual([None, since], self.read)

    def test_a_decision_that_took_too_long(self):
        self.stock.current(known_stock.FRESH_S)
        self.now += known_stock.DECIDING_S
        self.stock.current(known_stock.DECIDING_S)
        self.assertEqual(2, len(self.read))

    def test_everything_is_read_at_times(self):
        self.stock.current(0)
        for passed, whole in ((3599, False), (1, True), (1, False)):
            self.now += passed
            self.stock.current(0)
            self.assertEqual(whole, self.read[-1] is None)

    def test_another_database(self):
        known = self.stock.current(0)
        self.now += 1
        self.manager = object()
        self.assertIsNot(known, self.stock.current(known_stock.DECIDING_S))
        self.assertEqual([None, None], self.read)

    def test_a_clock_that_was_set(self):
        self.stock.current(0)
        for step in (-3600, 3600, 31, -31):
            offset = datetime.timedelta(seconds=step)
            with fixtures.MonkeyPatch(
                'nova_accel.db.free_units.read',
                lambda since, offset=offset: unit_changes.Changes(
                    self.at() + offset, False, {}
                ),
            ):
                self.stock.current(0)
            self.now += 1
            self.stock.current(0)
            self.assertIsNone(self.read[-1])
        self.assertIn('clock of the database', self.log.output)

    def test_a_small_step(self):
        """The next reading goes back by more."""
        self.stock.current(0)
        self.now += 100
        offset = datetime.timedelta(seconds=-20)
        with fixtures.MonkeyPatch(
            'nova_accel.db.free_units.read',
            lambda since: unit_changes.Changes(self.at() + offset, False, {}),
        ):
            self.stock.current(0)
        self.stock.current(0)
        self.assertEqual(self.at() + offset, self.read[-1])


class TestOutage(KnownStockTestCase):
    def test_it_is_logged_once(self):
        for fault in (
            exceptions.ServiceUnavailable.for_all('run the sync'),
            db_exc.DBError(),
        ):
            self.fault = fault
            for _again in range(3):
                self.now += 60
                self.assertIsNone(self.stock.current(0))
        self.assertEqual(1, self.log.output.count('without regard'))
        self.assertIn('run the sync', self.log.output)
        self.fault = None
        self.now += 60
        self.assertIsNotNone(self.stock.current(0))
        self.assertIn('can be read again', self.log.output)
        self.fault = exceptions.ServiceUnavailable.for_all('away')
        self.now += 60
        self.assertIsNone(self.stock.current(0))
        self.assertEqual(2, self.log.output.count('without regard'))

    def test_one_of_many_waits(self):
        """The others do without for some seconds."""
        self.fault = exceptions.ServiceUnavailable.for_all('away')
        for _again in range(3):
            self.assertIsNone(self.stock.current(0))
            self.now += 1
        self.assertEqual(1, len(self.read))
        self.now += 5
        self.fault = None
        self.assertIsNotNone(self.stock.current(0))
        self.assertIsNotNone(self.stock.current(0))
        self.assertEqual(3, len(self.read))

    def test_nothing_is_lost(self):
        """After an outage the changes since the last answer are read."""
        self.stock.current(0)
        since = self.at()
        self.fault = exceptions.ServiceUnavailable.for_all('away')
        self.now += 10
        self.stock.current(0)
        self.fault = None
        self.now += 10
        self.stock.current(0)
        self.assertEqual(since, self.read[-1])

    def test_not_configured(self):
        def refuse():
            raise exceptions.ConfigurationError('no connection')

        with fixtures.MonkeyPatch('nova_accel.db.sql.engine.manager', refuse):
            self.assertIsNone(self.stock.current(0))
        self.assertIn('no connection', self.log.output)


class TestDemand(KnownStockTestCase):
    def setUp(self):
        super().setUp()
        self.asked = 0
        self.idle = {'b': 2}
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.db.bitstream_demand.read', self._demand
            )
        )
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.model.units.known_units.KnownUnits.idle_regions',
                lambda _known: self.idle,
            )
        )

    def _demand(self):
        self.asked += 1
        return {'b': 3.0, 'c': 1.0}

    def test_it_is_that_for_each_idle_region(self):
        self.assertEqual({'b': 1.5}, self.stock.current(0).demand)

    def test_it_is_read_once_a_minute(self):
        for passed, asked in ((0, 1), (59, 1), (1, 2), (1, 2)):
            self.now += passed
            self.stock.current(0)
            self.assertEqual(asked, self.asked)

    def test_without_idle_regions(self):
        self.idle = {}
        self.assertEqual({}, self.stock.current(0).demand)
        self.assertEqual(0, self.asked)


class TestThreads(KnownStockTestCase):
    def test_those_that_wait_share_the_next_reading(self):
        all_asked, ticks = threading.Event(), itertools.count(1)

        def clock():
            tick = next(ticks)
            # The first thread looks twice.
            if tick == 5:
                all_asked.set()
            return tick

        def wait(since):
            all_asked.wait(60)
            return self._read(since)

        self.stock = known_stock.KnownStock(clock)
        found = []
        with fixtures.MonkeyPatch('nova_accel.db.free_units.read', wait):
            threads = [
                threading.Thread(
                    target=lambda: found.append(self.stock.current(0))
                )
                for _number in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
        self.assertEqual(4, len(found))
        self.assertEqual(1, len(set(found)))
        self.assertNotIn(None, found)
        self.assertEqual(2, len(self.read))


class TestCurrent(testtools.TestCase):
    """The stock of this process, with a database."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.useFixture(database.Database())
        self.host = reports.SimulatedHost()

    def test_it_is_that_of_the_database(self):
        for amount in (0, 1):
            known = known_stock.current(known_stock.FRESH_S)
            self.assertEqual(amount, len(known.pool(self.host.rp_uuid())))
            self.host.report()
        self.assertIs(known, known_stock.current())

    def test_no_tables(self):
        self.useFixture(database.Database(tables=False))
        self.assertIsNone(known_stock.KnownStock().current(0))
        self.assertIn('nova-accel-manage db sync', self.log.output)

    def test_not_configured(self):
        CONF.clear_override('connection', 'nova_accel_database')
        engine.forget()
        self.assertIsNone(known_stock.KnownStock().current(0))
        self.assertIn('[nova_accel_database] connection', self.log.output)


class TestCountServersOnBoards(testtools.TestCase):
    """As many start, by Placement and nova-scheduler, as are counted.

    There are two hosts with NVSwitch boards, and servers come and go.
    """

    clouds = 60 if os.environ.get('HYPOTHESIS_PROFILE') == 'full' else 1

    #: Name -> groups of a device profile, and the servers on empty boards.
    PROFILES: Mapping[str, tuple[list[dict[str, str]], int]] = {
        'gpu': ([{'resources:PGPU': '1'}], 16),
        'pair': ([_joined(2)], 8),
        'half': ([_joined(4)], 4),
        'board': ([_joined(8)], 2),
        'board of groups': ([_joined(4), _joined(4)], 2),
        'half with a card': ([_joined(4), _NIC], 4),
        'not joined': ([{'resources:PGPU': '1'}] * 2, 0),
        'pool not joined': ([{'resources:PGPU': '2'}], 0),
        'cards': ([_NIC, _NIC], 4),
        'unknown': ([{'resources:CUSTOM_FPAG': '1'}], 0),
    }

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.cloud = self.useFixture(
            board_cloud.BoardCloud(
                [board_host.BoardHost(f'board-{name}') for name in 'ab']
            )
        )
        for name, (groups, _servers) in self.PROFILES.items():
            self.cloud.profile(name, *groups)

    def test_empty_boards(self) -> None:
        for name, (groups, servers) in self.PROFILES.items():
            self.assertEqual(servers, self.count(groups), name)

    def test_servers_come_and_go(self) -> None:
        for seed in range(self.clouds):
            chance = random.Random(seed)
            for name, (groups, _servers) in self.PROFILES.items():
                for _server in range(chance.randint(0, 5)):
                    self.cloud.is_refused(
                        chance.choice(['gpu', 'pair', 'half', 'cards'])
                    )
                servers = sorted(self.cloud.servers)
                for uuid in chance.sample(servers, len(servers) // 3):
                    self.cloud.delete(uuid)
                counted = self.count(groups)
                started = 0
                while not self.cloud.is_refused(name):
                    started += 1
                self.assertEqual(counted, started, (seed, name))
                for uuid in tuple(self.cloud.servers):
                    self.cloud.delete(uuid)

    def test_a_group_that_no_pool_has(self) -> None:
        error = self.assertRaises(
            exceptions.NotFound,
            self.count,
            [{'resources:CUSTOM_NIC': '64'}],
        )
        self.assertIn('no pool of devices has CUSTOM_NIC=64', error.public)

    def count(self, groups: list[dict[str, str]]) -> int:
        # The API runs beside nova-scheduler, and has no claims of its own.
        known = known_stock.KnownStock().current(known_stock.FRESH_S)
        assert known is not None
        return sum(
            known.count_servers(
                link_division.off_fabric(device_profile.parse_groups(groups))
            ).values()
        )


class TestCountServers(testtools.TestCase):
    """What is counted, compared with what the database then gives."""

    clouds = 500 if os.environ.get('HYPOTHESIS_PROFILE') == 'full' else 30

    #: What a server asks for: a unit of a class or shape for each group.
    PROFILES = (
        ('FPGA',),
        ('CUSTOM_QAT',),
        ('CUSTOM_QAT', 'CUSTOM_QAT'),
        ('FPGA', 'CUSTOM_QAT'),
        (reports.WHOLE,),
        (reports.HALF,),
        (reports.EIGHTH,),
        (reports.HALF, reports.EIGHTH),
    )

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(quick_database.QuickDatabase())
        self.profiles: list[Sequence[device_profile.Group]] = []
        for number, wanted in enumerate(self.PROFILES):
            groups = [
                {f'resources:{name}': '1'}
                if name in ('FPGA', 'CUSTOM_QAT')
                else {
                    f'resources:{naming.shape_class(name)}': '1',
                    'accel:shape': name,
                }
                for name in wanted
            ]
            self.profiles.append(device_profile.parse_groups(groups))
            device_profile_db.create(str(number), groups)

    def test_any_cloud(self) -> None:
        for seed in range(self.clouds):
            chance = random.Random(seed)
            host = reports.SimulatedHost(
                f'compute-{seed}',
                regions=(chance.randint(1, 3),) * chance.randint(0, 2),
                functions=chance.randint(0, 5),
                cards=chance.randint(0, 3),
            )
            host.report()
            for _server in range(chance.randint(0, 6)):
                self.boot(host, chance.randrange(len(self.PROFILES)))
            number = chance.randrange(len(self.PROFILES))
            counted = self.known.count_servers(self.profiles[number]).get(
                host.hostname, 0
            )
            started = 0
            while self.boot(host, number):
                started += 1
            self.assertEqual(counted, started, (seed, number))

    @property
    def known(self) -> known_units.KnownUnits:
        known = known_stock.current(known_stock.FRESH_S)
        assert known is not None
        return known

    def boot(self, host: reports.SimulatedHost, number: int) -> bool:
        """Whether a server gets what it asks for where it costs least."""
        known, server = self.known, uuidutils.generate_uuid()
        places: dict[str, collections.Counter[str]] = {}
        for each in self.profiles[number]:
            [name] = each.resources
            costs = [
                (cost, rp_uuid)
                for rp_uuid in sorted(set(host.layout().rp_uuids.values()))
                if (cost := known.cost(each, rp_uuid)) is not None
            ]
            if costs:
                rp_uuid = min(costs)[1]
                amounts = places.setdefault(rp_uuid, collections.Counter())
                amounts[name] += 1
                known.claim(server, rp_uuid, name, amounts[name], 0)
        for rp_uuid, amounts in places.items():
            for name in amounts:
                known.claim(server, rp_uuid, name, 0, 0)
        if sum(map(collections.Counter.total, places.values())) < len(
            self.profiles[number]
        ):
            return False
        host_arqs.acquire(
            host_arqs.AcquireRequest(
                instance_uuid=server,
                hostname=host.hostname,
                role='active',
                attempt=1,
                project_id='p',
                device_profile_name=str(number),
                allocations=tuple(
                    provider_allocation.ProviderAllocation(
                        rp_uuid, dict(amounts), frozenset()
                    )
                    for rp_uuid, amounts in places.items()
                ),
            )
        )
        return True
