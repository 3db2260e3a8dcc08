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


import functools
import pathlib
import time
import types
from typing import Any

import fixtures
from osc_lib import exceptions
from oslo_utils import uuidutils

from nova_accel.db import device_profile
from nova_accel.db import draining as draining_db
from nova_accel.db import host_arqs
from nova_accel.osc import room
from nova_accel.testing import reports
from unit.osc import base
from unit.osc import draining
from unit.osc import simulated_nova

_SLEEP = time.sleep


class RoomTestCase(base.CommandTestCase):
    """Hosts with two FPGAs each, and a profile that wants both of a host."""

    hosts = ('compute-1', 'compute-2', 'compute-3')

    def setUp(self) -> None:
        super().setUp()
        self.of_name = {
            name: reports.SimulatedHost(name, regions=(1, 1))
            for name in self.hosts
        }
        for host in self.of_name.values():
            host.report()
        for name, amount in (('one', 1), ('both', 2)):
            device_profile.create(name, [{'resources:FPGA': '1'}] * amount)
        self.nova = simulated_nova.SimulatedNova()
        self.app.client_manager.sdk_connection = types.SimpleNamespace(
            compute=self.nova.adapter
        )
        # Time passes by waiting, and Nova does its work then.
        self.useFixture(
            fixtures.MonkeyPatch('time.sleep', self.nova.pass_time)
        )

    def boot(
        self, name: str, hostname: str, bus: int = 0, **fields: Any
    ) -> simulated_nova.Server:
        """A server with an FPGA of a host."""
        uuid = uuidutils.generate_uuid()
        key = self.acquire(uuid, hostname, bus)
        made = simulated_nova.Server(
            uuid,
            name,
            leave=functools.partial(host_arqs.release, *key, 1),
            arrive=functools.partial(self.arrive, uuid),
            host=hostname,
            **fields,
        )
        self.nova.servers[uuid] = made
        return made

    def acquire(self, uuid: str, hostname: str, bus: int) -> Any:
        request = host_arqs.AcquireRequest(
            instance_uuid=uuid,
            hostname=hostname,
            role='active',
            attempt=1,
            project_id='a' * 32,
            device_profile_name='one',
            allocations=(self.of_name[hostname].allocated(bus),),
        )
        host_arqs.acquire(request)
        return request.key

    def arrive(self, uuid: str, service_host: str) -> None:
        hostname = service_host.removesuffix('.service')
        self.nova.servers[uuid].host = hostname
        self.acquire(uuid, hostname, 1)

    def type(
        self, command: type[Any], *arguments: str
    ) -> tuple[int, list[tuple[str, ...]]]:
        """The exit status; each server's name, from, to, way and result."""
        status, columns, rows = self.run_list(
            command, '--for', 'both', *arguments
        )
        self.assertEqual(room.COLUMNS, columns)
        return status, [(row[1], *row[3:7]) for row in rows]


class TestPlan(RoomTestCase):
    def test_there_is_room(self) -> None:
        self.boot('a', 'compute-1')
        self.assertEqual((0, []), self.type(room.Plan, '--count', '2'))

    def test_a_move(self) -> None:
        for number, name in enumerate(self.hosts):
            self.boot(f's{number}', name)
        status, rows = self.type(room.Plan)
        self.assertEqual(0, status)
        self.assertEqual(
            [('s0', 'compute-1', 'compute-2', 'live', 'planned')], rows
        )
        self.assertEqual([], self.nova.asked)

    def test_the_cheapest(self) -> None:
        self.boot('a', 'compute-1')
        self.boot('b', 'compute-2', status='SHUTOFF')
        self.boot('c', 'compute-3')
        _status, rows = self.type(room.Plan)
        self.assertEqual(
            [('b', 'compute-2', 'compute-1', 'cold', 'planned')], rows
        )

    def test_no_room(self) -> None:
        for name in self.hosts:
            self.boot(f'{name}a', name)
            self.boot(f'{name}b', name, 1)
        self.assertEqual((room.NO_ROOM, []), self.type(room.Plan))
        self.assertIn('No moves of these servers make room.', self.said)

    def test_locked_pinned_and_kept(self) -> None:
        self.boot('a', 'compute-1', is_locked=True)
        self.boot('b', 'compute-2', metadata={'nova_accel:pinned': 'true'})
        kept = self.boot('c', 'compute-3')
        keep = ('--keep', kept.uuid)
        self.assertEqual((room.NO_ROOM, []), self.type(room.Plan, *keep))
        self.assertIn('--locked lets it move', self.said)
        self.assertIn('--pinned lets it move', self.said)
        self.assertIn('--keep names it', self.said)
        for option, name in (('--locked', 'a'), ('--pinned', 'b')):
            [row] = self.type(room.Plan, option, *keep)[1]
            self.assertEqual(name, row[0])
        [row] = self.type(room.Plan)[1]
        self.assertEqual('c', row[0])

    def test_a_host_that_is_drained(self) -> None:
        """It takes no server, and what its servers give back is not free."""
        self.boot('a', 'compute-1')
        self.boot('b', 'compute-2')
        self.boot('c', 'compute-3')
        draining_db.begin('compute-1', 'fans', None, 'admin')
        [row] = self.type(room.Plan)[1]
        self.assertEqual({'compute-2', 'compute-3'}, {*row[1:3]})

    def test_maps(self) -> None:
        server, *_others = [
            self.boot(f's{number}', name)
            for number, name in enumerate(self.hosts)
        ]
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        paths = {
            when: directory / f'{when}.html' for when in ('before', 'after')
        }
        self.type(
            room.Plan,
            *(f'--map-{when}={path}' for when, path in paths.items()),
        )
        servers = {
            when: [
                host.count(server.name)
                for host in path.read_text().split('class="host"')[1:]
            ]
            for when, path in paths.items()
        }
        self.assertGreater(servers['before'][0], 0)
        self.assertEqual(0, servers['before'][1])
        self.assertEqual(0, servers['after'][0])
        self.assertGreater(servers['after'][1], 0)
        self.assertIn('after the planned moves', paths['after'].read_text())

    def test_an_unknown_profile(self) -> None:
        made, parsed = self.parse(room.Plan, '--for', 'no-such')
        error = self.assertRaises(
            exceptions.CommandError, made.take_action, parsed
        )
        self.assertIn('no-such', str(error))


