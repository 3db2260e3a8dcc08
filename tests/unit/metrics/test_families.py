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

import re

from prometheus_client import core
import testtools

from nova_accel.metrics import families
from nova_accel.model.fleet import fleet_numbers
from nova_accel.model.units import unit_state
from unit.metrics import numbers

_State = unit_state.UnitState


def _samples(
    found: fleet_numbers.Numbers, most: int = 100
) -> dict[str, dict[tuple[str, ...], float]]:
    """Metric -> the values of its labels -> number."""
    return {
        family.name: {
            tuple(sample.labels.values()): sample.value
            for sample in family.samples
        }
        for family in families.of(found, most)
    }


class FamiliesTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.found = _samples(numbers.some())

    def test_what_a_project_holds(self) -> None:
        self.assertEqual(
            {
                (
                    '3' * 32,
                    'H100 "PCIe"\\n80GB',
                    'VGPU',
                    'nvidia-558',
                ): 4
            },
            self.found['nova_accel_units_held'],
        )

    def test_who_has_what(self) -> None:
        [family] = [
            family
            for family in families.of(numbers.some(), 100)
            if family.name == 'nova_accel_arq_info'
        ]
        [sample] = family.samples
        self.assertEqual(
            {
                'arq_id': '1' * 36,
                'instance_id': '2' * 36,
                'project_id': '3' * 32,
                'hostname': 'compute-1',
                'pci_bus_id': '00000000:8D:00.0',
                'device_id': '4' * 36,
                'product': 'H100 "PCIe"\\n80GB',
                'resource_class': 'VGPU',
                'role': 'active',
            },
            sample.labels,
        )
        self.assertEqual(1, sample.value)

    def test_hosts(self) -> None:
        self.assertEqual(
            {('reporting',): 1, ('silent',): 1}, self.found['nova_accel_hosts']
        )
        name = 'nova_accel_host_last_report_timestamp_seconds'
        at = numbers.REPORTED_AT.timestamp()
        self.assertEqual(
            {('compute-1',): at, ('compute-2',): at}, self.found[name]
        )

    def test_units(self) -> None:
        self.assertEqual(
            {('VGPU',): 4, ('FPGA',): 2}, self.found['nova_accel_units']
        )
        self.assertEqual(
            {('VGPU',): 1, ('FPGA',): 0}, self.found['nova_accel_units_used']
        )
        self.assertEqual(
            {('VGPU',): 3, ('FPGA',): 0}, self.found['nova_accel_units_free']
        )
        unusable = self.found['nova_accel_units_unusable']
        self.assertEqual(2, unusable['FPGA', 'cleaning_failed'])
        self.assertEqual(2, sum(unusable.values()))
        self.assertEqual(2 * len(fleet_numbers.UNUSABLE), len(unusable))

    def test_times(self) -> None:
        self.assertEqual(
            {('50',): 0.02, ('90',): 0.04, ('100',): 0.04},
            self.found['nova_accel_bind_seconds'],
        )
        self.assertEqual(
            {('50',): 9, ('90',): 30, ('100',): 30},
            self.found['nova_accel_programming_seconds'],
        )
        self.assertEqual(
            {('running',): 1, ('programmed',): 3, ('failed',): 2},
            self.found['nova_accel_programmings'],
        )

    def test_failures(self) -> None:
        self.assertEqual(
            {
                ('programming', 'interrupted'): 1,
                ('programming', 'no_time'): 0,
                ('programming', 'bitstream'): 0,
                ('programming', 'device'): 1,
                ('binding', 'host_silent'): 1,
                ('binding', 'no_free_unit'): 1,
                ('cleaning', 'device'): 2,
                ('health', 'device'): 1,
            },
            self.found['nova_accel_failures'],
        )
        self.assertEqual(
            {('healthy',): 4, ('faulty',): 1}, self.found['nova_accel_devices']
        )

    def test_findings(self) -> None:
        self.assertEqual(
            {
                ('guest_gone', 'open'): 4,
                ('mdev', 'repaired'): 2,
                (fleet_numbers.OTHERS, 'open'): 2,
            },
            {
                labels: amount
                for labels, amount in self.found['nova_accel_findings'].items()
                if amount
            },
        )

    def test_arqs(self) -> None:
        arqs = self.found['nova_accel_arqs']
        self.assertEqual((1, 2), (arqs['Bound',], arqs['BindFailed',]))
        self.assertEqual(0, arqs['Initial',])
        self.assertNotIn(('Unknown',), arqs)

    def test_an_arq_of_a_clients_own(self) -> None:
        """It has no role, and may have no project."""
        arq = fleet_numbers.BoundArq(
            **{**vars(numbers.ARQ), 'role': None, 'project_id': None}
        )
        found = _samples(numbers.some(bound=[arq]))
        [labels] = found['nova_accel_arq_info']
        self.assertEqual(2, labels.count(''))

    def test_no_metric_has_more_series_than_it_may(self) -> None:
        hosts = [
            fleet_numbers.HostNumbers(
                f'host-{number}', numbers.REPORTED_AT, False
            )
            for number in range(9)
        ]
        bound = [
            fleet_numbers.BoundArq(
                **{**vars(numbers.ARQ), 'uuid': str(number)}
            )
            for number in range(5)
        ]
        units = {('VGPU', _State.USED): 7}
        held = [
            numbers.HELD._replace(project_id=str(number))
            for number in range(6)
        ]
        found = _samples(
            numbers.some(hosts=hosts, bound=bound, held=held, units=units), 4
        )
        name = 'nova_accel_host_last_report_timestamp_seconds'
        self.assertEqual(4, len(found['nova_accel_arq_info']))
        self.assertEqual(4, len(found[name]))
        self.assertEqual(4, len(found['nova_accel_units_held']))
        self.assertEqual(
            {
                ('nova_accel_arq_info',): 3,
                ('nova_accel_units_held',): 2,
                (name,): 5,
            },
            found['nova_accel_metrics_left_out'],
        )
        self.assertEqual(
            {('reporting',): 9, ('silent',): 0}, found['nova_accel_hosts']
        )

    def test_many_classes_of_a_mad_host(self) -> None:
        units = {
            (f'CUSTOM_{number}', _State.FREE): 1 for number in range(9999)
        }
        found = _samples(numbers.some(units=units))
        self.assertEqual(
            fleet_numbers.MAX_CLASSES + 1, len(found['nova_accel_units'])
        )
        self.assertEqual(9999, sum(found['nova_accel_units'].values()))

    def test_names_are_as_prometheus_wants_them(self) -> None:
        for family in families.of(numbers.some(), 100):
            self.assertIsInstance(family, core.GaugeMetricFamily)
            self.assertTrue(
                re.fullmatch('nova_accel_[a-z]+(_[a-z]+)*', family.name)
            )
            self.assertTrue(family.documentation.endswith('.'))
            # A gauge does not count up, and its unit is a base unit.
            self.assertFalse(
                family.name.endswith(('_total', '_ms', '_count', '_bucket'))
            )
