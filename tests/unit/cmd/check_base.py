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

"""``nova-accel-status upgrade check`` over a Nova that is made up."""

from collections.abc import Collection
import enum
import io
import json
import pathlib
from typing import Any

import fixtures
from nova import objects
from oslo_config import cfg
import testtools

from nova_accel.cmd import status
from nova_accel.db.migrations import migration
from nova_accel.db.sql import engine
from nova_accel.model.fleet import fleet_sources

SCHEDULER = """
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nova_accel.scheduler.candidate_filter.AcceleratorFilter
enabled_filters = ComputeFilter,AcceleratorFilter
weight_classes = nova.scheduler.weights.all_weighers,\
nova_accel.scheduler.weigher.AcceleratorWeigher
"""

PLACEMENT = """
[placement]
allocation_candidates_generation_strategy = breadth-first
max_allocation_candidates = 100000
"""

#: The call of Nova's that gives its flavors.
FLAVORS = 'nova.objects.FlavorList.get_all'


class Check(enum.IntEnum):
    """The places of the results."""

    DATABASE = 0
    LOADED = 1
    HOSTS = 2
    CANDIDATES = 3
    CONTRACTS = 4
    DOUBLE = 5
    ADDRESSES = 6
    KEYS = 7
    FINDINGS = 8
    NOVA = 9


class CheckTestCase(testtools.TestCase):
    """A configuration of nova-scheduler in which all is well.

    :ivar flavors: those of Nova
    :ivar passed_through: by Nova's own PCI tracker, as in
        :class:`nova_accel.model.fleet.fleet_sources.NovaReading`
    """

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
        objects.register_all()
        # Nova has neither flavors nor servers.
        self.flavors: list[objects.Flavor] = []
        self.passed_through: dict[tuple[str, str], str] = {}
        for name, fake in (
            ('nova_accel.cmd.cells.connect', lambda: None),
            ('nova_accel.cmd.cells.read', self.ask_nova),
            (FLAVORS, lambda *_args, sort_key: self.flavors),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, fake))
        self.database = (
            '[nova_accel_database]\n'
            f'connection = sqlite:///{self.directory}/accelerators.sqlite\n'
        )

    def ask_nova(self, _uuids: Collection[str]) -> fleet_sources.NovaReading:
        return fleet_sources.NovaReading(
            {}, passed_through=self.passed_through
        )

    def check(
        self,
        nova: str = SCHEDULER,
        placement: str | None = PLACEMENT,
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
        self, code: int, number: Check, details: str, *checked: Any
    ) -> None:
        """Assert that one check of the called ones warns or fails."""
        found_code, results = self.check(*checked)
        self.assertEqual(code, found_code)
        self.assertEqual(
            [code if each == number else 0 for each in Check],
            [result['result'] for result in results],
        )
        self.assertIn(details, results[number]['details'])
