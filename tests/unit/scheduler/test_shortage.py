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

from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_utils import uuidutils
import testtools

from nova_accel.model import device_profile
from nova_accel.model import naming
from nova_accel.scheduler import candidates
from nova_accel.scheduler import shortage
from nova_accel.testing import scheduling


class TestExplainShortage(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.placement = self.useFixture(scheduling.Placement())
        host = self.placement.add_provider('host', {'VCPU': 8})
        for number in range(2):
            self.placement.add_provider(
                f'host_accel_{number}',
                {'FPGA': 1},
                host,
                [naming.OWNERSHIP_TRAIT, f'CUSTOM_{number}'],
            )

    key = device_profile.FLAVOR_KEY

    def explain(self, *groups, **extra_specs):
        return shortage.explain_shortage(
            nova_context.get_admin_context(),
            scheduling.request_spec(
                {self.key: 'profile', **extra_specs},
                [
                    objects.RequestGroup(
                        requester_id=device_profile.requester_id(index),
                        resources=resources,
                        required_traits={naming.OWNERSHIP_TRAIT, *traits},
                    )
                    for index, (resources, *traits) in enumerate(groups)
                ],
            ),
        )

    def reason(self, *groups, **extra_specs):
        error = self.assertRaises(
            exception.RequestFilterFailed, self.explain, *groups, **extra_specs
        )
        return str(error)

    def test_there_is_enough(self):
        self.assertTrue(self.explain(({'FPGA': 1},), ({'FPGA': 1},)))
        self.assertTrue(
            self.explain(
                ({'FPGA': 1}, 'CUSTOM_0'),
                ({'FPGA': 1}, 'CUSTOM_1'),
                group_policy='isolate',
            )
        )

    def test_no_accelerators_are_asked_for(self):
        self.assertFalse(
            shortage.explain_shortage(
                nova_context.get_admin_context(), scheduling.request_spec({})
            )
        )

    def test_one_group_cannot_be_met(self):
        reason = self.reason(({'FPGA': 1},), ({'FPGA': 2}, 'CUSTOM_1'))
        self.assertIn('device profile profile', reason)
        self.assertIn(
            'no device has device_profile_1 free: FPGA=2, CUSTOM_1 required',
            reason,
        )
        self.assertNotIn('device_profile_0', reason)
        self.assertNotIn(naming.OWNERSHIP_TRAIT, reason)

    def test_the_groups_cannot_be_met_together(self):
        reason = self.reason(*[({'FPGA': 1},)] * 3)
        self.assertIn(
            'no host has device_profile_0, device_profile_1, device_profile_2 '
            'free together: FPGA=1; FPGA=1; FPGA=1',
            reason,
        )

    def test_what_is_taken_is_not_free(self):
        (taken,) = candidates.ask(
            nova_context.get_admin_context(),
            [
                objects.RequestGroup(
                    requester_id='it',
                    resources={'FPGA': 1},
                    required_traits={'CUSTOM_0'},
                )
            ],
        ).requests
        self.assertTrue(self.placement.claim(taken))
        self.assertIn(
            'device_profile_0 free: FPGA=1, CUSTOM_0 required',
            self.reason(({'FPGA': 1}, 'CUSTOM_0')),
        )
        self.assertTrue(self.explain(({'FPGA': 1},)))

    def test_ports(self):
        port, other = (uuidutils.generate_uuid() for _port in range(2))
        spec = scheduling.request_spec(
            {self.key: 'profile'},
            [
                objects.RequestGroup(
                    requester_id=device_profile.requester_id(0, owner),
                    resources={'FPGA': amount},
                    required_traits={naming.OWNERSHIP_TRAIT},
                )
                for owner, amount in ((port, 2), (other, 1), ('', 1))
            ],
        )
        spec.requested_networks = objects.NetworkRequestList(
            objects=[
                objects.NetworkRequest(port_id=port, device_profile='nic'),
                objects.NetworkRequest(port_id=other, device_profile='other'),
            ]
        )
        error = self.assertRaises(
            exception.RequestFilterFailed,
            shortage.explain_shortage,
            nova_context.get_admin_context(),
            spec,
        )
        self.assertIn(
            f'device profile nic: no device has device_profile_0'
            f'{port} free: FPGA=2',
            str(error),
        )
        spec.requested_resources[0].resources = {'FPGA': 1}
        error = self.assertRaises(
            exception.RequestFilterFailed,
            shortage.explain_shortage,
            nova_context.get_admin_context(),
            spec,
        )
        self.assertIn(
            'device profile nic, other, profile: no host has', str(error)
        )

    def test_placement_is_away(self):
        """Nova finds that out by itself."""
        self.placement.use('http://127.0.0.1:1')
        self.assertTrue(self.explain(({'FPGA': 9},)))


class TestCyborgsKey(TestExplainShortage):
    key = device_profile.CYBORG_FLAVOR_KEY
