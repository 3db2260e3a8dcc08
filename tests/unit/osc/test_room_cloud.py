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

from osc_lib import exceptions
from oslo_utils import uuidutils

from nova_accel.db import host_arqs
from nova_accel.model import nova_server
from nova_accel.model.fleet import drain_plan
from nova_accel.osc import drain_cloud
from nova_accel.osc import nova_calls
from nova_accel.osc import room_cloud
from unit.osc import draining
from unit.osc import simulated_nova
from unit.osc import test_room

Way = drain_plan.Way

_ONE = drain_cloud.Holding(frozenset({'PCI'}), frozenset({'one'}))


class RoomCloudTestCase(test_room.RoomTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.cloud = room_cloud.RoomCloud(self.nova.adapter, self.api.adapter)

    def resident(self, server: simulated_nova.Server) -> room_cloud.Resident:
        return self.cloud.residents()[server.uuid]

    def move(
        self, server: simulated_nova.Server, target: str
    ) -> dict[str, Any]:
        """A move as the API plans it."""
        return {
            'server_uuid': server.uuid,
            'from': server.host,
            'to': target,
            'devices': [],
        }


class TestResidents(RoomCloudTestCase):
    def test_no_server(self) -> None:
        self.assertEqual({}, self.cloud.residents())

    def test_servers_of_all_hosts(self) -> None:
        servers = [
            self.boot('a', 'compute-1'),
            self.boot('b', 'compute-1', 1),
            self.boot('c', 'compute-2', status='SHUTOFF'),
        ]
        found = self.cloud.residents()
        self.assertEqual(
            {server.uuid: server.host for server in servers},
            {uuid: resident.hostname for uuid, resident in found.items()},
        )
        self.assertEqual(
            room_cloud.Resident(
                drain_plan.DrainedServer(
                    servers[2].uuid, 'c', 'SHUTOFF', None, True, False, False
                ),
                'compute-2',
                is_locked=False,
                is_pinned=False,
                is_split=False,
            ),
            found[servers[2].uuid],
        )

    def test_a_server_without_devices(self) -> None:
        self.boot('a', 'compute-1')
        self.nova.servers['other'] = simulated_nova.Server(
            'other', 'other', lambda: None
        )
        self.assertNotIn('other', self.cloud.residents())

    def test_arqs_that_are_of_no_server(self) -> None:
        self.api.adapter.post(
            '/accelerator_requests', json={'device_profile_name': 'one'}
        )
        # Nova is not asked for servers of no host.
        self.nova.away = 1
        self.assertEqual({}, self.cloud.residents())

    def test_devices_without_their_server(self) -> None:
        server = self.boot('a', 'compute-1')
        server.host = 'compute-3'
        self.assertEqual({}, self.cloud.residents())
        # It is no resident of a host where another one has devices, either.
        self.boot('b', 'compute-3')
        self.assertNotIn(server.uuid, self.cloud.residents())
        del self.nova.servers[server.uuid]
        self.assertNotIn(server.uuid, self.cloud.residents())

    def test_locked(self) -> None:
        locked = self.boot('a', 'compute-1', is_locked=True)
        free = self.boot('b', 'compute-1', 1)
        self.assertIs(True, self.resident(locked).is_locked)
        self.assertIs(False, self.resident(free).is_locked)

    def test_pinned(self) -> None:
        """Whatever value it has."""
        for bus, (metadata, is_pinned) in enumerate(
            (
                ({'nova_accel:pinned': ''}, True),
                ({'nova_accel:pinned': 'false', 'other': 'x'}, True),
                ({'nova_accel:pin': 'true'}, False),
            )
        ):
            server = self.boot(
                'server',
                self.hosts[bus // 2],
                bus % 2,
                metadata=metadata,
            )
            self.assertIs(is_pinned, self.resident(server).is_pinned)

    def test_split(self) -> None:
        server = self.boot('a', 'compute-1')
        beside = self.boot('b', 'compute-1', 1)
        self.assertIs(False, self.resident(server).is_split)
        self.acquire(server.uuid, 'compute-2', 0)
        found = self.resident(server)
        self.assertTrue(found.is_split)
        self.assertEqual('compute-1', found.hostname)
        self.assertIs(False, self.resident(beside).is_split)
        # Nova has moved it, and the first host has its device still.
        server.host = 'compute-2'
        found = self.resident(server)
        self.assertTrue(found.is_split)
        self.assertEqual('compute-2', found.hostname)

    def test_two_devices_of_one_host(self) -> None:
        uuid = uuidutils.generate_uuid()
        host = self.of_name['compute-1']
        host_arqs.acquire(
            host_arqs.AcquireRequest(
                instance_uuid=uuid,
                hostname='compute-1',
                role='active',
                attempt=1,
                project_id='a' * 32,
                device_profile_name='both',
                allocations=(host.allocated(0), host.allocated(1)),
            )
        )
        server = simulated_nova.Server(uuid, 'server', lambda: None)
        self.nova.servers[uuid] = server
        self.assertFalse(self.resident(server).is_split)

    def test_a_server_of_a_cell_that_is_down(self) -> None:
        """Nova tells little of it, and not on which host it is."""

        def shown() -> dict[str, Any]:
            return {'id': down.uuid, 'status': 'UNKNOWN'}

        down = self.boot('down', 'compute-1')
        others = [
            self.boot('b', 'compute-1', 1),
            self.boot('c', 'compute-2'),
        ]
        down.shown = shown  # type: ignore[method-assign]
        self.assertEqual(
            {server.uuid for server in others}, {*self.cloud.residents()}
        )

    def test_nova_is_away(self) -> None:
        self.boot('a', 'compute-1')
        self.nova.away = 1
        self.assertRaises(exceptions.CommandError, self.cloud.residents)


class TestPlan(RoomCloudTestCase):
    def test_the_moves(self) -> None:
        servers = [self.boot(name, name) for name in self.hosts]
        found = self.cloud.plan(
            'both',
            1,
            {server.uuid: number for number, server in enumerate(servers)},
        )
        self.assertTrue(found['is_proven'])
        [move] = found['moves']
        self.assertEqual(
            (servers[0].uuid, 'compute-1'), (move['server_uuid'], move['from'])
        )

    def test_no_moves(self) -> None:
        for name in self.hosts:
            self.boot(name, name)
        self.assertIsNone(self.cloud.plan('both', 1, {})['moves'])
        self.assertEqual([], self.cloud.plan('one', 3, {})['moves'])

    def test_it_is_refused(self) -> None:
        for name, quoted in (
            ('no-such', 'no-such'),
            ('no/such?', 'no%2Fsuch%3F'),
        ):
            error = self.assertRaises(
                exceptions.CommandError, self.cloud.plan, name, 1, {}
            )
            self.assertIn('404', str(error))
            self.assertIn(f'/{quoted}/room', str(error))


class TestBegun(RoomCloudTestCase):
    def begun(self, **fields: Any) -> bool:
        """Whether the migration of a server is one that goes on."""
        server = self.boot('server', 'compute-1')
        server.add_migration(**{'kind': 'migration', **fields})
        found = self.cloud.begun().holdings()
        server.leave()
        del self.nova.servers[server.uuid]
        return found == {server.uuid: _ONE}

    def test_nothing(self) -> None:
        self.boot('server', 'compute-1')
        self.assertEqual({}, self.cloud.begun().holdings())

    def test_cold_and_live_ones(self) -> None:
        self.assertTrue(self.begun(kind='migration'))
        self.assertTrue(self.begun(kind='live-migration', status='running'))
        for kind in ('resize', 'evacuation'):
            self.assertFalse(self.begun(kind=kind))

    def test_those_of_the_same_user(self) -> None:
        self.assertTrue(self.begun(user_id=simulated_nova.USER))
        self.assertFalse(self.begun(user_id='f' * 32))

    def test_those_that_have_not_ended(self) -> None:
        for status in nova_server.UNFINISHED:
            self.assertTrue(self.begun(status=status), status)
        for status in ('confirmed', 'reverted', 'completed', 'error'):
            self.assertFalse(self.begun(status=status), status)

    def test_of_several_hosts(self) -> None:
        servers = [self.boot(name, name) for name in self.hosts[:2]]
        for server in servers:
            server.add_migration('migration', source=server.host)
        self.boot('stays', 'compute-1', 1)
        self.assertEqual(
            {server.uuid: _ONE for server in servers},
            self.cloud.begun().holdings(),
        )

    def test_one_is_confirmed(self) -> None:
        server = self.boot('server', 'compute-1', status='SHUTOFF')
        server.begin('migrate', {'host': 'compute-2'})
        self.nova.pass_time()
        moves = self.cloud.begun()
        found = moves.server(server.uuid, _ONE)
        assert found is not None
        self.assertFalse(found.is_here)
        self.assertIs(drain_plan.Resize.OURS, found.resize)
        moves.act(server.uuid, Way.CONFIRM)
        self.assertEqual([('server', 'confirmResize')], self.nova.asked)

    def test_one_that_has_failed_is_not_tried_again(self) -> None:
        server = self.boot('server', 'compute-1')
        server.add_migration('live-migration', status='running')
        moves = self.cloud.begun()
        for way in (Way.LIVE, Way.COLD):
            error = self.assertRaises(
                nova_calls.Refused, moves.act, server.uuid, way
            )
            self.assertIn('once more', str(error))
        self.assertEqual([], self.nova.asked)


class TestMoves(RoomCloudTestCase):
    def test_holdings(self) -> None:
        moved = [
            self.boot('a', 'compute-1'),
            self.boot('b', 'compute-2'),
        ]
        self.boot('stays', 'compute-1', 1)
        moves = self.cloud.moves(
            [
                self.move(moved[0], 'compute-3'),
                self.move(moved[1], 'compute-1'),
            ]
        )
        self.assertEqual(
            {server.uuid: _ONE for server in moved}, moves.holdings()
        )
        moved[0].leave()
        # What it has of another host does not count.
        self.acquire(moved[0].uuid, 'compute-3', 0)
        self.assertEqual({moved[1].uuid: _ONE}, moves.holdings())

    def test_no_moves(self) -> None:
        self.assertEqual({}, self.cloud.moves([]).holdings())

    def test_to_the_service_host_of_the_plan(self) -> None:
        for name, way, status, action in (
            ('live', Way.LIVE, 'ACTIVE', 'os-migrateLive'),
            ('cold', Way.COLD, 'SHUTOFF', 'migrate'),
        ):
            server = self.boot(name, 'compute-1', status=status)
            moves = self.cloud.moves([self.move(server, 'compute-3')])
            moves.act(server.uuid, way)
            self.assertEqual((name, action), self.nova.asked[-1])
            self.assertEqual('compute-3.service', server.target)
            server.leave()

    def test_each_to_its_own_target(self) -> None:
        planned = [
            (self.boot('a', 'compute-1'), 'compute-2'),
            (self.boot('b', 'compute-1', 1), 'compute-3'),
            (self.boot('c', 'compute-2'), 'compute-3'),
        ]
        moves = self.cloud.moves(self.move(*each) for each in planned)
        for server, target in planned:
            moves.act(server.uuid, Way.LIVE)
            self.assertEqual(f'{target}.service', server.target)

    def test_a_host_that_nova_does_not_know(self) -> None:
        server = self.boot('a', 'compute-1')
        error = self.assertRaises(
            exceptions.CommandError,
            self.cloud.moves,
            [self.move(server, 'no-such')],
        )
        self.assertIn('no-such', str(error))

    def test_a_server_without_a_target(self) -> None:
        server = self.boot('a', 'compute-1')
        moves = room_cloud.Moves(
            {
                server.uuid: drain_cloud.DrainCloud(
                    self.nova.adapter, self.api.adapter, 'compute-1'
                )
            },
            {},
        )
        for way in (Way.LIVE, Way.COLD):
            self.assertRaises(nova_calls.Refused, moves.act, server.uuid, way)
        self.assertEqual([], self.nova.asked)
        moves.act(server.uuid, Way.CONFIRM)
        self.assertEqual([('a', 'confirmResize')], self.nova.asked)

    def test_a_move_is_confirmed_where_it_is(self) -> None:
        server = self.boot('a', 'compute-1', status='SHUTOFF')
        moves = self.cloud.moves([self.move(server, 'compute-2')])
        moves.act(server.uuid, Way.COLD)
        self.nova.pass_time()
        found = moves.server(server.uuid, _ONE)
        assert found is not None
        self.assertIs(drain_plan.Resize.OURS, found.resize)
        moves.act(server.uuid, Way.CONFIRM)
        self.nova.pass_time()
        self.assertEqual({}, moves.holdings())
        self.assertEqual('SHUTOFF', server.status)

    def test_the_plan_knows_of_room(self) -> None:
        """No host but the target has any."""
        server = self.boot('a', 'compute-1')
        moves = self.cloud.moves([self.move(server, 'compute-2')])
        self.assertIsNone(moves.no_room('one'))
        self.assertIsNone(moves.no_room('no-such'))

    def test_why_it_has_failed(self) -> None:
        server = self.boot('a', 'compute-1', fails=draining.NOT_LIVE)
        moves = self.cloud.moves([self.move(server, 'compute-2')])
        moves.act(server.uuid, Way.LIVE)
        self.nova.pass_time()
        self.assertEqual(draining.REFUSED, moves.why_failed(server.uuid))

    def test_a_server_that_is_gone(self) -> None:
        server = self.boot('a', 'compute-1')
        moves = self.cloud.moves([self.move(server, 'compute-2')])
        self.nova.servers.clear()
        self.assertIsNone(moves.server(server.uuid, _ONE))
