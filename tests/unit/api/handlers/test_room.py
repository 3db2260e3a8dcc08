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


from collections.abc import Mapping
from typing import Any

import fixtures
from oslo_utils import uuidutils

from nova_accel.db import device_profile as device_profile_db
from nova_accel.db import host_arqs
from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import provider_allocation
from nova_accel.testing import reports
from rig.loopback import board_host
from unit.api import base

_PATH = '/device_profiles/four/room'
_SIZES = {'one': 1, 'two': 2, 'three': 3, 'four': 4}
_SEARCHED_S = 'nova_accel.api.handlers.room._SEARCHED_S'


class RoomTestCase(base.ApiTestCase):
    def acquire(
        self,
        host: reports.SimulatedHost,
        profile: str,
        *allocations: provider_allocation.ProviderAllocation,
        **fields: Any,
    ) -> str:
        """The uuid of a server that has got units of a host."""
        request = host_arqs.AcquireRequest(
            **{
                'instance_uuid': uuidutils.generate_uuid(),
                'hostname': host.hostname,
                'role': 'active',
                'attempt': 1,
                'project_id': base.PROJECT,
                'device_profile_name': profile,
                'allocations': allocations,
                **fields,
            }
        )
        host_arqs.acquire(request)
        return request.instance_uuid

    def room(
        self,
        servers: Mapping[str, float],
        count: float = 1,
        path: str = _PATH,
    ) -> dict[str, Any]:
        found: dict[str, Any] = self.ok(
            'POST',
            path,
            {'count': count, 'servers': servers},
            version='2.5',
        )['room']
        return found

    def moves(
        self, *args: Any, **kwargs: Any
    ) -> list[tuple[str, str, str]] | None:
        """The server, the source and the target of each move."""
        told = self.room(*args, **kwargs)
        self.assertIs(True, told['is_proven'])
        if told['moves'] is None:
            return None
        return [
            (move['server_uuid'], move['from'], move['to'])
            for move in told['moves']
        ]


