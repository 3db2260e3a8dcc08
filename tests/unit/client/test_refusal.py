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

import types

from keystoneauth1 import exceptions as ks_exceptions
from oslo_config import cfg
from oslo_config import fixture as config_fixture
import testtools

from nova_accel.client import refusal
from nova_accel.conf import CONF


class TestUser(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.config = self.useFixture(config_fixture.Config(CONF))

    def told(self) -> str:
        return refusal.unreachable(ks_exceptions.Unauthorized())

    def test_another_section_has_the_credentials(self) -> None:
        self.config.register_opt(cfg.StrOpt('username'), 'service_user')
        self.config.load_raw_values('service_user', username='nova')
        self.config.load_raw_values(
            'nova_accel_client', auth_section='service_user'
        )
        self.assertIn('the user nova of [service_user] (401)', self.told())

    def test_credentials_without_a_name(self) -> None:
        self.assertIn('the user of [nova_accel_client] (401)', self.told())


class TestAnswered(testtools.TestCase):
    def test_an_answer_that_is_not_the_apis(self) -> None:
        def no_json() -> None:
            raise ValueError('a page in HTML')

        for status, words in ((404, ''), (403, 'may lack the role service')):
            response = types.SimpleNamespace(
                status_code=status,
                url='http://proxy/v2',
                request=types.SimpleNamespace(method='GET'),
                json=no_json,
            )
            told = refusal.answered(response)
            self.assertIn(f'answered {status} to GET http://proxy/v2', told)
            self.assertIn(words, told)
