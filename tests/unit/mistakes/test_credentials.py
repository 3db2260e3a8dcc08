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

"""Mistakes in ``[nova_accel_client]``: how a host reaches the API."""

from collections.abc import Mapping

import fixtures
from oslo_config import fixture as config_fixture
import testscenarios

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.conf import CONF
from nova_accel.testing import accelerator_api as api_fixture
from rig.serving import nova_conf
from rig.serving import wsgi_server
from rig.stubs import keystone
from unit import nova_user
from unit.mistakes import base

_mistake = base.mistake


class CredentialsTestCase(base.MistakeTestCase):
    """A Keystone that knows one user."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.server = self.useFixture(wsgi_server.WsgiServer())
        self.keystone = self.server.mount(
            '/identity',
            keystone.Keystone(f'{self.server.url}/identity', [nova_user.NOVA]),
        )
        self.addCleanup(nova_conf.forget_credentials)

    def configure(self, **options: str | None) -> None:
        self.useFixture(config_fixture.Config(CONF)).load_raw_values(
            'nova_accel_client',
            **{
                name: value
                for name, value in {
                    **nova_conf.credentials(self.keystone, nova_user.NOVA),
                    'endpoint_override': f'{self.server.url}/accelerator',
                    # No one waits for the tests.
                    'status_code_retries': '0',
                    'connect_retries': '0',
                    **options,
                }.items()
                if value is not None
            },
        )

    def call(self) -> str:
        """Why the host cannot use the API."""
        api = accelerator_api.AcceleratorApi(
            accelerator_api.adapter_from_conf(), 'compute-1'
        )
        error = self.assertRaises(exceptions.ServiceUnavailable, api.bindings)
        self.assertNotIn('compute-1', error.public)
        self.assertNotIn(nova_user.NOVA.name, error.public)
        self.assertNotIn(nova_user.NOVA.password, str(error))
        return str(error)


class TestOptions(testscenarios.WithScenarios, CredentialsTestCase):
    """nova-compute does not start."""

    options: Mapping[str, str | None]

    scenarios = [
        _mistake(
            'none',
            '[nova_accel_client] auth_type (or auth_section) is not set',
            'nova-compute needs credentials',
            options={'auth_type': None},
        ),
        _mistake(
            'a kind that does not exist',
            '[nova_accel_client] auth_type = pasword does not exist',
            'set it to password, or another one of ',
            options={'auth_type': 'pasword'},
        ),
        _mistake(
            'no URL of Keystone',
            '[nova_accel_client]: ',
            'auth_url',
            options={'auth_url': None},
        ),
    ]

    def test_it_is_told(self) -> None:
        self.configure(**self.options)
        error = self.assertRaises(
            exceptions.ConfigurationError, accelerator_api.adapter_from_conf
        )
        self.assert_told(str(error))


class TestKeystone(CredentialsTestCase):
    culprit = 'Keystone refuses the user nova of [nova_accel_client] (401)'
    cure = 'correct username, password, project and domains there'

    def test_a_wrong_password(self) -> None:
        self.configure(password='wrong')
        self.assert_told(self.call())


class TestAnswers(testscenarios.WithScenarios, CredentialsTestCase):
    """The API, or what is in its place, refuses the token."""

    status: str

    scenarios = [
        _mistake(
            'another Keystone',
            'answered 401 to GET http',
            'the token of the user nova of [nova_accel_client]. Its '
            '[keystone_authtoken] has to name the same Keystone',
            status='401 Unauthorized',
        ),
        _mistake(
            'a proxy',
            'answered 502 to GET http',
            '/accelerator/hosts/compute-1/instances',
            status='502 Bad Gateway',
        ),
    ]

    def test_it_is_told(self) -> None:
        def refuse(_environ, start_response):  # type: ignore[no-untyped-def]
            start_response(self.status, [('Content-Type', 'text/plain')])
            return [b'']

        self.server.mount('/accelerator', refuse)
        self.configure()
        self.assert_told(self.call())


class TestRole(base.MistakeTestCase):
    culprit = 'answered 403 to GET http'
    cure = (
        'nova_accel:binding:list, which needs the role service. Give that '
        'role to the user of [nova_accel_client]'
    )

    def test_a_user_without_the_role(self) -> None:
        api = self.useFixture(api_fixture.AcceleratorApi(roles=['member']))
        error = self.assertRaises(
            exceptions.ServiceUnavailable, api.client('compute-1').bindings
        )
        self.assert_told(str(error))
