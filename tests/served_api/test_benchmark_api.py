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

import testtools

from rig.benchmark import api as benchmark_api
from rig.benchmark import cycle as benchmark_cycle


class TestBenchmarkApi(testtools.TestCase):
    """Not how long it takes, but how much is asked of the database."""

    def test_statements_do_not_depend_on_what_else_is_there(self):
        found = benchmark_api.figures(
            benchmark_cycle.Scale([0, 200], [1, 2], seconds=0.1)
        )
        alone, crowded = found['others']['0'], found['others']['200']
        self.assertLessEqual(alone['statements_per_cycle'], 20)
        for name in ('statements_per_cycle', 'commits_per_cycle'):
            self.assertEqual(alone[name], crowded[name])
        self.assertEqual({'1', '2'}, crowded['cycles_per_s'].keys())
