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

import gc

from nova import objects
import testtools

from nova_accel.model import device_profile
from nova_accel.model import naming
from nova_accel.scheduler import asked_groups


def a_request_group():
    return objects.RequestGroup(
        requester_id='device_profile_0',
        resources={'FPGA': 2},
        required_traits={naming.OWNERSHIP_TRAIT, 'CUSTOM_A'},
        forbidden_traits={'CUSTOM_B'},
    )


class TestAskedGroups(testtools.TestCase):
    def test_what_a_request_group_is_made_of(self):
        group = device_profile.Group({'FPGA': 2}, properties={'a': 'b'})
        one, other = a_request_group(), a_request_group()
        asked_groups.remember(one, group)
        self.assertIs(group, asked_groups.of(one))
        self.assertIsNot(group, asked_groups.of(other))

    def test_one_that_somebody_else_has_made(self):
        self.assertEqual(
            device_profile.Group(
                {'FPGA': 2}, frozenset({'CUSTOM_A'}), frozenset({'CUSTOM_B'})
            ),
            asked_groups.of(a_request_group()),
        )

    def test_it_lives_no_longer_than_the_request(self):
        asked_groups.remember(
            a_request_group(), device_profile.Group({'FPGA': 2})
        )
        gc.collect()
        self.assertNotIn(
            {'FPGA': 2},
            [group.resources for group in asked_groups._BEHIND.values()],
        )
