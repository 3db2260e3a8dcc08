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

from oslo_config import cfg
import testtools

from nova_accel import fabric_options


class TestFabricOptions(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.options = cfg.ConfigOpts()
        self.options.register_opts(fabric_options.OPTS, fabric_options.GROUP)
        self.options([])

    def set(self, name, value):
        self.options.set_override(name, value, fabric_options.GROUP)
        return self.options[fabric_options.GROUP][name]

    def test_endpoints(self):
        for value in (
            '127.0.0.1:6666',
            '10.0.0.1',
            'fm.example.org:7777',
            '[2001:db8::1]:6666',
            '/run/nvidia-fabricmanager/socket',
        ):
            self.assertEqual(value, self.set('fabric_manager', value))

    def test_no_endpoints(self):
        for value in (
            '',
            'a b',
            '--unix-domain-socket',
            'host:port',
            'host:123456',
            '/run/a b',
            '/run/a\n',
            'a;reboot',
            'x' * 300,
            '/' + 'x' * 300,
        ):
            self.assertRaises(ValueError, self.set, 'fabric_manager', value)

    def test_by_default_nobody_is_asked(self):
        options = self.options[fabric_options.GROUP]
        self.assertIsNone(options.fabric_manager)
        self.assertEqual('fmpm', options.fabric_manager_command)
        self.assertEqual('libnvfm.so.1', options.fabric_manager_library)
