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

from keystoneauth1 import session as ks_session
from nova import context as nova_context
from oslo_config import fixture as config_fixture
from oslo_context import context as oslo_context
import testtools

from nova_accel import exceptions
from nova_accel.client import service_user
from nova_accel.conf import CONF
from rig.serving import nova_conf
from rig.serving import wsgi_server
from rig.stubs import keystone
from unit import nova_user


class TestContext(testtools.TestCase):
    def configure(self, url):
        self.addCleanup(nova_conf.forget_credentials)
        self.useFixture(config_fixture.Config(CONF)).load_raw_values(
            'nova_accel_client', **nova_conf.credentials(url, nova_user.NOVA)
        )

    def test_asks_as_the_hosts_user_and_keeps_its_token(self):
        server = self.useFixture(wsgi_server.WsgiServer())
        self.configure(
            server.mount('/', keystone.Keystone(server.url, [nova_user.NOVA]))
        )
        context = service_user.context()
        session = ks_session.Session()
        auth = context.get_auth_plugin()
        self.assertEqual(nova_user.NOVA.id, auth.get_user_id(session))
        token = auth.get_token(session)
        self.assertEqual(token, context.get_auth_plugin().get_token(session))
        self.assertTrue(context.is_admin)

    def test_leaves_the_callers_context_alone(self):
        self.configure('http://127.0.0.1:1')
        caller = nova_context.RequestContext('user', 'project', overwrite=True)
        service_user.context()
        self.assertIs(caller, oslo_context.get_current())

    def test_no_credentials(self):
        error = self.assertRaises(
            exceptions.ConfigurationError, service_user.context
        )
        self.assertIn('[nova_accel_client] auth_type', str(error))
