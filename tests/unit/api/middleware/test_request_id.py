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
from nova.api import compute_req_id
from oslo_context import context
import testtools
import webob
import webob.dec

from nova_accel.api.middleware import request_id
from unit.api import base

_GIVEN = 'req-7710da71-3bec-4804-a07a-d3ddcd65933c'


class TestRequestId(testtools.TestCase):
    def ask(self, factory: object, **headers: str) -> webob.Response:
        """The answer, which has what reached the application."""

        @webob.dec.wsgify
        def application(request: webob.Request) -> webob.Response:
            return webob.Response(
                json_body={
                    name: value
                    for name, value in request.environ.items()
                    if name.startswith('openstack.')
                }
            )

        return webob.Request.blank(
            '/devices',
            headers={
                name.replace('_', '-'): value
                for name, value in headers.items()
            },
        ).get_response(factory({})(application))

    def test_does_what_novas_filter_does(self) -> None:
        for given in (_GIVEN, 'forged\nline', ''):
            found, nova = (
                self.ask(factory, X_Openstack_Request_Id=given)
                for factory in (
                    request_id.factory,
                    compute_req_id.ComputeReqIdMiddleware.factory,
                )
            )
            for answer in (found, nova):
                identity = answer.json['openstack.request_id']
                self.assertRegex(identity, '^req-[0-9a-f-]{36}$')
                self.assertEqual(
                    [identity] * 2,
                    [
                        answer.headers[f'X-{name}-Request-Id']
                        for name in ('OpenStack', 'Compute')
                    ],
                )
            self.assertEqual(nova.json.keys(), found.json.keys())
            self.assertEqual(
                nova.json.get('openstack.global_request_id'),
                found.json.get('openstack.global_request_id'),
            )
            self.assertEqual(list(nova.headers), list(found.headers))

    def test_each_request_has_its_own(self) -> None:
        self.assertNotEqual(
            *(
                self.ask(request_id.factory).json['openstack.request_id']
                for _request in range(2)
            )
        )

    def test_no_log_names_the_caller_before(self) -> None:
        """Neither before the next caller is known, nor after a fault."""
        names: list[object] = []

        @webob.dec.wsgify
        def application(request: webob.Request) -> webob.Response:
            names.append(_logged('user_id'))
            base.a_caller()
            names.append(_logged('user_id'))
            if request.path == '/fails':
                raise ZeroDivisionError
            return webob.Response()

        served = request_id.factory({})(application)
        for path in ('/', '/fails', '/'):
            request = webob.Request.blank(path)
            if path == '/fails':
                self.assertRaises(
                    ZeroDivisionError, request.get_response, served
                )
            else:
                request.get_response(served)
            self.assertIsNone(_logged('user_id'))
            self.assertEqual('-', _logged('request_id'))
        self.assertEqual([None, 'user'] * 3, names)


def _logged(name: str) -> object:
    """What a line of the log has of the thread's context."""
    current = context.get_current()
    assert current is not None
    return getattr(current, name)
