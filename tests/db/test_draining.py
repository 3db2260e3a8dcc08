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

import dataclasses
import datetime

import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import device
from nova_accel.db import draining
from nova_accel.db import fleet
from nova_accel.db import host
from nova_accel.db import host_arqs
from nova_accel.db.sql import schema
from nova_accel.model.devices import hardware
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

ENABLED = hardware.Status.ENABLED
MAINTAINING = hardware.Status.MAINTAINING

_PAST = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
_FUTURE = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)


class DrainingTestCase(base.DatabaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(1, 1, 1))
        self.host.report()
        self.other = reports.SimulatedHost('compute-2')
        self.other.report()
        self.make_profile()

    def begin(
        self,
        reason: str = 'new fans',
        until: datetime.datetime | None = None,
        user_id: str | None = 'ann',
    ) -> None:
        draining.begin(self.host.hostname, reason, until, user_id)

    def announce(self, until: datetime.datetime | None = None) -> None:
        draining.begin(self.host.hostname, 'new fans', until, 'ann', _FUTURE)

    def let_the_time_come(self) -> None:
        hosts = schema.HOSTS
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(hosts)
                .where(hosts.c.drained_from.is_not(None))
                .values(drained_from=_PAST)
            )

    def end(self) -> None:
        draining.end(self.host.hostname)

    def statuses(self, hostname: str = 'compute-1') -> dict[int, str]:
        """PCI bus -> status."""
        return {
            int(found['address'].split(':')[1], 16): found['status']
            for found in device.get_all(hostname=hostname)
        }

    def of_bus(self, bus: int) -> str:
        return self.host.device_uuid(bus)


