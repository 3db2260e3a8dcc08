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


import pathlib

import fixtures
from oslo_config import cfg
import testtools

from nova_accel.cmd import configuration_fault


class TestTold(testtools.TestCase):
    def test_which_line_it_is_and_nothing_of_it(self) -> None:
        directory = self.useFixture(fixtures.TempDir()).path
        path = pathlib.Path(directory) / 'nova.conf'
        for line in (
            'connection my@secret',
            '[secret',
            '= secret',
            ' : secret:1, secret',
        ):
            path.write_text(f'[DEFAULT]\n\n{line}\n')
            error = self.assertRaises(
                cfg.ConfigFileParseError,
                cfg.ConfigOpts(),
                [],
                default_config_files=[str(path)],
                default_config_dirs=[],
            )
            self.assertEqual(
                f'Failed to parse {path}: line 3 is no "option = value"',
                configuration_fault.told(error),
            )
