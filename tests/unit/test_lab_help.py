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

"""``tools/lab/lab --help``, for who does not know the lab yet."""

import pathlib
import subprocess

import testtools

_LAB = pathlib.Path(__file__).parents[2] / 'tools/lab/lab'

#: Python starts; nothing is installed in that time.
_SOON_S = 60


class TestLabHelp(testtools.TestCase):
    def test_nothing_is_made(self) -> None:
        for arguments, words in (
            ([], 'e2e'),
            (['--help'], 'e2e'),
            (['devices', '-h'], '--quick'),
        ):
            done = subprocess.run(
                [_LAB, *arguments],
                capture_output=True,
                check=True,
                text=True,
                timeout=_SOON_S,
            )
            self.assertIn(words, done.stdout)
            self.assertEqual('', done.stderr)
