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

import configparser

import ddt
from oslotest import base

from nova_accel import exceptions
from rig.serving import api
from rig.serving import nova_conf


@ddt.ddt
class TestServedApi(base.BaseTestCase):
    @ddt.data('127.0.0.1', '127.8.0.1', '::1')
    def test_loopback(self, address):
        api.check_loopback(address)

    @ddt.data('0.0.0.0', '192.0.2.1', '::', 'localhost.example.com', '')
    def test_others_could_ask(self, address):
        self.assertRaises(
            exceptions.ConfigurationError, api.check_loopback, address
        )

    def test_its_pipeline_is_the_deployed_one_without_tokens(self):
        deployed, served = (
            configparser.RawConfigParser(strict=False) for _file in range(2)
        )
        deployed.read(nova_conf.api_paste_path())
        served.read_string(api.paste_without_tokens())
        with_tokens, without = (
            file['pipeline:nova_accel_pool_api']['pipeline'].split()
            for file in (deployed, served)
        )
        self.assertEqual(
            [name for name in with_tokens if name != 'authtoken'], without
        )
        self.assertLess(len(without), len(with_tokens))
