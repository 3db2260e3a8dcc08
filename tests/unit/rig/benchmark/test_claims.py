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

from rig.benchmark import claims


class TestClaims(testtools.TestCase):
    def test_a_few(self):
        found = claims.measure(40)
        self.assertLessEqual(40, found['boots'])
        self.assertEqual((0, 0), (found['refused'], found['doubles']))

    def test_each_number_is_scheduled_at_once(self):
        self.assertEqual(
            set(range(8, 33)),
            {
                sum(
                    claims._HOSTS[int(name.removeprefix('host'))]
                    for name in claims._some_hosts()
                )
                for _time in range(1000)
            },
        )
