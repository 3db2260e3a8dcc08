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

from nova_accel.model.profiles import nova_faults


class TestFault(testtools.TestCase):
    def test_a_rebuild_that_skips_all_filters(self) -> None:
        for version in (
            '33.0.0',
            '33.0.1',
            '33.0.0.0rc1',
            '33.0.1.dev7',
            '33.0.1+distribution.2',
        ):
            self.assertIn('CVE-2026-46448', nova_faults.fault(version) or '')

    def test_no_fault_is_known(self) -> None:
        for version in ('33.0.2', '33.0.10', '33.1.0', '34.0.0', '133.0.1'):
            self.assertIsNone(nova_faults.fault(version), version)
