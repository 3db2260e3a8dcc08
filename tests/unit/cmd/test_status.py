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

import io
import json
import pathlib
from typing import Any

import fixtures
from oslo_config import cfg
import testtools

from nova_accel.cmd import status
from nova_accel.db import engine
from nova_accel.db import migration
from nova_accel.db import schema_version
from nova_accel.testing import reports

_SCHEDULER = """
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nova_accel.scheduler.candidate_filter.AcceleratorFilter
enabled_filters = ComputeFilter,AcceleratorFilter
weight_classes = nova.scheduler.weights.all_weighers,\
nova_accel.scheduler.weigher.AcceleratorWeigher
"""

_PLACEMENT = """
[placement]
allocation_candidates_generation_strategy = breadth-first
max_allocation_candidates = 100000
"""

_DATABASE, _LOADED, _HOSTS, _CANDIDATES, _CONTRACTS = range(5)


class TestUpgradeCheck(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.output = io.StringIO()
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', self.output))
        self.useFixture(fixtures.FakeLogger())
        # This machine may have a Placement.
        self.useFixture(
            fixtures.MonkeyPatch(
                'oslo_config.cfg.find_config_files',
                lambda project=None, *_others: [],
            )
        )
        engine.manager.cache_clear()
        self.addCleanup(engine.manager.cache_clear)
        self.database = (
            '[nova_accel_database]\n'
            f'connection = sqlite:///{self.directory}/accelerators.sqlite\n'
        )

    def check(
        self,
        nova: str = _SCHEDULER,
        placement: str | None = _PLACEMENT,
        *arguments: str,
    ) -> tuple[int, list[dict[str, Any]]]:
        """The exit status, and the results."""
        path = self.directory / 'nova.conf'
        path.write_text(self.database + nova)
        given = []
        if placement is not None:
            other = self.directory / 'placement.conf'
            other.write_text(placement)
            given = ['--placement-config', str(other)]
        self.output.truncate(0)
        self.output.seek(0)
        code = status.main(
            ['--config-file', str(path), *given, 'upgrade', 'check', '--json']
        )
        self.forget_arguments()
        return code, json.loads(self.output.getvalue())['checks']

    def forget_arguments(self) -> None:
        """Let the program run once more in this process."""
        engine.CONF.reset()
        for name in ('command', 'placement_config'):
            engine.CONF.unregister_opt(cfg.Opt(name))

    def sync(self) -> None:
        engine.CONF.set_override(
            'connection',
            f'sqlite:///{self.directory}/accelerators.sqlite',
            'nova_accel_database',
        )
        self.addCleanup(
            engine.CONF.clear_override, 'connection', 'nova_accel_database'
        )
        migration.sync()

    def assert_result(
        self, code: int, number: int, details: str, *checked: Any
    ) -> None:
        """Assert that one check of the called ones warns or fails."""
        found_code, results = self.check(*checked)
        self.assertEqual(code, found_code)
        self.assertEqual(
            [code if each == number else 0 for each in range(5)],
            [result['result'] for result in results],
        )
        self.assertIn(details, results[number]['details'])

    def test_all_is_well(self) -> None:
        self.sync()
        code, results = self.check()
        self.assertEqual(0, code)
        self.assertEqual([0] * 5, [each['result'] for each in results])
        # It says what it has looked at.
        self.assertIn('placement.conf', results[_CANDIDATES]['details'])

    def test_database(self) -> None:
        code, results = self.check()
        self.assertEqual(2, code)
        self.assertEqual(
            [2, 0, 1, 0, 1], [result['result'] for result in results]
        )
        self.assertIn(
            'nova-accel-manage db sync', results[_DATABASE]['details']
        )
        self.assertIn('is not known', results[_HOSTS]['details'])

    def test_a_newer_database(self) -> None:
        """As for a service of the release before, during an upgrade."""
        self.sync()
        with engine.writer() as connection:
            connection.execute(
                schema_version.TABLE.update().values(version_num='newer')
            )
        self.assert_result(1, _DATABASE, 'newer than this release')

    def test_older_hosts(self) -> None:
        self.sync()
        reports.SimulatedHost().report()
        self.assertEqual(0, self.check()[0])
        for number in range(12):
            reports.SimulatedHost(f'old-{number:02}', contract=0).report()
        self.assert_result(
            1, _CONTRACTS, 'old-09 (0), and 2 more. Servers boot'
        )

    def test_no_such_configuration(self) -> None:
        errors = io.StringIO()
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', errors))
        code = status.main(
            [
                '--config-file',
                str(self.directory / 'no.conf'),
                'upgrade',
                'check',
            ]
        )
        self.forget_arguments()
        self.assertEqual(255, code)
        self.assertIn('no.conf', errors.getvalue())
        self.assertNotIn('Traceback', errors.getvalue())

    def test_no_connection(self) -> None:
        self.database = ''
        code, results = self.check()
        self.assertEqual(2, code)
        self.assertIn(
            '[nova_accel_database] connection', results[_DATABASE]['details']
        )

    def test_what_nova_scheduler_loads(self) -> None:
        self.sync()
        for part in (',AcceleratorFilter', '_accel.scheduler.candidate'):
            self.assert_result(
                2, _LOADED, 'enabled_filters', _SCHEDULER.replace(part, '')
            )
        self.assert_result(
            1,
            _LOADED,
            'weight_classes',
            _SCHEDULER.replace(',nova_accel.scheduler.weigher', ',other'),
        )

    def test_more_hosts_than_nova_asks_for(self) -> None:
        self.sync()
        for number in range(3):
            reports.SimulatedHost(f'compute-{number}').report()
        reports.SimulatedHost('plain', regions=()).report()
        most = '[scheduler]\nmax_placement_results = '
        self.assertEqual(0, self.check(f'{_SCHEDULER}{most}3\n')[0])
        self.assert_result(
            1, _HOSTS, 'max_placement_results', f'{_SCHEDULER}{most}2\n'
        )

    def test_placement(self) -> None:
        self.sync()
        for placement, details in (
            ('', 'allocation_candidates_generation_strategy'),
            ('', 'max_allocation_candidates limits'),
            (
                _PLACEMENT.replace('breadth-first', 'depth-first'),
                'allocation_candidates_generation_strategy = breadth-first',
            ),
            (_PLACEMENT.replace('100000', '999'), 'less than the 1000'),
            (None, '--placement-config'),
        ):
            self.assert_result(1, _CANDIDATES, details, _SCHEDULER, placement)
        self.assert_result(
            2,
            _CANDIDATES,
            'cannot be read',
            _SCHEDULER,
            _PLACEMENT.replace('100000', 'many'),
        )

    def test_placement_in_its_usual_place(self) -> None:
        self.sync()
        path = self.directory / 'usual.conf'
        path.write_text(_PLACEMENT)
        self.useFixture(
            fixtures.MonkeyPatch(
                'oslo_config.cfg.find_config_files',
                lambda project=None, *_others: (
                    [str(path)] if project == 'placement' else []
                ),
            )
        )
        code, results = self.check(_SCHEDULER, None)
        self.assertEqual(0, code)
        self.assertIn('usual.conf', results[_CANDIDATES]['details'])
