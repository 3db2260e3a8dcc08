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

import io

from rich import console
import testtools
from testtools import matchers

from rig.benchmark import progress_bar


class TestShown(testtools.TestCase):
    def shown(self, is_terminal):
        output = io.StringIO()
        with progress_bar.shown(
            'Boots',
            40,
            console.Console(file=output, force_terminal=is_terminal),
        ) as tell:
            for done in (8, 50):
                tell(done)
        return output.getvalue()

    def test_on_a_terminal(self):
        self.assertIn('Boots', self.shown(True))
        self.assertIn('40/40', self.shown(True))

    def test_elsewhere(self):
        first, last = self.shown(False).splitlines()
        self.assertThat(first, matchers.StartsWith('Boots: 8/40, '))
        self.assertThat(last, matchers.StartsWith('Boots: 40/40, '))

    def test_a_part_has_one_line(self):
        output = io.StringIO()
        with progress_bar.shown(
            'Boots', 1000, console.Console(file=output)
        ) as tell:
            for done in range(1, 1001):
                tell(done)
        self.assertEqual(20, len(output.getvalue().splitlines()))
