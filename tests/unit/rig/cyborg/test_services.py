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
from oslotest import base

from nova_accel import exceptions
from rig.cyborg import services


class TestCyborg(base.BaseTestCase):
    def test_its_pipeline_is_the_deployed_one_without_tokens(self) -> None:
        self.assertEqual(
            'pipeline = cors http_proxy_to_wsgi request_id api_v2\n',
            services.without_tokens(
                'pipeline = cors http_proxy_to_wsgi request_id authtoken '
                'api_v2\n'
            ),
        )

    def test_says_what_makes_its_environment(self) -> None:
        self.useFixture(fixtures.EnvironmentVariable('NOVA_ACCEL_CYBORG_VENV'))
        fault = self.assertRaises(
            exceptions.ConfigurationError, services.Cyborg, 'mysql://', 1
        )
        self.assertIn('tools/bench api --peer', str(fault))
