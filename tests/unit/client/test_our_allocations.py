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


from keystoneauth1 import exceptions as ks_exceptions
from nova import exception
import testtools

from nova_accel import exceptions
from nova_accel.client import our_allocations
from rig.stubs import nova_records


class TestAllocations(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.nova = self.useFixture(nova_records.NovaRecords())
        self.nova.allocations = {
            'first': {'fpga': {'FPGA': 1}, 'gpu': {'VGPU': 2}},
            'second': {'gpu': {'VGPU': 1}, 'node': {'VCPU': 4}},
        }

    def test_what_each_has_of_the_providers(self):
        self.assertEqual({}, our_allocations.of_consumers([]))
        self.assertEqual(
            {
                'first': {'fpga': {'FPGA': 1}, 'gpu': {'VGPU': 2}},
                'second': {'gpu': {'VGPU': 1}},
            },
            our_allocations.of_consumers(['fpga', 'gpu']),
        )
        self.assertEqual(2, len(self.nova.calls))

    def test_what_one_has_of_all_providers(self):
        self.assertEqual(
            {
                'gpu': {'resources': {'VGPU': 1}},
                'node': {'resources': {'VCPU': 4}},
            },
            our_allocations.of_consumer('second'),
        )
        self.assertEqual({}, our_allocations.of_consumer('third'))

    def test_what_is_taken_away(self):
        our_allocations.take_away('second', {'gpu': {'VGPU': 1}})
        self.assertEqual(
            {'node': {'VCPU': 4}}, self.nova.allocations['second']
        )

    def test_no_answer(self):
        for fault in (
            ks_exceptions.ConnectFailure(),
            exception.ResourceProviderAllocationRetrievalFailed(
                rp_uuid='gpu', error=''
            ),
        ):
            self.nova.fault = fault
            self.assertRaises(
                exceptions.ServiceUnavailable,
                our_allocations.of_consumers,
                ['gpu'],
            )
            self.assertRaises(
                exceptions.ServiceUnavailable,
                our_allocations.of_consumer,
                'first',
            )
            self.assertRaises(
                exceptions.ServiceUnavailable,
                our_allocations.take_away,
                'first',
                {},
            )