class RoomTest(RoomTestCase):
    """Three hosts with four units each."""

    def setUp(self) -> None:
        super().setUp()
        self.hosts = [
            reports.SimulatedHost(name, regions=(), functions=4)
            for name in 'abc'
        ]
        for name, size in _SIZES.items():
            device_profile_db.create(
                name, [{'resources:CUSTOM_QAT': str(size)}]
            )

    def report(self, number: int) -> None:
        """Only so many hosts report."""
        for host in self.hosts[:number]:
            host.report()

    def boot(self, number: int, profile: str, **fields: Any) -> str:
        """The uuid of a server on a host."""
        host = self.hosts[number]
        return self.acquire(
            host,
            profile,
            host.allocated_functions(_SIZES[profile]),
            **fields,
        )

    def devices(self, hostname: str, instance_uuid: str | None) -> list[str]:
        """The devices of a host that a server has; None for free ones."""
        found = []
        for host in self.ok('GET', '/topology', version='2.5')['topology']:
            for device in host['devices']:
                [unit] = device['units']
                holder = unit['arq'] and unit['arq']['instance_uuid']
                if (host['hostname'], holder) == (hostname, instance_uuid):
                    found.append(device['uuid'])
        return sorted(found)

    def test_one_move(self) -> None:
        self.report(2)
        server = self.boot(0, 'one')
        self.boot(1, 'three')
        profile = device_profile_db.get('four')
        told = self.room({server: 3})
        [move] = told['moves']
        [device] = move.pop('devices')
        self.assertEqual(
            {
                'device_profile_uuid': profile['uuid'],
                'device_profile_name': 'four',
                'count': 1,
                'is_proven': True,
                'moves': [{'server_uuid': server, 'from': 'a', 'to': 'b'}],
            },
            told,
        )
        self.assertEqual(1, device['units'])
        self.assertEqual(
            'b',
            self.ok('GET', f'/devices/{device["device_uuid"]}')['hostname'],
        )
        path = f'/device_profiles/{profile["uuid"]}/room'
        self.assertEqual(
            [(server, 'a', 'b')], self.moves({server: 3}, path=path)
        )

    def test_the_units_that_it_gets(self) -> None:
        self.report(2)
        first, second = (self.boot(number, 'two') for number in (0, 1))
        told = self.room({first: 0})
        [move] = told['moves']
        self.assertEqual(
            [
                {'device_uuid': uuid, 'units': 1}
                for uuid in self.devices('b', None)
            ],
            move['devices'],
        )
        self.assertIsNone(self.room({first: 0}, count=2)['moves'])
        self.assertEqual([(second, 'b', 'a')], self.moves({second: 0}))

    def test_the_server_with_less_trouble(self) -> None:
        self.report(2)
        small, large = self.boot(0, 'one'), self.boot(1, 'three')
        self.assertEqual([(small, 'a', 'b')], self.moves({small: 1, large: 2}))
        self.assertEqual([(large, 'b', 'a')], self.moves({small: 2, large: 1}))

    def test_several_moves(self) -> None:
        self.report(3)
        servers = {self.boot(number, 'one'): 'ab'[number] for number in (0, 1)}
        self.boot(2, 'two')
        moves = self.moves(dict.fromkeys(servers, 0), count=2)
        assert moves is not None
        self.assertEqual(
            {(uuid, source, 'c') for uuid, source in servers.items()},
            set(moves),
        )

    def test_there_is_room(self) -> None:
        self.report(2)
        server = self.boot(0, 'one')
        self.assertEqual([], self.moves({server: 0}))

    def test_others_do_not_move(self) -> None:
        self.report(2)
        small, large = self.boot(0, 'one'), self.boot(1, 'three')
        self.assertIsNone(self.moves({}))
        for server, source, target in ((small, 'a', 'b'), (large, 'b', 'a')):
            self.assertEqual(
                [(server, source, target)], self.moves({server: 9})
            )

    def test_servers_that_are_not_known(self) -> None:
        self.report(2)
        server = self.boot(0, 'one')
        self.boot(1, 'three')
        self.assertIsNone(self.moves({base.NOBODY: 0}))
        self.assertEqual(
            [(server, 'a', 'b')], self.moves({base.NOBODY: 0, server: 1})
        )

    def test_a_server_that_nova_is_moving(self) -> None:
        self.report(3)
        server = self.boot(0, 'two')
        for number in (1, 2):
            self.boot(number, 'two')
        self.assertIsNotNone(self.moves({server: 0}))
        self.boot(1, 'one', role='incoming', instance_uuid=server)
        self.assertIsNone(self.moves({server: 0}))

    def test_more_than_there_is(self) -> None:
        self.report(2)
        servers = {self.boot(0, 'one'): 0, self.boot(1, 'three'): 0}
        self.assertIsNone(self.moves(servers, count=2))
        self.assertIsNone(self.moves(servers, count=16))

    def test_a_device_that_no_other_server_gets(self) -> None:
        self.report(2)
        server = self.boot(0, 'one')
        self.boot(1, 'three')
        [device] = self.devices('a', server)
        for change, is_there_room in (('disable', False), ('enable', True)):
            self.ok('POST', f'/devices/{device}/{change}')
            self.assertEqual(
                is_there_room, self.moves({server: 0}) is not None
            )

    def test_hosts_that_do_not_report(self) -> None:
        self.report(2)
        server = self.boot(0, 'one')
        self.useFixture(base.SilentHosts())
        self.assertIsNone(self.moves({server: 0}))

    def test_numbers_may_have_a_fraction_of_zero(self) -> None:
        self.report(2)
        server = self.boot(0, 'one')
        self.boot(1, 'three')
        told = self.room({server: 1.0}, count=1.0)
        self.assertEqual(self.room({server: 1}), told)
        self.assertIs(int, type(told['count']))

    def test_the_time_is_over(self) -> None:
        self.report(2)
        server = self.boot(0, 'one')
        self.boot(1, 'three')
        self.useFixture(fixtures.MonkeyPatch(_SEARCHED_S, -1.0))
        told = self.room({server: 0})
        self.assertEqual((None, False), (told['moves'], told['is_proven']))

    def test_a_group_that_no_pool_has(self) -> None:
        self.report(1)
        device_profile_db.create('huge', [{'resources:CUSTOM_QAT': '64'}])
        self.assertIn(
            'CUSTOM_QAT=64',
            self.refused(
                404,
                'POST',
                '/device_profiles/huge/room',
                {'count': 1, 'servers': {}},
                version='2.5',
            ),
        )

    def test_the_database_is_away(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.scheduler.known_stock.current',
                lambda _age: None,
            )
        )
        self.refused(
            503,
            'POST',
            _PATH,
            {'count': 1, 'servers': {}},
            version='2.5',
        )


