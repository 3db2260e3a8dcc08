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


import json
import pathlib
import stat

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.cmd import fleet as fleet_command
from nova_accel.model import finding
from nova_accel.model.fleet import fleet
from nova_accel.model.fleet import fleet_sources
from nova_accel.testing import simulated_fleet
from unit.cmd import base


class CommandTestCase(testtools.TestCase):
    """A fleet that is simulated.

    :ivar asked: whether Placement was to be asked, for each reading
    """

    def setUp(self) -> None:
        super().setUp()
        self.simulated = simulated_fleet.SimulatedFleet(24)
        self.asked: list[bool] = []
        for name, fake in (
            ('cells.connect', lambda: None),
            ('database_fleet.read', self.read),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(f'nova_accel.cmd.{name}', fake)
            )

    def read(self, asks_placement: bool) -> fleet.Fleet:
        self.asked.append(asks_placement)
        return fleet.join(
            self.simulated.ours,
            self.simulated.nova,
            self.simulated.placement if asks_placement else None,
        )

    def run_command(
        self,
        kind: type[fleet_command.List | fleet_command.Map],
        *arguments: str,
    ) -> tuple[int, str]:
        """The exit status and what is printed."""
        return base.run_command(kind, 'fleet', *arguments)

    def lose_a_server(self) -> str:
        uuid = next(iter(self.simulated.servers))
        del self.simulated.servers[uuid]
        return uuid

    def fail(self, *_arguments: object) -> None:
        raise exceptions.ServiceUnavailable('the database is away')


class TestList(CommandTestCase):
    def list(self, *arguments: str) -> tuple[int, str]:
        return self.run_command(fleet_command.List, *arguments)

    def test_all_units(self) -> None:
        status, text = self.list('-f', 'csv')
        self.assertEqual(0, status)
        header, *lines = text.splitlines()
        self.assertEqual(
            'Host,Device,Product,Part,State,Server name,Flavor,Why',
            header.replace('"', ''),
        )
        self.assertEqual(len(self.simulated.units), len(lines))
        self.assertIn('train-0000', text)
        self.assertEqual([False], self.asked)

    def test_with_uuids(self) -> None:
        text = self.list('--long', '-f', 'csv')[1]
        for unit in self.simulated.units:
            self.assertIn(unit.uuid, text)
        for uuid in self.simulated.servers:
            self.assertIn(uuid, text)

    def test_where_sources_disagree(self) -> None:
        status, text = self.list('--drift', '--placement', '-f', 'csv')
        self.assertEqual((0, 1), (status, len(text.splitlines())))
        self.assertEqual([True], self.asked)
        uuid = self.lose_a_server()
        status, text = self.list('--drift', '-f', 'csv')
        self.assertEqual((1, 2), (status, len(text.splitlines())))
        for part in ('leak', uuid, 'Nova has no such server'):
            self.assertIn(part, text)
        # A list of units is no audit.
        self.assertEqual(0, self.list('-f', 'csv')[0])

    def test_what_hosts_have_found(self) -> None:
        self.simulated = simulated_fleet.SimulatedFleet(400)
        self.simulated.find(is_repaired=True)
        status, text = self.list('--drift', '-f', 'csv')
        self.assertEqual(
            (0, 1 + len(finding.Kind)), (status, len(text.splitlines()))
        )
        self.assertIn('the host has repaired it', text)
        self.simulated.find()
        status, text = self.list('--drift', '-f', 'csv')
        self.assertEqual(
            (1, 1 + 2 * len(finding.Kind)), (status, len(text.splitlines()))
        )
        for found in self.simulated.findings:
            for part in (
                found.hostname,
                found.kind,
                found.words,
                found.remedy,
            ):
                self.assertIn(part, text)
        self.assertEqual(0, self.list('-f', 'csv')[0])

    def test_findings_in_json(self) -> None:
        self.simulated = simulated_fleet.SimulatedFleet(400)
        self.simulated.find()
        document = json.loads(self.list('--json')[1])
        self.assertEqual(
            [
                (
                    found.hostname,
                    found.kind,
                    found.words,
                    found.instance_uuid,
                    found.device,
                    found.remedy,
                    '2026-11-23T01:00:00+00:00',
                    False,
                    1,
                )
                for found in self.simulated.findings
            ],
            [
                (
                    each['host'],
                    each['kind'],
                    each['words'],
                    each['server'],
                    each['device'],
                    each['remedy'],
                    each['since'],
                    each['is_repaired'],
                    len(each['devices']),
                )
                for each in document['findings']
            ],
        )

    def test_json(self) -> None:
        uuid = self.lose_a_server()
        status, text = self.list('--json')
        self.assertEqual(0, status)
        found = json.loads(text)
        self.assertEqual(3, len(found['hosts']))
        self.assertFalse(found['is_placement_asked'])
        self.assertEqual(
            {unit.uuid for unit in self.simulated.units},
            {unit['unit'] for unit in found['units']},
        )
        (drift,) = found['drift']
        self.assertEqual(('leak', uuid), (drift['what'], drift['whose']))
        self.assertEqual(
            set(drift['units']),
            {
                unit['unit']
                for unit in found['units']
                if unit['server'] == uuid
            },
        )
        self.assertEqual(1, self.list('--json', '--drift')[0])

    def test_no_escape_reaches_a_terminal(self) -> None:
        uuid = next(iter(self.simulated.servers))
        self.simulated.servers[uuid] = fleet_sources.FleetServer(
            self.simulated.servers[uuid].host, 'active', name='\x1b[2Jevil'
        )
        text = self.list('-f', 'csv')[1]
        self.assertIn('evil', text)
        self.assertNotIn('\x1b', text)

    def test_what_cannot_be_read(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.cmd.database_fleet.read', self.fail
            )
        )
        self.assertEqual((2, 'the database is away\n'), self.list())


class TestMap(CommandTestCase):
    def test_it_replaces_the_file(self) -> None:
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'a.html')
        path.write_text('before')
        self.assertEqual(
            (0, ''),
            self.run_command(
                fleet_command.Map, '--placement', '--output', str(path)
            ),
        )
        text = path.read_text()
        self.assertTrue(text.startswith('<!DOCTYPE html>'))
        self.assertIn('train-0000', text)
        # It names the servers of tenants.
        self.assertEqual(0o600, stat.S_IMODE(path.stat().st_mode))
        self.assertEqual([path], list(path.parent.iterdir()))
        self.assertEqual([True], self.asked)

    def test_a_directory_that_does_not_exist(self) -> None:
        directory = self.useFixture(fixtures.TempDir()).path
        status, text = self.run_command(
            fleet_command.Map, '--output', f'{directory}/none/map.html'
        )
        self.assertEqual(2, status)
        self.assertIn('map.html', text)

    def test_what_cannot_be_read_leaves_the_file(self) -> None:
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'a.html')
        path.write_text('before')
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.cmd.database_fleet.read', self.fail
            )
        )
        status, text = self.run_command(
            fleet_command.Map, '--output', str(path)
        )
        self.assertEqual((2, 'the database is away\n'), (status, text))
        self.assertEqual('before', path.read_text())