class TestDraining(DrainingTestCase):
    scenarios = database.SCENARIOS

    def test_all_devices_of_the_host_and_of_no_other(self) -> None:
        self.begin()
        self.assertEqual(dict.fromkeys(range(3), MAINTAINING), self.statuses())
        self.assertEqual({0: ENABLED}, self.statuses('compute-2'))
        self.assertRaises(
            exceptions.AcceleratorsBusy, host_arqs.acquire, self.request()
        )
        self.end()
        self.assertEqual(dict.fromkeys(range(3), ENABLED), self.statuses())
        host_arqs.acquire(self.request())

    def test_a_device_that_was_disabled_before_stays_so(self) -> None:
        device.set_status(self.of_bus(1), MAINTAINING)
        self.begin()
        self.assertEqual(2, draining.get(self.host.hostname)['devices'])
        self.end()
        self.assertEqual(
            {0: ENABLED, 1: MAINTAINING, 2: ENABLED}, self.statuses()
        )

    def test_a_device_that_is_disabled_meanwhile_stays_so(self) -> None:
        self.begin()
        device.set_status(self.of_bus(1), MAINTAINING)
        self.begin('again')
        self.end()
        self.assertEqual(
            {0: ENABLED, 1: MAINTAINING, 2: ENABLED}, self.statuses()
        )

    def test_a_device_that_is_enabled_meanwhile(self) -> None:
        self.begin()
        device.set_status(self.of_bus(1), ENABLED)
        self.assertEqual(ENABLED, self.statuses()[1])
        self.begin('again')
        self.assertEqual(MAINTAINING, self.statuses()[1])
        self.end()
        self.assertEqual(dict.fromkeys(range(3), ENABLED), self.statuses())

    def test_a_new_device_of_a_drained_host(self) -> None:
        self.begin()
        grown = dataclasses.replace(self.host, regions=(1, 1, 1, 1))
        told = grown.report()
        assert told is not None
        self.assertEqual({self.of_bus(bus) for bus in range(4)}, told.disabled)
        self.assertEqual(MAINTAINING, self.statuses()[3])
        self.end()
        self.assertEqual(ENABLED, self.statuses()[3])
        self.other.report()
        self.assertEqual({0: ENABLED}, self.statuses('compute-2'))

    def test_a_device_that_goes_while_its_host_is_drained(self) -> None:
        self.begin()
        shrunk = dataclasses.replace(self.host, regions=(1, 1, None))
        shrunk.report()
        self.assertEqual(3, draining.get(self.host.hostname)['devices'])
        self.end()
        shrunk.report()
        self.assertEqual({0: ENABLED, 1: ENABLED}, self.statuses())

    def test_the_host_is_told(self) -> None:
        self.assertIsNone(self.host.report(orders_seen=0))
        self.begin()
        told = self.host.report(orders_seen=0)
        assert told is not None
        self.assertEqual({self.of_bus(bus) for bus in range(3)}, told.disabled)
        self.begin('the same again')
        self.assertIsNone(self.host.report(orders_seen=told.revision))
        self.end()
        told = self.host.report(orders_seen=told.revision)
        assert told is not None
        self.assertEqual(frozenset(), told.disabled)
        self.assertIsNone(self.other.report(orders_seen=0))

    def test_whether_placement_has_it(self) -> None:
        """A device that the drain does not change is as it was."""
        device.set_status(self.host.device_uuid(0), MAINTAINING)
        self.host.follow()
        for change in (self.begin, self.end):
            change()
            self.assertEqual(
                {self.host.device_uuid(bus) for bus in (1, 2)},
                {
                    each['uuid']
                    for each in device.get_all()
                    if not each['is_published']
                },
            )
            self.host.follow()

    def test_what_is_held_stays(self) -> None:
        request = self.request()
        held = host_arqs.acquire(request)
        self.begin()
        self.assertEqual(held, host_arqs.get(*request.key))

    def test_what_is_known_of_a_drain(self) -> None:
        self.assertEqual([], draining.get_all())
        self.begin(until=_FUTURE)
        [first] = draining.get_all()
        at = first.pop('requested_at')
        self.assertEqual(
            {
                'hostname': 'compute-1',
                'reason': 'new fans',
                'start': None,
                'until': _FUTURE,
                'requested_by': 'ann',
                'is_overdue': False,
                'devices': 3,
            },
            first,
        )
        self.database_is_older(1000)
        self.begin('more fans', _PAST, 'bob')
        again = draining.get(self.host.hostname)
        self.assertEqual(
            ('more fans', _PAST, 'bob', True),
            tuple(
                again[name]
                for name in ('reason', 'until', 'requested_by', 'is_overdue')
            ),
        )
        # It is the same drain.
        self.assertEqual(
            at - datetime.timedelta(seconds=1000), again['requested_at']
        )

    def database_is_older(self, seconds: int) -> None:
        hosts = schema.HOSTS
        with self.database.engine.begin() as connection:
            at = connection.scalar(
                sa.select(hosts.c.drained_at).where(
                    hosts.c.drained_at.is_not(None)
                )
            )
            assert at is not None
            connection.execute(
                sa.update(hosts)
                .where(hosts.c.drained_at.is_not(None))
                .values(drained_at=at - datetime.timedelta(seconds=seconds))
            )

    def test_a_host_that_is_not_drained(self) -> None:
        for call in (draining.get, draining.end):
            for hostname, fault in (
                ('compute-1', 'is not drained'),
                ('nobody', 'has never reported'),
            ):
                error = self.assertRaises(
                    exceptions.AcceleratorError, call, hostname
                )
                self.assertIn(f'Host {hostname}', str(error))
                self.assertIn(fault, str(error))
        self.assertRaises(exceptions.Conflict, draining.end, 'compute-1')
        self.assertRaises(exceptions.NotFound, draining.get, 'compute-1')

    def test_an_unknown_host(self) -> None:
        error = self.assertRaises(
            exceptions.NotFound, draining.begin, 'nobody', 'why', None, None
        )
        self.assertIn('nobody not found', str(error))
        self.assertEqual([], draining.get_all())

    def test_a_host_that_is_forgotten(self) -> None:
        self.begin()
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.HOSTS).values(reported_at=_PAST)
            )
        host.forget(self.host.hostname, 60)
        self.assertEqual([], draining.get_all())
        self.host.report()
        self.assertEqual(dict.fromkeys(range(3), ENABLED), self.statuses())

    def test_the_fleet_knows_it(self) -> None:
        self.begin('new fans', _PAST)
        drains = {found.name: found.drain for found in fleet.read(60).hosts}
        self.assertIsNone(drains['compute-2'])
        drain = drains['compute-1']
        assert drain is not None
        self.assertEqual(('new fans', _PAST, True), drain)

    def test_statements(self) -> None:
        """As many, however many devices there are."""
        self.assertEqual(4, len(self.statements(self.begin)))
        self.assertEqual(1, len(self.statements(draining.get_all)))
        self.assertEqual(4, len(self.statements(self.end)))