class TestMake(RoomTestCase):
    def test_there_is_room(self) -> None:
        self.assertEqual((0, []), self.type(room.Make))
        self.assertEqual([], self.nova.asked)

    def test_live_and_cold(self) -> None:
        self.boot('a', 'compute-1')
        self.boot('b', 'compute-2', status='SHUTOFF')
        self.boot('c', 'compute-3')
        status, rows = self.type(room.Make)
        self.assertEqual(0, status)
        self.assertEqual(
            [('b', 'compute-2', 'compute-1', 'cold', 'moved')], rows
        )
        self.assertEqual(
            [('b', 'migrate'), ('b', 'confirmResize')], self.nova.asked
        )
        self.assertEqual((0, []), self.type(room.Plan))

    def test_one_that_does_not_move(self) -> None:
        """Another one moves in its place."""
        self.boot('a', 'compute-1', fails=draining.NOT_LIVE)
        self.boot('b', 'compute-2')
        self.boot('c', 'compute-3')
        status, rows = self.type(room.Make)
        self.assertEqual(0, status)
        self.assertEqual(
            [('a', 'not at all', 'remains'), ('b', 'live', 'moved')],
            [(row[0], *row[3:]) for row in rows],
        )

    def test_all_refuse(self) -> None:
        for number, name in enumerate(self.hosts):
            self.boot(f's{number}', name, fails=draining.NOT_LIVE)
        status, rows = self.type(room.Make)
        self.assertEqual(room.NO_ROOM, status)
        self.assertEqual(['remains'] * 3, [row[-1] for row in rows])
        self.assertIn(draining.REFUSED, self.said)

    def test_cold_if_asked(self) -> None:
        for number, name in enumerate(self.hosts):
            self.boot(f's{number}', name, fails=draining.NOT_LIVE)
        status, rows = self.type(room.Make, '--cold')
        self.assertEqual(0, status)
        self.assertEqual([('cold', 'moved')], [row[3:] for row in rows])

    def test_several_servers(self) -> None:
        self.of_name['compute-4'] = reports.SimulatedHost(
            'compute-4', regions=(1, 1)
        )
        self.of_name['compute-4'].report()
        for number, name in enumerate(self.of_name):
            self.boot(f's{number}', name)
        status, rows = self.type(room.Make, '--count', '2')
        self.assertEqual(0, status)
        self.assertEqual(['moved'] * 2, [row[-1] for row in rows])

    def test_interrupted_and_run_again(self) -> None:
        first, *_others = [
            self.boot(f's{number}', name, status='SHUTOFF')
            for number, name in enumerate(self.hosts)
        ]

        def interrupt(_seconds: float) -> None:
            self.nova.pass_time()
            raise KeyboardInterrupt

        with fixtures.MonkeyPatch('time.sleep', interrupt):
            status, _rows = self.type(room.Make)
        self.assertEqual(130, status)
        self.assertEqual([('s0', 'migrate')], self.nova.asked)
        self.assertEqual('VERIFY_RESIZE', first.status)
        self.assertEqual((0, []), self.type(room.Make))
        self.assertEqual(('s0', 'confirmResize'), self.nova.asked[-1])
        self.assertEqual(2, len(self.nova.asked))

    def test_nova_is_away_after_a_move(self) -> None:
        for number, name in enumerate(self.hosts):
            self.boot(f's{number}', name, status='SHUTOFF')

        def leave(_server: simulated_nova.Server, action: str) -> None:
            self.nova.away = 3 if action == 'confirmResize' else 0

        self.nova.before_each = leave
        status, rows = self.type(room.Make)
        self.assertEqual((0, 0), (status, self.nova.away))
        self.assertEqual(['moved'], [row[-1] for row in rows])

    def test_nova_is_away(self) -> None:
        self.nova.away = 1
        self.boot('a', 'compute-1')
        self.assertRaises(exceptions.CommandError, self.type, room.Make)

    def test_a_migration_of_somebody_else(self) -> None:
        """It is not confirmed, and its server does not move."""
        other = self.boot('a', 'compute-1')
        other.status = 'VERIFY_RESIZE'
        other.host = 'compute-3'
        other.add_migration('migration', user_id='f' * 32)
        self.boot('b', 'compute-2')
        self.boot('c', 'compute-3')
        status, rows = self.type(room.Make)
        self.assertEqual(0, status)
        self.assertEqual(['b'], [row[0] for row in rows])
        self.assertNotIn(('a', 'confirmResize'), self.nova.asked)

    def test_the_time_is_over(self) -> None:
        for number, name in enumerate(self.hosts):
            self.boot(f's{number}', name)
        # Nothing that has begun comes to its end.
        self.useFixture(
            fixtures.MonkeyPatch('time.sleep', lambda _seconds: _SLEEP(0.2))
        )
        status, rows = self.type(room.Make, '--timeout', '1')
        self.assertEqual(room.NO_ROOM, status)
        self.assertEqual(
            [('s0', 'remains'), ('s1', 'planned')],
            [(row[0], row[-1]) for row in rows],
        )
