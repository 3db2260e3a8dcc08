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

import importlib
from unittest import mock

import testtools

from nova_accel.cmd import manage
from nova_accel.cmd import programs
from nova_accel.cmd import status


class TestPrograms(testtools.TestCase):
    def test_each_is_started(self) -> None:
        for module, start in (
            (manage, programs.manage),
            (status, programs.status),
        ):
            with mock.patch.object(
                module, 'main', autospec=True, return_value=7
            ):
                self.assertEqual(7, start())

    def test_without_the_services(self) -> None:
        missing = ModuleNotFoundError("No module named 'nova'", name='nova')
        for name, start in (
            ('nova-accel-manage', programs.manage),
            ('nova-accel-status', programs.status),
        ):
            with mock.patch.object(
                importlib, 'import_module', autospec=True, side_effect=missing
            ):
                ended = self.assertRaises(SystemExit, start)
            self.assertEqual(
                f'{name} needs "nova", which this machine lacks. Run it where '
                "Nova's services run, or install nova-accel[services].",
                ended.code,
            )
