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

"""What the client of operators makes of devices."""

from openstack import connection
from openstack import exceptions
from openstack.accelerator.v2 import _proxy
import testtools

from nova_accel.testing import accelerator_api
from nova_accel.testing import reports


class DeviceTest(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        api = self.useFixture(accelerator_api.AcceleratorApi(['admin']))
        self.host = reports.SimulatedHost(regions=(1, 1), functions=1)
        self.host.report()
        # Its own proxy would ask for the version documents, which this
        # address does not have.
        self.connection = connection.Connection(session=api.adapter.session)
        self.sdk = _proxy.Proxy(
            self.connection.session, service_type='accelerator',
            endpoint_override=api.adapter.endpoint_override,
            default_microversion='2.3')

    def test_list_with_filters(self) -> None:
        self.assertEqual(3, len(list(self.sdk.devices())))
        for type_, amount in (('FPGA', 2), ('QAT', 1), ('GPU', 0)):
            self.assertEqual(
                amount, len(list(self.sdk.devices(type=type_))))

    def test_show(self) -> None:
        found = self.sdk.get_device(self.host.device_uuid())
        self.assertEqual(
            ('FPGA', '8086', 'PAC', 'compute-1', 'enabled'),
            (found.type, found.vendor, found.model, found.hostname,
             found.status))
        self.assertRaises(exceptions.NotFoundException, self.sdk.get_device,
                          self.host.node_uuid)

    def test_disable_and_enable(self) -> None:
        found = self.sdk.get_device(self.host.device_uuid())
        self.sdk.disable_device(found)
        self.assertEqual(
            ['maintaining', 'enabled'],
            [each.status for each in self.sdk.devices(type='FPGA')])
        self.sdk.enable_device(found)
        self.assertEqual('enabled', self.sdk.get_device(found.uuid).status)
