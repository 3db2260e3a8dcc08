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

from keystoneauth1 import exceptions as ks_exceptions
from osc_lib import exceptions

from nova_accel.db import device_profile as device_profile_db
from nova_accel.db import draining as draining_db
from nova_accel.db import host_arqs
from nova_accel.osc import host_emptying
from nova_accel.testing import reports
from unit.osc import draining
from unit.osc import simulated_nova


class _Clock:
    """Time passes by sleeping, and Nova does its work then."""

    def __init__(self, test: 'EmptyingTestCase') -> None:
        self._test = test
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._test.nova.pass_time()

    def __call__(self) -> float:
        return self.now


class EmptyingTestCase(draining.DrainTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.clock = _Clock(self)
        self.told: list[host_emptying.Progress] = []

    def emptying(
        self, cold: bool = False, concurrency: int = 2
    ) -> host_emptying.HostEmptying:
        self.cloud.begin('fans', None)
        return host_emptying.HostEmptying(
            self.cloud,
            allows_cold=cold,
            concurrency=concurrency,
            clock=self.clock,
            sleep=self.clock.sleep,
        )

    def empty(
        self, timeout_s: float = 3600, **kwargs: int
    ) -> dict[str, tuple[str, bool]]:
        """Server's name -> how it went, and whether it has left."""
        return {
            row.name: (row.way, row.is_left)
            for row in self.emptying(**kwargs).run(  # type: ignore[arg-type]
                timeout_s, self.told.append
            )
        }

    def whys(self, **kwargs: int) -> dict[str, str]:
        """Server's name -> why it remains."""
        rows = self.emptying(**kwargs).run(  # type: ignore[arg-type]
            3600, self.told.append
        )
        return {row.name: row.why for row in rows if not row.is_left}

    def left(self) -> int:
        """How many servers have something of the host."""
        return len(host_arqs.get_of_host('compute-1'))


class TestEmptying(EmptyingTestCase):
    def test_each_in_its_way(self) -> None:
        self.boot('live')
        self.boot('stopped', status='SHUTOFF')
        self.boot('fixed', fails=draining.NOT_LIVE)
        self.assertEqual(
            {
                'live': ('live', True),
                'stopped': ('cold', True),
                'fixed': ('cold', True),
            },
            self.empty(cold=True),
        )
        self.assertEqual(0, self.left())
        self.assertEqual(3, self.told[-1].left)
        self.assertEqual(3, self.told[-1].total)
        self.assertTrue(any('live (live)' in told.now for told in self.told))

    def test_a_host_without_servers(self) -> None:
        self.assertEqual({}, self.empty())
        self.assertEqual(0, self.clock.now)

    def test_no_guest_is_shut_down_unasked(self) -> None:
        self.boot('fixed', fails=draining.NOT_LIVE)
        self.boot('never', refuses=draining.NOT_LIVE)
        whys = self.whys()
        for why in whys.values():
            self.assertIn(draining.REFUSED, why)
            self.assertIn('--cold', why)
        self.assertEqual(
            [('fixed', 'os-migrateLive'), ('never', 'os-migrateLive')],
            sorted(self.nova.asked),
        )
        self.assertEqual(2, self.left())

    def test_nothing_helps(self) -> None:
        """Each way is tried once, and the run ends."""
        self.boot(
            'stuck', refuses=draining.NOT_LIVE, fails={'migrate': 'no disk'}
        )
        self.assertEqual(
            {'stuck': 'it does not go cold: no disk'}, self.whys(cold=True)
        )
        self.assertEqual(
            [('stuck', 'os-migrateLive'), ('stuck', 'migrate')],
            self.nova.asked,
        )

    def test_a_confirmation_that_is_refused(self) -> None:
        self.boot('stopped', status='SHUTOFF', refuses={'confirmResize': 'no'})
        self.assertIn('is not confirmed: no', self.whys()['stopped'])

    def test_a_few_at_a_time(self) -> None:
        for number in range(4):
            self.boot(f'server{number}')
        self.assertEqual(4, len(self.empty()))
        self.assertEqual(2, self.nova.most_moving)

    def test_one_at_a_time_beside_what_moves_already(self) -> None:
        self.boot('moving').begin('os-migrateLive')
        self.boot('next')
        self.empty(concurrency=1)
        self.assertEqual(1, self.nova.most_moving)
        self.assertEqual(0, self.left())

    def another_begins(self, action: str) -> None:
        """Another administrator's run is the first, once."""

        def begin(server: simulated_nova.Server, asked: str) -> None:
            if asked == action and not begun:
                begun.append(asked)
                server.begin(asked)

        begun: list[str] = []
        self.nova.before_each = begin

    def test_another_run_moves_it_live(self) -> None:
        self.boot('server')
        self.another_begins('os-migrateLive')
        emptying = self.emptying()
        seen = []
        rows = emptying.run(3600, lambda _told: seen.extend(emptying.rows()))
        # The loser says so, and tells how it has ended.
        self.assertEqual(
            ('wait', 'it is being moved: migrating'),
            (seen[0].way, seen[0].why),
        )
        self.assertEqual([True], [row.is_left for row in rows])
        self.assertEqual([('server', 'os-migrateLive')], self.nova.asked)

    def test_another_run_moves_it_cold(self) -> None:
        server = self.boot('stopped', status='SHUTOFF')
        self.another_begins('migrate')
        [(_way, is_left)] = self.empty().values()
        self.assertTrue(is_left)
        self.assertEqual('compute-2', server.host)

    def test_another_run_has_tried_in_vain(self) -> None:
        """The refusal of the other's attempt is not taken for the reason."""
        self.boot('fixed', fails=draining.NOT_LIVE)
        self.another_begins('os-migrateLive')
        why = self.whys()['fixed']
        self.assertIn(draining.REFUSED, why)
        self.assertNotIn('task_state', why)

    def test_another_run_moves_it_for_long(self) -> None:
        self.boot('server')
        self.another_begins('os-migrateLive')
        self.nova.pass_time = lambda _seconds=0: None  # type: ignore[method-assign]
        [row] = self.emptying().run(60, self.told.append)
        self.assertEqual(60, self.clock.now)
        self.assertEqual(
            ('wait', 'it is being moved: migrating'), (row.way, row.why)
        )

    def test_what_another_run_moves_counts(self) -> None:
        for name in ('first', 'next'):
            self.boot(name)
        self.another_begins('os-migrateLive')
        self.empty(concurrency=1)
        self.assertEqual(1, self.nova.most_moving)
        self.assertEqual(0, self.left())

    def test_no_room(self) -> None:
        self.boot('server')
        self.fill_others()
        why = self.whys()['server']
        self.assertIn('no other host has free units', why)
        self.assertIn('profile explain gold', why)
        self.assertEqual([], self.nova.asked)

    def test_room_for_an_alternative(self) -> None:
        reports.SimulatedHost('compute-3', regions=(), functions=4).report()
        device_profile_db.create('qat', [{'resources:CUSTOM_QAT': '1'}])
        device_profile_db.create('typo', [{'resources:CUSTOM_QTA': '1'}])
        for name, profiles in (('none', 'gold,typo'), ('some', 'gold,qat')):
            self.boot(
                name, extra_specs={'nova_accel:device_profile': profiles}
            )
        self.fill_others()
        whys = self.whys()
        self.assertIn('no other host has free units', whys['none'])
        self.assertNotIn('some', whys)

    def test_the_flavor_key_of_cyborg(self) -> None:
        self.boot('compat', extra_specs={'accel:device_profile': 'gold'})
        self.assertIn('shelve it', self.whys()['compat'])

    def test_a_busy_server_is_waited_for(self) -> None:
        server = self.boot('busy', task='rebooting')

        def settle(_told: host_emptying.Progress) -> None:
            if self.clock.now >= 10:
                server.task = server.task if server.begun else None

        self.nova.pass_time = lambda _seconds=0: (  # type: ignore[method-assign]
            server.end() if server.begun else None
        )
        rows = self.emptying().run(100, settle)
        self.assertEqual([True], [row.is_left for row in rows])

    def test_the_time_is_over(self) -> None:
        self.boot('busy', task='rebooting')
        self.boot('slow')
        self.nova.pass_time = lambda _seconds=0: None  # type: ignore[method-assign]
        busy, slow = self.emptying().run(60, self.told.append)
        self.assertEqual(60, self.clock.now)
        self.assertEqual(('wait', False), (busy.way, busy.is_left))
        self.assertEqual(('live', False), (slow.way, slow.is_left))
        self.assertIn('run the command again', slow.why)

    def test_a_server_that_is_deleted_meanwhile(self) -> None:
        server = self.boot('deleted', task='deleting')

        def delete(_told: host_emptying.Progress) -> None:
            self.nova.servers.clear()
            if self.clock.now > 10:
                server.leave()

        self.nova.pass_time = lambda _seconds=0: None  # type: ignore[method-assign]
        rows = self.emptying().run(100, delete)
        self.assertEqual([True], [row.is_left for row in rows])

    def test_devices_that_nobody_gives_back(self) -> None:
        self.boot('ghost')
        self.nova.servers.clear()
        [why] = self.whys().values()
        self.assertIn('nova-accel-manage audit', why)
        self.assertLess(self.clock.now, 3600)

    def test_nova_is_away_for_a_while(self) -> None:
        self.boot('server')
        emptying = self.emptying()
        self.nova.away = 5
        rows = emptying.run(3600, self.told.append)
        self.assertEqual([True], [row.is_left for row in rows])
        self.assertTrue(
            any('trying again: ' in told.now for told in self.told)
        )

    def test_the_api_is_away_all_the_time(self) -> None:
        self.boot('server')
        emptying = self.emptying()
        self.api.refuse = True
        self.assertRaises(
            ks_exceptions.ConnectFailure, emptying.run, 60, self.told.append
        )
        self.api.refuse = False
        self.nova.away = 10000
        self.assertRaises(exceptions.CommandError, emptying.look)


class TestResumed(EmptyingTestCase):
    """A run begins where another one was cut short."""

    def begun(self) -> None:
        """Cut a run short after it has begun something."""
        emptying = self.emptying()
        emptying.run(0, self.told.append)

    def test_each_state(self) -> None:
        self.boot('live')
        cold = self.boot('cold', status='SHUTOFF')
        self.boot('later', status='SHUTOFF')
        self.begun()
        self.assertEqual(
            [('live', 'os-migrateLive'), ('cold', 'migrate')], self.nova.asked
        )
        self.nova.pass_time()
        self.assertEqual('VERIFY_RESIZE', cold.status)
        self.assertEqual(
            {'cold': True, 'later': True},
            {name: left for name, (_way, left) in self.empty().items()},
        )
        self.assertEqual(
            [
                ('cold', 'confirmResize'),
                ('later', 'confirmResize'),
                ('later', 'migrate'),
            ],
            sorted(self.nova.asked[2:]),
        )
        self.assertEqual(0, self.left())

    def test_nothing_is_begun_twice(self) -> None:
        self.boot('live')
        self.begun()
        self.begun()
        self.assertEqual([('live', 'os-migrateLive')], self.nova.asked)

    def test_only_its_own_migrations_are_confirmed(self) -> None:
        for name, *migration in (
            ('resized', 'resize'),
            ('tried', 'migration', '2020-01-01T00:00:00.000000'),
        ):
            self.boot(
                name, status='VERIFY_RESIZE', host='compute-2'
            ).add_migration(*migration)
        for why in self.whys().values():
            self.assertIn('confirm or revert', why)
        self.assertEqual([], self.nova.asked)

    def test_one_that_is_being_confirmed(self) -> None:
        server = self.boot('ending', status='VERIFY_RESIZE', host='compute-2')
        server.add_migration(
            'migration', '2120-01-01T00:00:00.000000', 'confirming'
        )
        self.assertEqual({'ending': ('wait', False)}, self.empty(timeout_s=10))
        self.assertEqual([], self.nova.asked)


class TestLook(EmptyingTestCase):
    def test_it_changes_nothing(self) -> None:
        self.boot('live')
        self.boot('stopped', status='SHUTOFF')
        emptying = host_emptying.HostEmptying(
            self.cloud, clock=self.clock, sleep=self.clock.sleep
        )
        rows = {row.name: row for row in emptying.look()}
        self.assertEqual(
            {'live': 'live', 'stopped': 'cold'},
            {name: row.way for name, row in rows.items()},
        )
        self.assertIn('otherwise not at all', rows['live'].why)
        self.assertEqual([], self.nova.asked)
        self.assertEqual([], draining_db.get_all())
        self.assertEqual(2, len(host_emptying.remaining([*rows.values()])))
