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

"""The recording rules, by promtool, on samples of DCGM's exporter.

``dcgm/*.txt`` has the samples, and says where each form comes from.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import pathlib
import re
import subprocess
from typing import Any

import ddt
import fixtures
from oslotest import base
from prometheus_client import parser
import yaml

from nova_accel.metrics import families
from unit.metrics import numbers

_CHECKOUT = pathlib.Path(__file__).parents[2]
_RULES = _CHECKOUT / 'etc/nova_accel/prometheus/nova_accel.rules.yaml'
_PROMTOOL = _CHECKOUT / 'tools/promtool'
_SAMPLES = pathlib.Path(__file__).parent / 'dcgm'

#: The status of tools/promtool if there is none.
_NONE = 75

_FORMS = tuple(sorted(path.stem for path in _SAMPLES.glob('*.txt')))

#: What the rules make of each of the files.
_BY_GPU = {
    'utilization_ratio': 0.73,
    'memory_copy_utilization_ratio': 0.41,
    'encoder_utilization_ratio': 0,
    'decoder_utilization_ratio': 0.05,
    'memory_used_bytes': 6304038912,
    'memory_free_bytes': 78651588608,
    'memory_reserved_bytes': 567279616,
    'temperature_celsius': 44,
    'memory_temperature_celsius': 51,
    'power_watts': 312.5,
    'energy_joules_total': 1250.5,
    'sm_clock_hertz': 1980000000,
    'memory_clock_hertz': 2619000000,
    'pcie_replays_total': 3,
    'nvlink_bytes_per_second': 1200000000,
    'last_xid_error': 31,
    'uncorrectable_remapped_rows_total': 1,
    'correctable_remapped_rows_total': 2,
    'row_remap_failed': 0,
    'engine_active_ratio': 0.62,
    'tensor_active_ratio': 0.25,
    'memory_active_ratio': 0.125,
}

_GPU = {'hostname': 'compute-1', 'pci_bus_id': '00000000:8D:00.0'}
_BUSY = 'nova_accel:gpu_utilization_ratio:by_server'

_Samples = Iterable[tuple[str, Mapping[str, str], float]]


def _rules() -> dict[str, str]:
    """What is recorded -> the expression."""
    return {
        rule['record']: rule['expr']
        for group in yaml.safe_load(_RULES.read_text())['groups']
        for rule in group['rules']
    }


def _samples(form: str, **labels: str) -> list[tuple[str, dict, float]]:
    """The samples of a file, with further labels.

    The parser would give counters the names that OpenMetrics wants, and
    Prometheus does not.
    """
    text = (_SAMPLES / f'{form}.txt').read_text()
    untyped = re.sub('^# TYPE .*$', '', text, flags=re.MULTILINE)
    return [
        (sample.name, {**sample.labels, **labels}, sample.value)
        for family in parser.text_string_to_metric_families(untyped)
        for sample in family.samples
    ]


def _arq(server: str, **labels: str) -> tuple[str, dict[str, str], float]:
    """The info of an ARQ whose unit is of the GPU of the files."""
    return (
        'nova_accel_arq_info',
        {
            'arq_id': f'arq of {server}',
            'instance_id': server,
            'project_id': f'project of {server}',
            'resource_class': 'VGPU',
            'role': 'active',
            **_GPU,
            **labels,
        },
        1,
    )


def _series(name: str, labels: Mapping[str, str]) -> str:
    # PromQL escapes as YAML's double quotes do; no label has any.
    inner = ','.join(f'{key}="{value}"' for key, value in labels.items())
    return f'{name}{{{inner}}}'


@ddt.ddt
class RulesTestCase(base.BaseTestCase):
    def evaluate(
        self, samples: _Samples, expected: Mapping[str, _Samples]
    ) -> None:
        """Check what an expression gives, by ``promtool test rules``.

        :param expected: expression -> all samples that it has then
        """
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path = directory / 'test.yaml'
        groups = yaml.safe_load(_RULES.read_text())['groups']
        path.write_text(
            yaml.safe_dump(
                {
                    'rule_files': [str(_RULES)],
                    'evaluation_interval': '1m',
                    'group_eval_order': [group['name'] for group in groups],
                    'tests': [self._test(samples, expected)],
                }
            )
        )
        self.run_promtool('test', 'rules', str(path))

    def _test(
        self, samples: _Samples, expected: Mapping[str, _Samples]
    ) -> dict[str, Any]:
        return {
            'interval': '1m',
            'input_series': [
                {'series': _series(name, labels), 'values': f'{value}x5'}
                for name, labels, value in samples
            ],
            'promql_expr_test': [
                {
                    'expr': expression,
                    'eval_time': '4m',
                    'exp_samples': [
                        {'labels': _series(name, labels), 'value': value}
                        for name, labels, value in found
                    ],
                }
                for expression, found in expected.items()
            ],
        }

    def run_promtool(self, *arguments: str) -> None:
        done = subprocess.run(
            [_PROMTOOL, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=600,
        )
        if done.returncode == _NONE:
            self.skipTest(done.stdout)
        self.assertEqual(0, done.returncode, done.stdout)

    def by_gpu(self, **labels: str) -> dict[str, _Samples]:
        """Each metric of the files in base units."""
        return {
            name: [(name, {**_GPU, **labels}, value)]
            for name, value in (
                (f'nova_accel:gpu_{key}:by_gpu', value)
                for key, value in _BY_GPU.items()
            )
        }

    def test_rules_are_valid(self) -> None:
        self.run_promtool('check', 'rules', str(_RULES))

    @ddt.data(*_FORMS)
    def test_each_form_gives_the_same(self, form: str) -> None:
        self.evaluate(_samples(form), self.by_gpu())

    def test_each_rule_for_gpus_is_tested(self) -> None:
        self.assertEqual(
            {f'nova_accel:gpu_{key}:by_gpu' for key in _BY_GPU},
            {name for name in _rules() if name.endswith(':by_gpu')},
        )
        self.assertEqual(('after', 'before', 'between'), _FORMS)

    def test_units_held_are_recorded_once(self) -> None:
        """Each process of the API tells them."""
        kind = {
            'project_id': 'gold',
            'product': 'H100',
            'resource_class': 'PGPU',
        }
        recorded = 'nova_accel:units_held:max'
        self.evaluate(
            [
                ('nova_accel_units_held', {**kind, 'instance': pool}, 3)
                for pool in ('one', 'other')
            ],
            {recorded: [(recorded, kind, 3)]},
        )

    def test_while_the_exporter_is_upgraded(self) -> None:
        """Prometheus has the series of both releases for some minutes."""
        self.evaluate(
            [*_samples('before'), *_samples('between'), *_samples('after')],
            self.by_gpu(),
        )

    @ddt.data(*_FORMS)
    def test_each_server_with_a_part_of_the_gpu(self, form: str) -> None:
        """vGPUs: the exporter of the host tells of the whole GPU."""
        self.evaluate(
            [
                *_samples(form),
                _arq('one'),
                # Two units of the GPU are one server's.
                _arq('two'),
                _arq('two', arq_id='another'),
                # It is still on another host.
                _arq('coming', role='incoming'),
                _arq('elsewhere', pci_bus_id='00000000:91:00.0'),
                _arq('far', hostname='compute-2'),
            ],
            {
                _BUSY: [
                    (
                        _BUSY,
                        {
                            **_GPU,
                            'instance_id': server,
                            'project_id': f'project of {server}',
                        },
                        0.73,
                    )
                    for server in ('one', 'two')
                ]
            },
        )

    @ddt.data(*_FORMS)
    def test_the_exporter_in_a_guest(self, form: str) -> None:
        """The address and the host are the guest's, the server is ours."""
        own = {'instance_id': 'one', 'hostname': 'guest', 'Hostname': ''}
        if form == 'before':
            own = {'instance_id': 'one', 'Hostname': 'guest'}
        self.evaluate(
            [
                *_samples(form, **own),
                _arq('one', pci_bus_id='00000000:3B:00.0'),
                _arq('one', pci_bus_id='00000000:3C:00.0', arq_id='another'),
                _arq('two', hostname='guest'),
            ],
            {
                _BUSY: [
                    (
                        _BUSY,
                        {
                            'hostname': 'guest',
                            'pci_bus_id': '00000000:8D:00.0',
                            'instance_id': 'one',
                            'project_id': 'project of one',
                        },
                        0.73,
                    )
                ]
            },
        )

    def test_a_gpu_that_nobody_has(self) -> None:
        self.evaluate(_samples('after'), {_BUSY: []})

    def test_one_server_of_two_projects_stops_no_other(self) -> None:
        """No database has it, and no sample may stop a rule."""
        self.evaluate(
            [
                *_samples('after', instance_id='one', hostname='guest'),
                _arq('one'),
                _arq('one', arq_id='another', project_id='zzz'),
            ],
            {f'count({_BUSY})': [('', {}, 1)]},
        )

    def test_units(self) -> None:
        used, unusable = (
            'nova_accel:units_used:ratio',
            'nova_accel:units_unusable:sum',
        )
        fpga, none = {'resource_class': 'FPGA'}, {'resource_class': 'NONE'}
        self.evaluate(
            [
                ('nova_accel_units', fpga, 4),
                ('nova_accel_units_used', fpga, 3),
                ('nova_accel_units', none, 0),
                ('nova_accel_units_used', none, 0),
                ('nova_accel_units_unusable', {**fpga, 'reason': 'gone'}, 1),
                ('nova_accel_units_unusable', {**fpga, 'reason': 'faulty'}, 2),
                (
                    'nova_accel_host_last_report_timestamp_seconds',
                    {'hostname': 'compute-1'},
                    200,
                ),
            ],
            {
                used: [(used, fpga, 0.75)],
                unusable: [(unusable, fpga, 3)],
                # Four minutes after 1970 began.
                'nova_accel:report_age_seconds:max': [
                    ('nova_accel:report_age_seconds:max', {}, 40)
                ],
            },
        )

    def test_only_metrics_that_there_are(self) -> None:
        """Also where promtool cannot be had."""
        known = {family.name for family in families.of(numbers.some(), 100)}
        known |= {name for form in _FORMS for name, *_ in _samples(form)}
        rules = _rules()
        known |= set(rules)
        for expression in rules.values():
            named = re.findall(r'\b(?:nova_accel[:_]|DCGM_)[\w:]+', expression)
            self.assertTrue(named, expression)
            self.assertEqual(set(), set(named) - known)
