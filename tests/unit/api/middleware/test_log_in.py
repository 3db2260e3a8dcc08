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

import webob

from nova_accel.api.middleware import log_in
from unit.api import base


class LogInTest(base.ApiTestCase):
    def answer(self, path: str, status: int = 401) -> webob.Response:
        refusal = webob.Response(
            status=status,
            json_body={'error': {'code': status}},
            headers={'WWW-Authenticate': 'Keystone uri="http://HOST"'},
        )
        refusal.content_type = 'application/json'
        application = log_in.factory({})(refusal)
        return webob.Request.blank(
            path, base_url='http://HOST/accelerator/v2'
        ).get_response(application)

    def test_says_it_in_the_spec_s_words(self) -> None:
        answer = self.answer(f'/fpga/{base.NOBODY}')
        self.assertEqual(
            (401, {'error': 'Log in'}), (answer.status_int, answer.json)
        )
        self.assertIn('HOST', answer.headers['WWW-Authenticate'])

    def test_leaves_all_else_alone(self) -> None:
        for path, status in (
            ('/devices', 401),
            (f'/fpga/{base.NOBODY}', 200),
            (f'/fpga/{base.NOBODY}', 503),
            ('/', 401),
        ):
            answer = self.answer(path, status)
            self.assertEqual(
                (status, {'error': {'code': status}}),
                (answer.status_int, answer.json),
            )
