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

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api import app
from unit.api import base


class FactoryTest(base.ApiTestCase):
    def test_does_not_start_without_a_database(self) -> None:
        conf.CONF.set_override('connection', None, 'nova_accel_database')
        error = self.assertRaises(
            exceptions.ConfigurationError, app.factory, {}
        )
        self.assertIn('[nova_accel_database] connection', str(error))

    def test_versions_are_public(self) -> None:
        request = webob.Request.blank('/v2')
        answer = request.get_response(app.versions_factory({}))
        self.assertEqual(200, answer.status_int)

    def test_only_versions_are_public(self) -> None:
        request = webob.Request.blank('/v2/device_profiles')
        answer = request.get_response(app.versions_factory({}))
        self.assertEqual(404, answer.status_int)
