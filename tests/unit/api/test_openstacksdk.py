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

"""What the client of operators, and python-cyborgclient by it, asks for."""

import fixtures
from openstack import connection
from openstack import exceptions
from openstack.accelerator.v2 import _proxy
import testtools

from nova_accel.testing import accelerator_api
from nova_accel.testing import reports


class SdkTestCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        api = self.useFixture(
            accelerator_api.AcceleratorApi(['admin', 'service'])
        )
        self.host = reports.SimulatedHost(regions=(1, 1), functions=1)
        self.host.report()
        # Its own proxy would ask for the version documents, which this
        # address does not have.
        self.connection = connection.Connection(session=api.adapter.session)
        self.sdk = _proxy.Proxy(
            self.connection.session,
            service_type='accelerator',
            endpoint_override=api.adapter.endpoint_override,
            default_microversion='2.3',
        )


class DeviceTest(SdkTestCase):
    def test_list_with_filters(self) -> None:
        self.assertEqual(3, len(list(self.sdk.devices())))
        for type_, amount in (('FPGA', 2), ('QAT', 1), ('GPU', 0)):
            self.assertEqual(amount, len(list(self.sdk.devices(type=type_))))

    def test_list_in_pages(self) -> None:
        self.sdk.default_microversion = '2.4'
        found = [each.uuid for each in self.sdk.devices(limit=1)]
        self.assertEqual(3, len(set(found)))
        self.assertEqual(found, [each.uuid for each in self.sdk.devices()])

    def test_show(self) -> None:
        found = self.sdk.get_device(self.host.device_uuid())
        self.assertEqual(
            ('FPGA', '8086', 'PAC', 'compute-1', 'enabled'),
            (
                found.type,
                found.vendor,
                found.model,
                found.hostname,
                found.status,
            ),
        )
        self.assertRaises(
            exceptions.NotFoundException,
            self.sdk.get_device,
            self.host.node_uuid,
        )

    def test_disable_and_enable(self) -> None:
        found = self.sdk.get_device(self.host.device_uuid())
        self.sdk.disable_device(found)
        self.assertEqual(
            ['maintaining', 'enabled'],
            [each.status for each in self.sdk.devices(type='FPGA')],
        )
        self.sdk.enable_device(found)
        self.assertEqual('enabled', self.sdk.get_device(found.uuid).status)


class DeviceProfileTest(SdkTestCase):
    def test_its_life(self) -> None:
        created = self.sdk.create_device_profile(
            name='gold', groups=[{'resources:FPGA': 1}], description=None
        )
        for key in (created.uuid, 'gold'):
            found = self.sdk.get_device_profile(key)
            self.assertEqual([{'resources:FPGA': '1'}], found.groups)
        self.assertEqual(
            ['gold'], [each.name for each in self.sdk.device_profiles()]
        )
        self.sdk.delete_device_profile('gold', ignore_missing=False)
        self.assertRaises(
            exceptions.NotFoundException,
            self.sdk.delete_device_profile,
            created.uuid,
            ignore_missing=False,
        )


class AcceleratorRequestTest(SdkTestCase):
    def test_its_life(self) -> None:
        self.sdk.create_device_profile(
            name='gold', groups=[{'resources:FPGA': '1'}]
        )
        uuid = self.sdk.create_accelerator_request(
            device_profile_name='gold',
            device_profile_group_id=None,
            image_uuid=None,
        ).uuid
        place = {
            'hostname': self.host.hostname,
            'device_rp_uuid': self.host.rp_uuid(),
            'instance_uuid': self.host.node_uuid,
        }
        for state, operations in (
            (
                'Bound',
                [
                    {'op': 'add', 'path': f'/{name}', 'value': value}
                    for name, value in place.items()
                ],
            ),
            (
                'Unbound',
                [{'op': 'remove', 'path': f'/{name}'} for name in place],
            ),
        ):
            self.sdk.patch_accelerator_request(uuid, operations)
            self.assertEqual(
                state, self.sdk.get_accelerator_request(uuid).state
            )
        self.assertEqual(1, len(list(self.sdk.accelerator_requests())))
        self.sdk.delete_accelerator_request(uuid, ignore_missing=False)
        self.assertEqual([], list(self.sdk.accelerator_requests()))


class DeployableTest(SdkTestCase):
    def test_its_programming_is_understood(self) -> None:
        [first, *_more] = self.sdk.deployables()
        self.assertEqual('region0', self.sdk.get_deployable(first.id).name)
        error = self.assertRaises(
            exceptions.BadRequestException,
            self.sdk.patch_deployable,
            first.id,
            [
                {
                    'path': '/program',
                    'op': 'replace',
                    'value': [{'image_uuid': 'xyz'}],
                }
            ],
        )
        assert error.response is not None
        self.assertIn('Expected a uuid but received xyz', error.response.text)


class AttributeTest(SdkTestCase):
    def test_its_life(self) -> None:
        created = self.sdk.create_attribute(
            deployable_id='1', key='rack', value='7'
        )
        found = self.sdk.get_attribute(created.uuid)
        self.assertEqual(
            (1, 'rack', '7'), (found.deployable_id, found.key, found.value)
        )
        self.assertIn('rack', [each.key for each in self.sdk.attributes()])
        self.sdk.delete_attribute(created.uuid, ignore_missing=False)
        self.assertRaises(
            exceptions.NotFoundException, self.sdk.get_attribute, created.uuid
        )