class BoardsTest(RoomTestCase):
    """Two hosts with a board of eight GPUs each."""

    def setUp(self) -> None:
        super().setUp()
        self.hosts = [board_host.BoardHost(f'board-{name}') for name in 'ab']
        for host in self.hosts:
            host.report()
        device_profile_db.create('gpu', [{'resources:PGPU': '1'}])
        device_profile_db.create(
            'board', [{'resources:PGPU': '8', 'accel:link': 'nvlink'}]
        )

    def boot(self, number: int) -> str:
        """The uuid of a server that has one GPU of a host."""
        host = self.hosts[number]
        rp_uuid = next(
            provider.uuid
            for provider in host.layout().providers
            if 'PGPU' in provider.totals
        )
        return self.acquire(
            host, 'gpu', *host.allocations([(rp_uuid, {'PGPU': 1})])
        )

    def test_a_board_is_freed(self) -> None:
        first, second = self.boot(0), self.boot(1)
        path = '/device_profiles/board/room'
        self.assertIsNone(self.moves({}, path=path))
        self.assertEqual(
            [(second, 'board-b', 'board-a')],
            self.moves({first: 1, second: 0}, path=path),
        )
        self.assertIsNone(
            self.moves({first: 1, second: 0}, count=2, path=path)
        )


class CardsTest(RoomTestCase):
    """Two hosts with a card of many shapes each."""

    def setUp(self) -> None:
        super().setUp()
        self.hosts = [
            reports.SimulatedHost(name, regions=(), cards=1) for name in 'ab'
        ]
        for host in self.hosts:
            host.report()
        for shape in (reports.WHOLE, reports.HALF, reports.EIGHTH):
            device_profile_db.create(
                naming.shape_class(shape),
                device_profile.checked_groups([{'accel:shape': shape}]),
            )

    def boot(self, number: int, shape: str) -> str:
        """The uuid of a server that has a unit of a host's card."""
        host = self.hosts[number]
        return self.acquire(
            host, naming.shape_class(shape), host.allocated_shapes(shape)
        )

    def path(self, shape: str) -> str:
        return f'/device_profiles/{naming.shape_class(shape)}/room'

    def test_a_card_is_freed(self) -> None:
        small = self.boot(0, reports.EIGHTH)
        large = self.boot(1, reports.HALF)
        path = self.path(reports.WHOLE)
        self.assertIsNone(self.moves({}, path=path))
        self.assertEqual(
            [(small, 'a', 'b')], self.moves({small: 0, large: 1}, path=path)
        )
        self.assertIsNone(self.moves({small: 0, large: 1}, count=2, path=path))

    def test_a_half_is_freed(self) -> None:
        """The other half is of a server that stays."""
        self.boot(0, reports.HALF)
        leaves = self.boot(0, reports.EIGHTH)
        self.boot(1, reports.EIGHTH)
        path = self.path(reports.HALF)
        self.assertEqual([], self.moves({leaves: 0}, 1, path))
        self.assertEqual(
            [(leaves, 'a', 'b')], self.moves({leaves: 0}, 2, path)
        )
        self.assertIsNone(self.moves({leaves: 0}, 3, path))

    def test_the_card_of_the_unit_that_it_gets(self) -> None:
        small = self.boot(0, reports.EIGHTH)
        self.boot(1, reports.HALF)
        [move] = self.room({small: 0}, path=self.path(reports.WHOLE))['moves']
        [card] = self.ok('GET', '/devices?hostname=b')['devices']
        self.assertEqual(
            [{'device_uuid': card['uuid'], 'units': 1}], move['devices']
        )
