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
from nova import objects
import testtools

from nova_accel.scheduler import candidates
from nova_accel.testing import scheduling


class TestAsk(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.placement = self.useFixture(scheduling.Placement())

    def ask(self, *groups, **kwargs):
        return candidates.ask(
            nova_context.get_admin_context(),
            [
                objects.RequestGroup(
                    requester_id=f'device_profile_{index}', resources=resources
                )
                for index, resources in enumerate(groups)
            ],
            **kwargs,
        )

    def test_who_can_serve(self):
        uuids = {
            self.placement.add_provider(name, {'FPGA': 1})
            for name in ('one', 'other')
        }
        answer = self.ask({'FPGA': 1})
        self.assertEqual(
            uuids,
            {uuid for request in answer for uuid in request['allocations']},
        )
        self.assertEqual(1, len(self.ask({'FPGA': 1}, limit=1)))

    def test_nobody_can(self):
        self.placement.add_provider('one', {'FPGA': 1})
        self.assertEqual([], self.ask({'FPGA': 2}))

    def test_the_group_policy_rules(self):
        self.placement.add_provider('one', {'FPGA': 2})
        groups = {'FPGA': 1}, {'FPGA': 1}
        self.assertEqual(1, len(self.ask(*groups, group_policy='none')))
        self.assertEqual([], self.ask(*groups, group_policy='isolate'))

    def test_placement_refuses(self):
        self.assertIsNone(self.ask({'CUSTOM_NO_SUCH': 1}))

    def test_placement_is_away(self):
        self.placement.use('http://127.0.0.1:1')
        self.assertIsNone(self.ask({'FPGA': 1}))
