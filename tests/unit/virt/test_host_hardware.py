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
from nova_accel.model.providers import host_view
from nova_accel.testing import devices
from nova_accel.virt import host_hardware
from unit.virt import started

CONF = nova_conf.CONF


class TestOf(started.StartedTestCase):
    def of_host(self):
        host = self.libvirt.host
        return host_hardware.of(
            host,
            host_view.Node(
                host.get_hostname(),
                host.get_node_uuid(),
                started.SERVICE_HOST,
            ),
        )

    def test_each_line_has_its_driver(self):
        hardware = self.of_host()
        self.assertEqual(len(devices.DEVICE_SPEC), len(hardware.specs))
        for spec, line in zip(
            hardware.specs, devices.DEVICE_SPEC, strict=True
        ):
            self.assertEqual(json.loads(line)['driver'], spec.driver)
            self.assertIn(spec.driver, hardware.drivers)

    def test_no_such_driver(self):
        line = json.dumps({'vendor_id': '8086', 'driver': 'none'})
        CONF.set_override('device_spec', [line], 'nova_accel')
        error = self.assertRaises(exceptions.InvalidDeviceSpec, self.of_host)
        self.assertIn(line, str(error))
