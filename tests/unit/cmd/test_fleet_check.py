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

import fixtures

from nova_accel.testing import reports
from unit.cmd import base
from unit.cmd import check_base

Check = check_base.Check


class TestDouble(check_base.CheckTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.sync()
        reports.SimulatedHost(regions=(1,)).report()

    def test_nova_has_given_a_device_of_ours(self) -> None:
        self.passed_through['compute-1', '0000:00:00.0'] = base.SERVER
        self.assert_result(
            2, Check.DOUBLE, f'the server {base.SERVER}, but it is free'
        )

    def test_nova_gives_others(self) -> None:
        self.passed_through['compute-1', '0000:99:00.0'] = base.SERVER
        self.passed_through['compute-2', '0000:00:00.0'] = base.SERVER
        self.assertEqual(0, self.check()[0])

    def test_nova_does_not_answer(self) -> None:
        def fail(_uuids: set[str]) -> None:
            raise OSError('no route to the cell')

        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.cmd.cells.read', fail)
        )
        code, results = self.check()
        self.assertEqual(1, code)
        self.assertIn('no route', results[Check.DOUBLE]['details'])
