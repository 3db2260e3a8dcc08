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


import datetime
from typing import Any

import fixtures

from nova_accel.db import device_profile as device_profile_db
from nova_accel.db import draining as draining_db
from nova_accel.scheduler import known_stock
from nova_accel.testing import reports
from rig.loopback import board_host
from unit.api import base

_END = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)
_OVER = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)

_PATH = '/device_profiles/gold/availability'


class AvailabilityTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.report_host(functions=10)
        self.create_profile('gold', {'resources:FPGA': '1'})

    def availability(
        self, roles: str = base.READER, path: str = _PATH
    ) -> dict[str, Any]:
        found: dict[str, Any] = self.ok(
            'GET', path, version='2.5', roles=roles
        )['availability']
        return found

    def ranges(self, *amounts: int) -> list[tuple[int, int | None]]:
        """What a tenant learns if a server takes so many units."""
        found = []
        for amount in amounts:
            name = f'of-{amount}'
            self.create_profile(name, {'resources:FPGA': str(amount)})
            told = self.availability(
                path=f'/device_profiles/{name}/availability'
            )
            self.assertNotIn('hosts', told)
            found.append((told['min_servers'], told['max_servers']))
        return found

    def test_a_tenant_learns_a_range(self) -> None:
        self.assertEqual(
            [(0, 0), (1, 1), (2, 4), (2, 4), (5, 9), (10, None)],
            self.ranges(11, 10, 5, 3, 2, 1),
        )

    def test_an_administrator_learns_where(self) -> None:
        told = self.availability(base.ADMIN)
        self.assertEqual(
            (10, 10, False, [{'hostname': base.HOSTNAME, 'servers': 10}]),
            (
                told['min_servers'],
                told['max_servers'],
                told['is_limited_by_quota'],
                told['hosts'],
            ),
        )

    def test_what_is_disabled_or_unknown_serves_no_one(self) -> None:
        for device in self.ok('GET', '/devices', roles=base.ADMIN)['devices']:
            self.ok(
                'POST', f'/devices/{device["uuid"]}/disable', roles=base.ADMIN
            )
        self.assertEqual([], self.availability(base.ADMIN)['hosts'])
        self.create_profile('typo', {'resources:CUSTOM_FPAG': '1'})
        told = self.availability(path='/device_profiles/typo/availability')
        self.assertEqual((0, 0), (told['min_servers'], told['max_servers']))

    def test_what_blocks_the_rest(self) -> None:
        self.clean_host(functions=10)
        self.assertEqual([], self.availability(base.ADMIN)['not_free'])
        for device in self.ok('GET', '/devices', roles=base.ADMIN)['devices']:
            self.ok(
                'POST', f'/devices/{device["uuid"]}/disable', roles=base.ADMIN
            )
        self.assertEqual(
            [{'resource_class': 'FPGA', 'reason': 'disabled', 'units': 10}],
            self.availability(base.ADMIN)['not_free'],
        )
        self.assertNotIn('not_free', self.availability())

    def test_the_end_of_a_drain(self) -> None:
        self.assertIsNone(self.availability()['drain_ends_at'])
        draining_db.begin(base.HOSTNAME, 'fans', _END, 'admin')
        for roles in (base.READER, base.ADMIN):
            self.assertEqual(
                _END.isoformat(), self.availability(roles)['drain_ends_at']
            )
        draining_db.begin(base.HOSTNAME, 'fans', None, 'admin')
        self.assertIsNone(self.availability()['drain_ends_at'])
        draining_db.begin(base.HOSTNAME, 'fans', _OVER, 'admin')
        self.assertIsNone(self.availability()['drain_ends_at'])

    def test_a_drain_of_a_host_with_other_units(self) -> None:
        reports.SimulatedHost('other', regions=(), functions=1).report()
        draining_db.begin('other', 'fans', _END, 'admin')
        self.assertIsNone(self.availability()['drain_ends_at'])

    def test_a_fabric_gives_no_two_that_are_not_joined(self) -> None:
        board_host.BoardHost('board').report()
        for name, groups, servers in (
            ('one', [{'resources:PGPU': '1'}], 8),
            ('two', [{'resources:PGPU': '1'}] * 2, 0),
            (
                'joined',
                [{'resources:PGPU': '8', 'accel:link': 'nvlink'}],
                1,
            ),
        ):
            device_profile_db.create(name, groups)
            told = self.availability(
                base.ADMIN, f'/device_profiles/{name}/availability'
            )
            self.assertEqual(servers, told['max_servers'], name)

    def test_a_group_that_no_pool_has(self) -> None:
        self.create_profile('huge', {'resources:FPGA': '64'})
        told = self.availability(path='/device_profiles/huge/availability')
        self.assertEqual(0, told['max_servers'])
        self.assertIn('FPGA=64', told['obstacle'])

    def test_within_the_quota(self) -> None:
        left = {'FPGA': 3}
        for name, value in (
            ('are_on', lambda: True),
            ('left', lambda _context, _project, _classes: left),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.api.handlers.project_limits.{name}', value
                )
            )
        told = self.availability()
        self.assertEqual(
            (2, 4, True),
            (
                told['min_servers'],
                told['max_servers'],
                told['is_limited_by_quota'],
            ),
        )
        left['FPGA'] = -1
        self.assertEqual(0, self.availability(base.ADMIN)['max_servers'])
        left.clear()
        self.assertIsNone(self.availability()['max_servers'])

    def test_several_profiles(self) -> None:
        self.create_profile('four', {'resources:FPGA': '4'})
        self.create_profile('huge', {'resources:FPGA': '64'})
        self.create_profile('vast', {'resources:FPGA': '63'})
        for names, servers in (
            ('four,gold', 4),
            ('gold,four', 10),
            ('huge,four', 2),
            ('four,huge', 2),
        ):
            told = self.availability(
                base.ADMIN, f'/device_profiles/{names}/availability'
            )
            self.assertEqual(
                (None, names, servers, None),
                (
                    told['device_profile_uuid'],
                    told['device_profile_name'],
                    told['max_servers'],
                    told['obstacle'],
                ),
            )
            self.assertEqual(servers, told['hosts'][0]['servers'])
        told = self.availability(
            path='/device_profiles/huge,vast/availability'
        )
        for part in ('huge: no pool of devices has FPGA=64', 'vast: no pool'):
            self.assertIn(part, told['obstacle'])

    def test_several_profiles_within_the_quota(self) -> None:
        self.report_host(functions=10)
        self.create_profile('four', {'resources:FPGA': '4'})
        for name, value in (
            ('are_on', lambda: True),
            ('left', lambda _context, _project, _classes: {'FPGA': 5}),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.api.handlers.project_limits.{name}', value
                )
            )
        told = self.availability(
            base.ADMIN, '/device_profiles/four,gold/availability'
        )
        self.assertEqual(
            (2, True), (told['max_servers'], told['is_limited_by_quota'])
        )

    def test_names_that_are_none(self) -> None:
        for names, status, text in (
            ('gold,nope,no', 404, 'name=nope, no'),
            ('gold,,', 400, 'a name is missing'),
            ('gold,a%20b', 400, 'a b'),
        ):
            answer = self.refused(
                status,
                'GET',
                f'/device_profiles/{names}/availability',
                version='2.5',
                roles=base.READER,
            )
            self.assertIn(text, str(answer))

    def test_the_database_is_away(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.scheduler.known_stock.current',
                lambda _age: None,
            )
        )
        self.refused(503, 'GET', _PATH, version='2.5', roles=base.READER)

    def test_one_statement(self) -> None:
        self.availability()
        reads = []
        real = known_stock.free_units.read
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.scheduler.known_stock.free_units.read',
                lambda since: reads.append(since) or real(since),
            )
        )
        self.availability()
        self.assertEqual(1, len(reads))
        self.assertIsNotNone(reads[0])
