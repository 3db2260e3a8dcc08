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


from osc_lib import exceptions
import testtools

from nova_accel.osc import host_places
from unit.osc import simulated_nova


def simulated() -> simulated_nova.SimulatedNova:
    """Nova with three hypervisors in zones and aggregates."""
    nova = simulated_nova.SimulatedNova()
    nova.answers = {
        '/os-hypervisors/detail': {
            'hypervisors': [
                {
                    'id': f'id-{number}',
                    'hypervisor_hostname': f'compute-{number}',
                    'service': {'host': f'c{number}'},
                }
                for number in range(3)
            ]
        },
        '/os-availability-zone/detail': {
            'availabilityZoneInfo': [
                {'zoneName': 'east', 'hosts': {'c0': {}, 'c1': {}}},
                {'zoneName': 'nova', 'hosts': {'c2': {}}},
                {'zoneName': 'closed', 'hosts': None},
            ]
        },
        '/os-aggregates': {
            'aggregates': [
                {'name': 'gpu', 'hosts': ['c0', 'c1', 'c9']},
                {'name': 'new', 'hosts': ['c1']},
            ]
        },
    }
    return nova


class TestOfHypervisors(testtools.TestCase):
    def test_a_zone_each(self) -> None:
        self.assertEqual(
            {
                'compute-0': ['east'],
                'compute-1': ['east'],
                'compute-2': ['nova'],
            },
            host_places.of_hypervisors(
                simulated().adapter, host_places.Places.ZONE
            ),
        )

    def test_any_number_of_aggregates(self) -> None:
        self.assertEqual(
            {
                'compute-0': ['gpu'],
                'compute-1': ['gpu', 'new'],
                'compute-2': [],
            },
            host_places.of_hypervisors(
                simulated().adapter, host_places.Places.AGGREGATE
            ),
        )

    def test_nova_is_in_trouble(self) -> None:
        nova = simulated()
        nova.away = 1
        self.assertRaises(
            exceptions.CommandError,
            host_places.of_hypervisors,
            nova.adapter,
            host_places.Places.ZONE,
        )