class TestAnnounced(DrainingTestCase):
    scenarios = database.SCENARIOS

    def assert_drained(self) -> None:
        self.assertEqual(dict.fromkeys(range(3), MAINTAINING), self.statuses())
        drain = draining.get(self.host.hostname)
        self.assertIsNotNone(drain['requested_at'])
        self.assertEqual(3, drain['devices'])
        self.assertEqual({0: ENABLED}, self.statuses('compute-2'))

    def assert_not_drained(self) -> None:
        self.assertEqual(dict.fromkeys(range(3), ENABLED), self.statuses())
        self.assertEqual([], draining.get_all())
        self.assertRaises(
            exceptions.NotFound, draining.get, self.host.hostname
        )
        self.assertEqual(
            [None, None], [found.drain for found in fleet.read(60).hosts]
        )

    def test_it_disables_nothing(self) -> None:
        self.announce(_PAST)
        self.assertIsNone(self.host.report(orders_seen=0))
        dataclasses.replace(self.host, regions=(1, 1)).report()
        self.host.report()
        self.assert_not_drained()
        host_arqs.acquire(self.request())
        self.assertEqual(
            [
                {
                    'hostname': 'compute-1',
                    'reason': 'new fans',
                    'start': _FUTURE,
                    'until': _PAST,
                    'requested_at': None,
                    'requested_by': 'ann',
                    'is_overdue': False,
                    'devices': 0,
                }
            ],
            draining.get_all(with_announced=True),
        )

    def test_it_begins_with_a_report(self) -> None:
        self.announce()
        self.let_the_time_come()
        self.assert_not_drained()
        told = self.host.report(orders_seen=0)
        assert told is not None
        self.assertEqual({self.of_bus(bus) for bus in range(3)}, told.disabled)
        self.assert_drained()
        self.assertEqual(_PAST, draining.get('compute-1')['start'])
        self.assertIsNone(self.host.report(orders_seen=told.revision))
        self.end()
        self.host.report()
        self.assert_not_drained()

    def test_it_begins_with_a_report_that_has_no_devices(self) -> None:
        self.announce()
        self.let_the_time_come()
        [row] = (
            row
            for row in self.rows(schema.HOSTS)
            if row['hostname'] == 'compute-1'
        )
        told = host.report(
            'compute-1',
            row['node_uuid'],
            row['service_host'],
            None,
            row['report_digest'],
            orders_seen=0,
            contract=row['contract'],
        ).orders
        assert told is not None
        self.assertEqual(3, len(told.disabled))
        self.assert_drained()

    def test_it_begins_with_a_report_of_a_new_device(self) -> None:
        self.announce()
        self.let_the_time_come()
        told = dataclasses.replace(self.host, regions=(1, 1, 1, 1)).report()
        assert told is not None
        self.assertEqual({self.of_bus(bus) for bus in range(4)}, told.disabled)

    def test_what_was_disabled_before_stays_so(self) -> None:
        device.set_status(self.of_bus(1), MAINTAINING)
        self.announce()
        self.let_the_time_come()
        self.host.report()
        self.assertEqual(2, draining.get('compute-1')['devices'])
        self.end()
        self.assertEqual(
            {0: ENABLED, 1: MAINTAINING, 2: ENABLED}, self.statuses()
        )

    def test_another_beginning_and_end(self) -> None:
        sooner = _FUTURE - datetime.timedelta(days=1)
        self.announce()
        draining.begin('compute-1', 'more fans', _FUTURE, 'bob', sooner)
        [found] = draining.get_all(with_announced=True)
        self.assertEqual(
            (sooner, _FUTURE, 'more fans', 'bob'),
            (
                found['start'],
                found['until'],
                found['reason'],
                found['requested_by'],
            ),
        )
        self.assert_not_drained()

    def test_it_begins_at_once_after_all(self) -> None:
        self.announce()
        self.begin()
        self.assert_drained()
        self.assertIsNone(draining.get('compute-1')['start'])

    def test_a_beginning_that_is_over(self) -> None:
        draining.begin('compute-1', 'new fans', None, 'ann', _PAST)
        self.assert_drained()
        self.assertIsNone(draining.get('compute-1')['start'])

    def test_another_reason_leaves_the_beginning(self) -> None:
        self.announce()
        self.let_the_time_come()
        self.host.report()
        self.begin('more fans')
        self.assertEqual(_PAST, draining.get('compute-1')['start'])

    def test_it_ends_before_it_begins(self) -> None:
        self.announce()
        self.end()
        self.assertEqual([], draining.get_all(with_announced=True))
        self.assertIsNone(self.host.report(orders_seen=0))
        self.assertRaises(exceptions.Conflict, self.end)
        self.let_the_time_come()
        self.host.report()
        self.assert_not_drained()

    def test_a_drain_that_has_begun_is_not_announced(self) -> None:
        self.begin()
        error = self.assertRaises(exceptions.Conflict, self.announce)
        self.assertIn('compute-1 is drained already', str(error))
        self.assert_drained()

    def test_an_unknown_host(self) -> None:
        for start in (_PAST, _FUTURE):
            self.assertRaises(
                exceptions.NotFound,
                draining.begin,
                'nobody',
                'why',
                None,
                None,
                start,
            )

    def test_statements(self) -> None:
        """Only the report that begins a drain has more of them."""
        changed = dataclasses.replace(self.host, serials=((0, 'a'),))

        def both() -> list[int]:
            return [
                len(self.statements(call))
                for call in (
                    lambda: self.host.report(orders_seen=0),
                    lambda: changed.report(orders_seen=0),
                    self.host.report,
                )
            ]

        both()
        before = both()
        self.assertEqual(1, before[0])
        self.assertEqual(1, len(self.statements(self.announce)))
        self.assertEqual(before, both())


