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

"""Each call of openstacksdk's proxy, through keystone and nova-api."""

import inspect

from openstack import config
from openstack import connection
from openstack import exceptions
from openstack.accelerator.v2 import _proxy
from oslo_utils import uuidutils
import testtools

from served_api import base

#: Of the base class, of no resource.
_WAITS = {'wait_for_status', 'wait_for_delete'}


class SdkTestCase(base.ClientTestCase):
    def setUp(self):
        super().setUp()
        # What a proxy makes refers to its connection, weakly.
        self.connections = []
        self.sdk, self.service = (
            self.proxy(name) for name in ('admin', 'nova')
        )

    def proxy(self, name):
        regions = config.OpenStackConfig(config_files=[str(self.clouds)])
        cloud = connection.Connection(config=regions.get_one(cloud=name))
        self.connections.append(cloud)
        # Nova's fixtures replace what makes cloud.accelerator.
        return _proxy.Proxy(
            cloud.session,
            service_type='accelerator',
            default_microversion='2.3',
        )

    def names(self, resources):
        return [resource.name for resource in resources]


class TestProxy(SdkTestCase):
    def test_device_profiles(self):
        made = self.sdk.create_device_profile(name='gold', groups=base.GROUPS)
        self.assertEqual(['gold'], self.names(self.sdk.device_profiles()))
        self.assertEqual('gold', self.sdk.get_device_profile(made.uuid).name)
        self.sdk.delete_device_profile(made.uuid, ignore_missing=False)
        self.assertEqual([], self.names(self.sdk.device_profiles()))
        self.assertRaises(
            exceptions.NotFoundException,
            self.sdk.get_device_profile,
            made.uuid,
        )

    def test_devices(self):
        [uuid] = [device.uuid for device in self.sdk.devices(type='FPGA')][:1]
        for change, status in (
            (self.sdk.disable_device, 'maintaining'),
            (self.sdk.enable_device, 'enabled'),
        ):
            change(uuid)
            self.assertEqual(status, self.sdk.get_device(uuid).status)

    def test_deployables(self):
        uuid = self.a_deployable()['uuid']
        self.assertIn(uuid, [each.id for each in self.sdk.deployables()])
        self.assertEqual(uuid, self.sdk.get_deployable(uuid).id)

    def test_deployable_is_programmed(self):
        """Its other name, update_deployable, calls itself in 4.22."""
        self.need('/deployables/{uuid}/program/{same_uuid}', 'PATCH')
        [region] = self.regions('host1')[:1]
        image = self.upload(region, b'bits')
        self.sdk.patch_deployable(
            self.a_deployable()['uuid'],
            [
                {
                    'op': 'replace',
                    'path': '/program',
                    'value': [{'image_uuid': image}],
                }
            ],
        )
        self.assertEqual(1, len(self.cards.programmed))

    def test_requests(self):
        self.need('/accelerator_requests/{uuid}', 'PATCH', 'DELETE')
        self.create_profile('gold', base.GROUPS)
        place = {
            'hostname': 'host1',
            'device_rp_uuid': self.a_deployable()['rp_uuid'],
            'instance_uuid': uuidutils.generate_uuid(),
        }
        made = self.sdk.create_accelerator_request(device_profile_name='gold')
        self.assertEqual(
            [made.uuid],
            [each.uuid for each in self.sdk.accelerator_requests()],
        )
        for change, operation, state in (
            (self.service.patch_accelerator_request, 'add', 'Bound'),
            (self.service.update_accelerator_request, 'remove', 'Unbound'),
        ):
            change(
                made.uuid,
                [
                    {'op': operation, 'path': f'/{name}', 'value': value}
                    for name, value in place.items()
                ],
            )
            found = self.sdk.get_accelerator_request(made.uuid)
            self.assertEqual(state, found.state)
        self.sdk.delete_accelerator_request(made.uuid, ignore_missing=False)
        self.assertEqual([], list(self.sdk.accelerator_requests()))

    def test_attributes(self):
        self.need('/attributes', 'GET', 'POST')
        self.need('/attributes/{uuid}', 'GET', 'DELETE')
        made = self.sdk.create_attribute(
            deployable_id=self.a_deployable()['uuid'], key='rack', value='7'
        )
        self.assertIn(made.uuid, [each.uuid for each in self.sdk.attributes()])
        self.assertEqual('7', self.sdk.get_attribute(made.uuid).value)
        self.sdk.delete_attribute(made.uuid, ignore_missing=False)
        self.assertRaises(
            exceptions.NotFoundException, self.sdk.get_attribute, made.uuid
        )


class TestAll(testtools.TestCase):
    def test_no_call_is_left_out(self):
        """All that the proxy has are made above."""
        calls = {
            name
            for name, call in vars(_proxy.Proxy).items()
            if inspect.isfunction(call)
        } - _WAITS
        source = inspect.getsource(inspect.getmodule(TestProxy))
        self.assertEqual([], [name for name in calls if name not in source])
