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
import webob

from nova_accel.api.http import warning


class TestAdd(testtools.TestCase):
    def warnings(self, *texts: str) -> list[str]:
        response = webob.Response()
        warning.add(response, texts)
        return [str(each) for each in response.headers.getall('Warning')]

    def test_each_has_a_header(self) -> None:
        self.assertEqual([], self.warnings())
        self.assertEqual(
            ['299 nova_accel "a"', '299 nova_accel "b"'],
            self.warnings('a', 'b'),
        )

    def test_what_no_header_may_have(self) -> None:
        self.assertEqual(
            [r'299 nova_accel "\"a\" \\ \\r\\n?"'],
            self.warnings('"a" \\ \r\n\u0436'),
        )

    def test_no_proxy_refuses_them(self) -> None:
        found = self.warnings(*['x' * 9999] * 99)
        self.assertLess(sum(map(len, found)), 4800)
