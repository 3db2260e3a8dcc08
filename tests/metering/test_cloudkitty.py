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

"""CloudKitty's own collector reads our file, and asks for what we record.

CloudKitty runs in an environment of its own, in which Nova and nova_accel are
not.
"""

import datetime
import decimal
import pathlib
from typing import Any
import unittest
from unittest import mock

from cloudkitty import utils
from cloudkitty.collector import prometheus
import yaml

_FILES = pathlib.Path(__file__).parents[2] / 'etc/nova_accel'
_RULES = _FILES / 'prometheus/nova_accel.rules.yaml'

_LABELS = ('project_id', 'product', 'resource_class', 'shape')
_END = datetime.datetime(2026, 11, 22, 13, tzinfo=datetime.UTC)


class CloudKittyTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.collector = prometheus.PrometheusCollector(
            period=3600,
            conf=utils.load_conf(str(_FILES / 'cloudkitty/metrics.yml')),
        )
        [self.name] = self.collector.conf
        self.group = next(
            group
            for group in yaml.safe_load(_RULES.read_text())['groups']
            if group['name'] == 'nova_accel_usage'
        )

    def test_what_is_recorded_is_asked_for(self) -> None:
        [rule] = self.group['rules']
        self.assertEqual(f'{rule["record"]}@#accelerator_hours', self.name)
        self.assertIn(f'by ({", ".join(_LABELS)})', rule['expr'])

    def test_two_units_for_half_an_hour_are_one_hour(self) -> None:
        """Prometheus sums up what was recorded each minute."""
        interval_s = int(self.group['interval'].removesuffix('s'))
        kind = {
            'project_id': 'a' * 32,
            'product': 'H100',
            'resource_class': 'CUSTOM_SHAPE_MIG_3G_40GB',
            'shape': 'mig:3g.40gb',
        }
        told: dict[str, Any] = {
            'status': 'success',
            'data': {
                'result': [
                    {'metric': kind, 'value': [0, str(2 * 1800 / interval_s)]}
                ]
            },
        }
        with mock.patch.object(
            self.collector._conn,
            'get_instant',
            autospec=True,
            return_value=told,
        ) as ask:
            [point] = self.collector.fetch_all(
                self.name,
                _END - datetime.timedelta(hours=1),
                _END,
                'a' * 32,
            )
        query = ask.call_args.args[0]
        self.assertTrue(
            query.startswith(
                'sum(sum_over_time(nova_accel:units_held:max'
                f'{{project_id="{"a" * 32}"}}[3600s])) by ('
            ),
            query,
        )
        for label in _LABELS:
            self.assertIn(label, query)
            self.assertEqual(kind[label], point.groupby[label])
        self.assertAlmostEqual(decimal.Decimal(1), point.qty, places=6)
        self.assertEqual('unit-hour', point.unit)


if __name__ == '__main__':
    unittest.main()
