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

from prometheus_client import parser

from nova_accel.db.sql import engine
from nova_accel.testing import reports
from unit.cmd import base


class TestMetrics(base.ManageTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.assertEqual(0, self.run_command('db', 'sync'))
        self.output.truncate(0)
        self.output.seek(0)

    def found(self, text: str) -> dict[str, float]:
        """The sums of all series, by metric."""
        return {
            family.name: sum(sample.value for sample in family.samples)
            for family in parser.text_string_to_metric_families(text)
        }

    def test_printed(self) -> None:
        self.assertEqual(0, self.run_command('metrics'))
        self.assertEqual(
            0, self.found(self.output.getvalue())['nova_accel_hosts']
        )

    def test_file(self) -> None:
        path = self.directory / 'nova_accel.prom'
        path.write_text('old')
        reports.SimulatedHost(regions=(3,)).report()
        self.assertEqual(
            0, self.run_command('metrics', '--textfile', str(path))
        )
        found = self.found(path.read_text())
        self.assertEqual(3, found['nova_accel_units_free'])
        self.assertEqual('', self.output.getvalue())
        # For the user of node_exporter.
        self.assertEqual(0o644, path.stat().st_mode & 0o777)
        # It never reads half of a file.
        self.assertEqual([path], list(self.directory.glob('*.prom*')))

    def test_a_name_that_node_exporter_does_not_read(self) -> None:
        path = self.directory / 'nova_accel.txt'
        self.assertRaises(
            SystemExit, self.run_command, 'metrics', '--textfile', str(path)
        )
        self.assertIn('.prom', self.errors.getvalue())
        self.assertFalse(path.exists())

    def test_no_database(self) -> None:
        """The file of the run before stays, and its age tells."""
        path = self.directory / 'nova_accel.prom'
        path.write_text('old')
        engine.forget()
        self.assertEqual(
            1,
            self.run_command(
                'metrics',
                '--textfile',
                str(path),
                configuration=(
                    '[nova_accel_database]\n'
                    f'connection = sqlite:///{self.directory}/no/such.db\n'
                ),
            ),
        )
        self.assertEqual('old', path.read_text())
        self.assertIn('database', self.errors.getvalue())
