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

import json

from nova import conf as nova_conf

from nova_accel import exceptions
from unit.virt import started

CONF = nova_conf.CONF


class TestStart(started.StartedTestCase):

    def test_a_malformed_line_stops_the_start(self):
        line = json.dumps({'driver': 'pci'})
        CONF.set_override('device_spec', [line], 'nova_accel')
        error = self.assertRaises(exceptions.InvalidDeviceSpec, self.start)
        self.assertIn(line, str(error))

    def test_the_start_does_not_wait_for_the_api(self):
        self.api.refuse = True
        host = self.start()
        vgpus, regions, functions = 16, 2, 8
        self.assertEqual(vgpus + regions + functions,
                         len(host._publisher.view.drivers))
        CONF.set_override('publish_timeout_s', 0, 'nova_accel')
        self.addCleanup(
            CONF.clear_override, 'publish_timeout_s', 'nova_accel')
        self.assertRaises(exceptions.CyborgAgentUnavailable,
                          host.os_acc.acquire, None, 'qat', [])
