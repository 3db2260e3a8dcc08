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

from nova import context as nova_context
import testtools
import webob.exc

from nova_accel.api.http import caller
from unit.api import base

_REQUEST = {
    **base.caller_headers(base.MEMBER, service_roles=base.SERVICE),
    'HTTP_X_AUTH_TOKEN': 'token',
    'HTTP_X_USER_NAME': 'demo',
    'HTTP_X_USER_DOMAIN_ID': 'domain',
    'HTTP_X_SERVICE_USER_NAME': 'nova',
    'HTTP_OPENSTACK_SYSTEM_SCOPE': 'all',
    'HTTP_X_SERVICE_CATALOG': '[{"type": "image"}, {"type": "other"}]',
    'REMOTE_ADDR': '192.0.2.1',
    'keystone.token_auth': object(),
    'openstack.request_id': 'req-1',
    'openstack.global_request_id': 'req-2',
}


class TestCaller(testtools.TestCase):
    def test_rules_see_what_they_see_in_nova(self) -> None:
        self.assertEqual(
            {
                **nova_context.RequestContext.from_environ(
                    _REQUEST, is_admin=False
                ).to_policy_values(),
                'user_name': 'demo',
                'service_user_name': 'nova',
            },
            caller.of({**_REQUEST}).to_policy_values(),
        )

    def test_for_nova(self) -> None:
        found = caller.of({**_REQUEST}).for_nova()
        expected = nova_context.RequestContext.from_environ(
            _REQUEST,
            is_admin=False,
            service_catalog=[{'type': 'image'}],
            remote_address='192.0.2.1',
            timestamp=found.timestamp,
        )
        self.assertEqual(expected.to_dict(), found.to_dict())
        self.assertEqual(base.SERVICE, tuple(found.service_roles))
        self.assertIs(_REQUEST['keystone.token_auth'], found.get_auth_plugin())

    def test_its_identity_is_the_same_for_nova(self) -> None:
        """Also if no one has given the request one."""
        found = base.a_caller()
        self.assertEqual(found.request_id, found.for_nova().request_id)

    def test_a_catalog_that_is_no_json(self) -> None:
        self.assertRaises(
            webob.exc.HTTPInternalServerError,
            base.a_caller(HTTP_X_SERVICE_CATALOG='[{').for_nova,
        )
