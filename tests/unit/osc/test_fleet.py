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

import csv
import io
import json
import pathlib

import fixtures

from nova_accel.osc import fleet as fleet_command
from nova_accel.overview import columns
from nova_accel.overview import commands
from nova_accel.overview import exit_status
from unit.osc import fleet


class TestList(fleet.FleetTestCase):
    def list(self, *arguments: str) -> list[dict[str, str]]:
        status, text = self.run_command(
            fleet_command.List, '-f', 'csv', *arguments
        )
        self.assertEqual(0, status, text)
        return [*csv.DictReader(io.StringIO(text))]

    def test_all_units(self) -> None:
        rows = self.list()
        self.assertEqual(columns.names(False), tuple(rows[0]))
        self.assertEqual(
            ['free', 'free', 'free', 'used'],
            sorted(row['State'] for row in rows),
        )
        (used,) = [row for row in rows if row['State'] == 'used']
        self.assertEqual(
            ('compute-1', f'name of {fleet.SERVER}', 'accel.1'),
            (used['Host'], used['Server name'], used['Flavor']),
        )

    def test_one_look_is_enough(self) -> None:
        self.nova.servers.clear()
        self.list()
        self.assertEqual(1, self.nova.asked.count(f'/servers/{fleet.SERVER}'))

    def test_one_host(self) -> None:
        rows = self.list('--host', 'compute-2', '--long')
        self.assertEqual({'compute-2'}, {row['Host'] for row in rows})
        self.assertIn('Device uuid', rows[0])
        self.assertEqual([], self.nova.asked)
        for more in ((), ('--drift',)):
            status, text = self.run_command(
                fleet_command.List, '--host', 'nowhere', *more
            )
            self.assertEqual(exit_status.UNKNOWN, status)
            self.assertIn('Host nowhere not found', text)

    def test_placement_alone(self) -> None:
        status, text = self.run_command(fleet_command.List, '--placement')
        self.assertEqual(exit_status.UNKNOWN, status)
        self.assertIn('--placement needs --drift, or --json', text)

    def test_json(self) -> None:
        self.nova.servers.clear()
        status, text = self.run_command(fleet_command.List, '--json')
        self.assertEqual(0, status)
        found = json.loads(text)
        self.assertEqual(4, len(found['units']))
        self.assertEqual(
            [fleet.SERVER], [drift['whose'] for drift in found['drift']]
        )


class TestRefused(fleet.FleetTestCase):
    roles = ('member', 'reader')

    def test_only_administrators(self) -> None:
        status, text = self.run_command(fleet_command.List)
        self.assertEqual(exit_status.UNKNOWN, status)
        self.assertIn('GET /topology with 403', text)


class TestMap(fleet.FleetTestCase):
    def test_it_is_drawn(self) -> None:
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'a.html')
        self.assertEqual(
            (0, ''),
            self.run_command(fleet_command.Map, '--output', str(path)),
        )
        self.assertIn(f'name of {fleet.SERVER}', path.read_text())


class TestDrift(fleet.FleetTestCase):
    def drift(self, *arguments: str) -> tuple[int, list[dict[str, str]]]:
        status, text = self.run_command(
            fleet_command.List, '--drift', '-f', 'csv', *arguments
        )
        return status, [*csv.DictReader(io.StringIO(text))]

    def test_all_agree(self) -> None:
        self.assertEqual((0, []), self.drift())

    def test_a_leak(self) -> None:
        self.nova.servers.clear()
        status, (row,) = self.drift()
        self.assertEqual(
            (commands.WRONG, 'leak', fleet.SERVER),
            (status, row['What'], row['Whose']),
        )

    def test_a_server_that_moves(self) -> None:
        self.nova.servers[fleet.SERVER]['OS-EXT-SRV-ATTR:host'] = 'elsewhere'
        self.nova.migrations['finished'] = [('move', fleet.SERVER)]
        self.assertEqual((0, []), self.drift())
        self.nova.migrations.clear()
        status, (row,) = self.drift()
        self.assertEqual((1, 'elsewhere'), (status, row['What']))

    def test_placement(self) -> None:
        self.nova.of_placement['/traits'] = {'traits': ['CUSTOM_NOVA_ACCEL']}
        rp_uuid = self.hosts[0].rp_uuid()
        self.nova.of_placement['/resource_providers'] = {
            'resource_providers': [
                {
                    'uuid': rp_uuid,
                    'name': 'compute-1_accel',
                    'parent_provider_uuid': None,
                }
            ]
        }
        path = f'/resource_providers/{rp_uuid}/allocations'
        held = {'allocations': {fleet.SERVER: {'resources': {'FPGA': 1}}}}
        self.nova.of_placement[path] = held
        self.assertEqual((0, []), self.drift('--placement'))
        held['allocations'][fleet.SERVER]['resources']['FPGA'] = 2
        status, (row,) = self.drift('--placement')
        self.assertEqual((1, 'overcounted'), (status, row['What']))
        of_host = ('--placement', '--host')
        self.assertEqual((status, [row]), self.drift(*of_host, 'compute-1'))
        self.assertEqual((0, []), self.drift(*of_host, 'compute-2'))
        self.assertEqual((0, []), self.drift())

    def test_what_is_not_known_is_no_agreement(self) -> None:
        del self.nova.servers[fleet.SERVER]['OS-EXT-STS:vm_state']
        self.assertEqual((exit_status.UNKNOWN, []), self.drift())
