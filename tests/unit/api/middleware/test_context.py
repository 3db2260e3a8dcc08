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

from collections.abc import Callable
from typing import Any

import fixtures
from nova.api import auth
import testtools
import webob
import webob.dec

from nova_accel.api.http import caller
from nova_accel.api.middleware import context


class TestContext(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())

    def context_of(
        self,
        filter_: Callable[..., Any] = context.Context,
        **headers: str,
    ) -> webob.Response:
        """The answer, which has the caller that reached the application.

        :param filter_: the one that has found the caller out
        """

        @webob.dec.wsgify
        def application(request: webob.Request) -> webob.Response:
            found = caller.of(request.environ)
            return webob.Response(
                json_body={
                    name: getattr(found, name)
                    for name in (
                        'user_id',
                        'project_id',
                        'roles',
                        'service_roles',
                        'is_admin',
                    )
                }
            )

        return webob.Request.blank(
            '/devices',
            headers={
                name.replace('_', '-'): value
                for name, value in headers.items()
            },
        ).get_response(filter_(application))

    def test_says_who_asks(self) -> None:
        answer = self.context_of(
            X_User_Id='u1',
            X_Project_Id='p1',
            X_Roles='member,reader',
            X_Service_Roles='service',
        )
        self.assertEqual(
            {
                'user_id': 'u1',
                'project_id': 'p1',
                'roles': ['member', 'reader'],
                'service_roles': ['service'],
                'is_admin': False,
            },
            answer.json,
        )

    def test_roles_alone_say_who_is_an_administrator(self) -> None:
        answer = self.context_of(X_User_Id='u1', X_Roles='admin')
        self.assertEqual(
            (['admin'], False), (answer.json['roles'], answer.json['is_admin'])
        )

    def test_a_paste_file_of_an_earlier_release(self) -> None:
        """It has Nova's own filter, which asks Nova's policy."""
        self.useFixture(
            fixtures.MockPatch('nova.policy.check_is_admin', return_value=True)
        )
        answer = self.context_of(
            auth.NovaKeystoneContext, X_User_Id='u1', X_Roles='reader'
        )
        self.assertEqual(
            ('u1', ['reader']), (answer.json['user_id'], answer.json['roles'])
        )

    def test_nobody_is_refused(self) -> None:
        self.assertEqual(401, self.context_of(X_Roles='admin').status_int)
