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


from nova_accel.conf import metrics
from unit.conf import options_case


class TestMetrics(options_case.OptionsTestCase):
    module = metrics

    def test_off_by_default(self) -> None:
        self.assertEqual([], self.options.nova_accel.metrics_allowed_networks)

    def test_bounds(self) -> None:
        self.assert_bounds(
            {
                'metrics_kept_s': (1, 600),
                'metrics_max_series': (1, 1000000),
                'metrics_window_s': (60, 604800),
            }
        )
