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

"""The dashboard asks only for metrics and labels that there are."""

from collections.abc import Iterator
import json
import pathlib
import re
import subprocess

import fixtures
import testtools
import yaml

from nova_accel.metrics import families
from unit.metrics import numbers

_CHECKOUT = pathlib.Path(__file__).parents[2]
_DASHBOARD = _CHECKOUT / 'etc/nova_accel/grafana/nova_accel.json'
_RULES = _CHECKOUT / 'etc/nova_accel/prometheus/nova_accel.rules.yaml'
_PROMTOOL = _CHECKOUT / 'tools/promtool'

_METRIC = re.compile(r'\bnova_accel[:_][\w:]+')
_GROUPED = re.compile(r'\bby \(([^)]*)\)')
_MATCHED = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')
_LEGEND = re.compile(r'{{(\w+)}}')

#: The labels that the rules for GPUs leave.
_OF_SERVER = {'instance_id', 'project_id', 'hostname', 'pci_bus_id'}


def _labels() -> dict[str, set[str]]:
    """Metric or rule -> its labels."""
    found = {
        family.name: set().union(*(each.labels for each in family.samples))
        for family in families.of(numbers.some(), 100)
    }
    for group in yaml.safe_load(_RULES.read_text())['groups']:
        for rule in group['rules']:
            found[rule['record']] = (
                _OF_SERVER
                if rule['record'].startswith('nova_accel:gpu_')
                else {'resource_class'}
            )
    return found


class DashboardTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.dashboard = json.loads(_DASHBOARD.read_text())
        self.panels = self.dashboard['panels']

    def targets(self) -> Iterator[tuple[str, str]]:
        """Expression and legend of each."""
        for panel in self.panels:
            for target in panel.get('targets', ()):
                yield target['expr'], target['legendFormat']

    def test_metrics_and_labels(self) -> None:
        known = _labels()
        count = 0
        for expression, legend in self.targets():
            names = _METRIC.findall(expression)
            self.assertTrue(names, expression)
            for name in names:
                self.assertIn(name, known)
            labels = set().union(*(known[name] for name in names))
            grouped = {
                label.strip()
                for group in _GROUPED.findall(expression)
                for label in group.split(',')
            }
            asked = {
                *grouped,
                *_MATCHED.findall(expression),
                *_LEGEND.findall(legend),
            }
            self.assertEqual(set(), asked - labels, expression)
            if grouped:
                self.assertEqual(
                    set(), set(_LEGEND.findall(legend)) - grouped, expression
                )
            count += 1
        self.assertGreater(count, 15)

    def test_each_metric_for_operators_is_shown(self) -> None:
        shown = {
            name
            for expression, _legend in self.targets()
            for name in _METRIC.findall(expression)
        }
        rules = {
            rule['record']: set(_METRIC.findall(rule['expr']))
            for group in yaml.safe_load(_RULES.read_text())['groups']
            for rule in group['rules']
        }
        shown = shown.union(*(rules.get(name, set()) for name in shown))
        self.assertEqual(
            # They tell of the metrics themselves, or are drawn in another way.
            {
                'nova_accel_build_info',
                'nova_accel_programmings',
                'nova_accel_units_held',
            },
            {family.name for family in families.of(numbers.some(), 100)}
            - shown,
        )

    def test_variables(self) -> None:
        known = _labels()
        variables = {
            variable['name']: variable
            for variable in self.dashboard['templating']['list']
        }
        for name, variable in variables.items():
            if variable['type'] == 'query':
                query = variable['query']['query']
                [metric] = _METRIC.findall(query)
                self.assertTrue(query.endswith(f', {name})'))
                self.assertIn(name, known[metric])
        used = set(re.findall(r'\$(?:{)?(\w+)', _DASHBOARD.read_text()))
        self.assertEqual(set(variables), used - {'__all'})

    def test_panels_do_not_overlap(self) -> None:
        places: dict[tuple[int, int], str] = {}
        for panel in self.panels:
            at = panel['gridPos']
            self.assertLessEqual(at['x'] + at['w'], 24)
            for x in range(at['x'], at['x'] + at['w']):
                for y in range(at['y'], at['y'] + at['h']):
                    self.assertNotIn((x, y), places)
                    places[x, y] = panel['title']
        numbers_of = [panel['id'] for panel in self.panels]
        self.assertEqual(len(numbers_of), len(set(numbers_of)))

    def test_expressions_are_valid(self) -> None:
        """As those of rules, with something in place of the variables."""
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path = directory / 'rules.yaml'
        path.write_text(
            yaml.safe_dump(
                {
                    'groups': [
                        {
                            'name': 'dashboard',
                            'rules': [
                                {
                                    'record': f'panel_{number}',
                                    'expr': expression.replace('$', ''),
                                }
                                for number, (expression, _legend) in enumerate(
                                    self.targets()
                                )
                            ],
                        }
                    ]
                }
            )
        )
        done = subprocess.run(
            [_PROMTOOL, 'check', 'rules', str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=600,
        )
        if done.returncode == 75:
            self.skipTest(done.stdout)
        self.assertEqual(0, done.returncode, done.stdout)
