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
import testtools
import webob
import webob.dec

from nova_accel.api import context
from nova_accel.api import request as request_module


class TestContext(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())

    def context_of(self, **headers: str) -> webob.Response:
        """The answer, which has the context that reached the application."""

        @webob.dec.wsgify
        def application(request: webob.Request) -> webob.Response:
            found = request_module.context(request)
            return webob.Response(
                json_body={
                    name: getattr(found, name)
                    for name in (
                        'user_id',
                        'project_id',
                        'roles',
                        'service_roles',
                        'is_admin',
                        'service_catalog',
                    )
                }
            )

        return webob.Request.blank(
            '/devices',
            headers={
                name.replace('_', '-'): value
                for name, value in headers.items()
            },
        ).get_response(context.factory({})(application))

    def test_says_who_asks(self) -> None:
        answer = self.context_of(
            X_User_Id='u1',
            X_Project_Id='p1',
            X_Roles='member,reader',
            X_Service_Roles='service',
            X_Service_Catalog='[{"type": "image"}, {"type": "other"}]',
        )
        self.assertEqual(
            {
                'user_id': 'u1',
                'project_id': 'p1',
                'roles': ['member', 'reader'],
                'service_roles': ['service'],
                'is_admin': False,
                'service_catalog': [{'type': 'image'}],
            },
            answer.json,
        )

    def test_roles_alone_say_who_is_an_administrator(self) -> None:
        answer = self.context_of(X_User_Id='u1', X_Roles='admin')
        self.assertEqual(
            (['admin'], False), (answer.json['roles'], answer.json['is_admin'])
        )

    def test_nobody_is_refused(self) -> None:
        self.assertEqual(401, self.context_of(X_Roles='admin').status_int)

    def test_a_catalog_that_is_no_json(self) -> None:
        self.assertEqual(
            500,
            self.context_of(X_User_Id='u1', X_Service_Catalog='[{').status_int,
        )
