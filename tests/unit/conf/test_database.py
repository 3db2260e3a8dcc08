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

from nova_accel.conf import database

#: Seconds after which the API's clients give up.
CLIENTS_WAIT_S = 30


class TestLimits(testtools.TestCase):
    def test_an_answer_comes_before_its_client_gives_up(self) -> None:
        default = {
            option.name: option.default for option in database.LIMIT_OPTS
        }
        self.assertLess(
            default['deadline_s'] + 2 * default['answer_timeout_s'],
            CLIENTS_WAIT_S,
        )
        self.assertLess(default['lock_wait_s'], default['deadline_s'])
