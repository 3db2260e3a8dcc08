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
        self.assertEqual('', self.shown(False))
