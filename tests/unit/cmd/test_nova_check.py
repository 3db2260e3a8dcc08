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


from importlib import metadata

import fixtures

from unit.cmd import check_base


class TestRelease(check_base.CheckTestCase):
    def test_a_release_with_a_known_fault(self) -> None:
        self.sync()
        version = metadata.version
        with fixtures.MonkeyPatch(
            'nova_accel.cmd.nova_check.metadata.version',
            lambda name: '33.0.1' if name == 'nova' else version(name),
        ):
            self.assert_result(1, check_base.Check.NOVA, 'CVE-2026-46448')

    def test_the_release_of_the_tests(self) -> None:
        self.sync()
        self.assert_result(0, check_base.Check.NOVA, 'is installed here')
