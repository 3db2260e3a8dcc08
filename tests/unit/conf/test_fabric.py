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


from nova_accel import fabric_options
from nova_accel.conf import fabric
from unit.conf import options_case


class TestFabric(options_case.OptionsTestCase):
    module = fabric

    def test_bounds(self):
        self.assert_bounds(
            {
                'fabric_manager_timeout_s': (1, 600),
                # Fabric Manager waits 60 seconds.
                'fabric_manager_interval_s': (1, 50),
            }
        )

    def test_all_are_in_the_manual(self):
        listed = fabric.list_opts()[fabric.GROUP]
        for option in fabric_options.OPTS:
            self.assertIn(option, listed)
