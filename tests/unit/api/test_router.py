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

import json

from unit.api import base


class RouterTest(base.ApiTestCase):
    def test_refuses_another_method_and_names_the_right_ones(self) -> None:
        answer = self.call('PUT', '/accelerator_requests')
        self.assertEqual(405, answer.status_int)
        self.assertEqual('GET, POST, PATCH, DELETE', answer.headers['Allow'])

    def test_knows_no_other_paths(self) -> None:
        for path in ('', '/', '/nothing', '/device_profiles/a/b'):
            answer = self.call('GET', path)
            self.assertEqual(404, answer.status_int)
            self.assertEqual(
                'Not Found', json.loads(answer.json['error_message'])['title']
            )

    def test_slash_at_the_end_says_nothing(self) -> None:
        for path in (
            '/device_profiles',
            '/devices',
            '/devices/6ba7b810-9dad-11d1-80b4-00c04fd430c8',
        ):
            answers = [self.call('GET', path + end) for end in ('', '/')]
            self.assertEqual(
                *((answer.status_int, answer.json) for answer in answers)
            )
        for path in ('/device_profiles', '/accelerator_requests'):
            answer = self.call('DELETE', f'{path}/')
            self.assertEqual(400, answer.status_int)
        self.assertEqual(404, self.call('GET', '/devices//').status_int)
