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

import types

import fixtures
from keystoneauth1 import exceptions as ks_exceptions
from nova import exception
import testtools

from nova_accel import exceptions
from nova_accel.client import our_allocations
from nova_accel.client import servers
from nova_accel.model.providers import counted
from nova_accel.model.providers import provider_layout
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

    def give(self, consumer, **units):
        our_allocations.give(
            our_allocations.read(consumer),
            counted.Units(
                {
                    provider_layout.Place('gpu', name): amount
                    for name, amount in units.items()
                }
            ),
            servers.Owner('project', 'user', {'VCPU': 2, 'OF_NOBODY': 1}),
            'node',
        )

    def have(self, total, reserved):
        self.nova.inventories = {
            'gpu': {'VGPU': {'total': total, 'reserved': reserved}},
            'node': {'VCPU': {'total': 8, 'reserved': 0}},
        }

    def reserved(self):
        return self.nova.inventories['gpu']['VGPU']['reserved']

    def test_what_is_given_to_who_has_something(self):
        for total, reserved, kept in ((9, 2, 2), (6, 3, 1), (5, 1, 0)):
            self.have(total, reserved)
            self.nova.allocations['second'] = {
                'gpu': {'VGPU': 1},
                'node': {'VCPU': 4},
            }
            self.give('second', VGPU=2)
            self.assertEqual(
                {'gpu': {'VGPU': 3}, 'node': {'VCPU': 4}},
                self.nova.allocations['second'],
            )
            # As many as are left when all are counted.
            self.assertEqual(kept, self.reserved())

    def test_what_is_given_to_who_has_nothing(self):
        """The node's part is what its flavor asks, and the node has."""
        self.have(5, 0)
        self.give('third', VGPU=1)
        self.assertEqual(
            {'gpu': {'VGPU': 1}, 'node': {'VCPU': 2}},
            self.nova.allocations['third'],
        )

    def test_what_others_have_is_not_given(self):
        before = dict(self.nova.allocations)
        for total in (3, 4):
            self.have(total, 0)
            self.assertRaises(exceptions.Conflict, self.give, 'second', VGPU=2)
        self.assertRaises(exceptions.Conflict, self.give, 'second', PGPU=1)
        self.assertEqual(before, self.nova.allocations)
        self.assertNotIn('/reshaper', self.nova.calls)

    def test_what_changes_meanwhile_is_not_overwritten(self):
        self.have(9, 0)
        present = our_allocations.read('third')
        self.nova.allocations['third'] = {'node': {'VCPU': 1}}
        with fixtures.MonkeyPatch(
            'nova_accel.client.our_allocations.read', lambda _uuid: present
        ):
            self.assertRaises(exceptions.Conflict, self.give, 'third', VGPU=1)
        self.assertEqual({'node': {'VCPU': 1}}, self.nova.allocations['third'])

    def test_which_are_in_a_tree(self):
        self.have(9, 0)
        self.assertEqual({'gpu', 'node'}, our_allocations.in_tree('node'))

    def test_placement_answers_with_an_error(self):
        self.have(9, 0)
        self.nova.post = lambda *_args, **_kwargs: types.SimpleNamespace(
            status_code=500, text='broken'
        )
        fault = self.assertRaises(
            exceptions.ServiceUnavailable, self.give, 'second', VGPU=1
        )
        self.assertIn('500 broken', str(fault))

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
