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

"""The page of the manual with the help of each command."""

import fnmatch
from importlib import metadata
import pathlib
import re

import testtools

from nova_accel.cmd import manage

_PAGE = pathlib.Path(__file__).parents[2] / 'doc/source/reference/commands.rst'


def _commands(group: str) -> set[str]:
    points = metadata.distribution('nova_accel').entry_points
    return {
        point.name.replace('_', ' ') for point in points.select(group=group)
    }


class TestCommandHelp(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.page = _PAGE.read_text()

    def test_commands_of_manage(self) -> None:
        """The page shows those that are entry points."""
        self.assertIn('.. autoprogram-cliff:: nova_accel.manage\n', self.page)
        self.assertEqual(
            _commands('nova_accel.manage'),
            # These two are cliff's own.
            {*manage.Manage().command_manager.commands} - {'complete', 'help'},
        )

    def test_commands_of_openstackclient(self) -> None:
        patterns = re.findall(':command: (.+)', self.page)
        commands = _commands('openstack.accelerator.v2')
        self.assertIn('accelerator fleet list', commands)
        for command in commands:
            self.assertTrue(
                any(fnmatch.fnmatch(command, each) for each in patterns),
                command,
            )
