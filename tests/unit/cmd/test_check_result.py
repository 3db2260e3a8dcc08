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

from nova_accel.cmd import check_result


class TestNamed(testtools.TestCase):
    def test_ten_are_named(self) -> None:
        names = [f'n{number}' for number in range(12)]
        self.assertEqual('n0', check_result.named(names[:1]))
        self.assertEqual(', '.join(names[:10]), check_result.named(names[:10]))
        self.assertEqual(
            f'{", ".join(names[:10])} and 2 more', check_result.named(names)
        )

    def test_a_name_does_not_move_the_cursor(self) -> None:
        self.assertEqual(
            r'a\x1b[2J',
            check_result.warning(check_result.named(['a\x1b[2J'])).details,
        )