class TestRace(DrainingTestCase):
    # SQLite has one writer at a time.
    scenarios = database.SCENARIOS[1:]

    def test_a_device_is_reported_at_the_same_time(self) -> None:
        grown = dataclasses.replace(self.host, regions=(1, 1, 1, 1))
        base.race([self.begin, grown.report])
        self.assertEqual(dict.fromkeys(range(4), MAINTAINING), self.statuses())

    def test_its_time_comes(self) -> None:
        """The drain begins once, or is ended."""
        self.announce()
        self.let_the_time_come()
        found = base.race([self.host.report] * 4)
        self.assertEqual({3}, {len(told.disabled) for told in found})
        self.assertEqual({1}, {told.revision for told in found})
        self.end()
        self.announce()
        self.let_the_time_come()
        base.race([self.host.report, self.end])
        self.assertEqual(dict.fromkeys(range(3), ENABLED), self.statuses())
        self.assertEqual([], draining.get_all(with_announced=True))

    def test_many_at_once(self) -> None:
        self.assertEqual([None] * 4, base.race([self.begin] * 4))
        self.assertEqual(3, draining.get(self.host.hostname)['devices'])
        ended = base.race([self.end] * 4)
        self.assertEqual(1, ended.count(None), ended)
        self.assertEqual(dict.fromkeys(range(3), ENABLED), self.statuses())
