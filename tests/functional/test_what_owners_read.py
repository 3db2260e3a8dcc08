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

"""The owner of a server reads neither hosts nor addresses of devices."""

import json

import fixtures
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.api import client
import requests

from functional import base
from functional import test_publishing
from nova_accel.model.profiles import device_profile
from nova_accel.testing import fake_fpga

#: What a device says when it refuses, and what of it owners read.
_SECRET = '0000:99:00.0 of host9 is stuck'
_PUBLIC = 'the device is stuck'


class TestNative(base.AcceleratorTestCase):
    def setUp(self):
        super().setUp()
        self.create_profile('profile', [base.FPGA])
        self.flavor = self.create_accel_flavor('profile')

    def test_a_device_refuses(self):
        server = self.boot(self.flavor)
        self.break_plug('PCI')
        # In these tests a cast is a call, whose fault nova-api answers.
        self.assertRaises(
            client.OpenStackApiException,
            self._reboot_server,
            server,
            hard=True,
            expected_state='ERROR',
        )
        self._wait_for_state_change(server, 'ERROR')
        self.assert_tells_nothing(server)
        self.delete(server)

    def assert_tells_nothing(self, server):
        """What the owner, who is no administrator, is shown of it."""
        shown = [self.owner('/servers/' + server['id'])]
        path = f'/servers/{server["id"]}/os-instance-actions'
        for action in self.owner(path)['instanceActions']:
            shown.append(self.owner(f'{path}/{action["request_id"]}'))
        text = json.dumps(shown)
        self.assertIn(_PUBLIC, text)
        self.assertIn('"fault"', text)
        for secret in ('host1', 'host9', '0000:'):
            self.assertNotIn(secret, text)
        self.assertIn(_SECRET, self.stdlog.logger.output)

    def owner(self, path):
        self.api_fixture.api.microversion = self.microversion
        return self.api_fixture.api.api_get(path).body


class TestRetries(base.AcceleratorTestCase):
    """Nova's fault says only that all hosts were tried."""

    hosts = ('host1', 'host2')

    def test_who_asks_reads_why_each_host_refused(self):
        self.create_profile('profile', [base.FPGA])
        flavor = self.create_accel_flavor('profile')
        self.break_plug('PCI', times=len(self.hosts))
        server = self.boot(flavor, expected_state='ERROR')
        self.assertIn(
            'Exceeded maximum number of retries', server['fault']['message']
        )
        tried = self.events(self.api, server)
        self.assertEqual(
            [('Error', 'host1'), ('Error', 'host2')],
            sorted((each['result'], each['host']) for each in tried),
        )
        for each in tried:
            self.assertEqual(_PUBLIC, each['details'])
            self.assertIn(_SECRET, each['traceback'])
        told = self.events(self.api_fixture.api, server)
        self.assertEqual(2, len(told))
        for secret in ('host1', 'host2', 'host9', '0000:'):
            self.assertNotIn(secret, json.dumps(told))
        self.delete(server)

    def events(self, api, server):
        """Those of accelerators, as a user is shown them."""
        api.microversion = self.microversion
        path = f'/servers/{server["id"]}/os-instance-actions'
        [create] = api.api_get(path).body['instanceActions']
        shown = api.api_get(f'{path}/{create["request_id"]}').body
        return [
            each
            for each in shown['instanceAction']['events']
            if each['event'] == f'accelerators: {_PUBLIC}'
        ]


class TestCyborgsKey(TestNative):
    """Nova tells the owner what the API answers to it, too."""

    flavor_key = device_profile.CYBORG_FLAVOR_KEY

    def test_requests(self):
        server = self.boot(self.flavor)
        [arq] = self.demo_accelerator.get(
            f'/accelerator_requests?instance={server["id"]}'
        )['arqs']
        self.assertEqual(
            ('Bound', None, {}),
            tuple(
                arq[name]
                for name in ('state', 'hostname', 'attach_handle_info')
            ),
        )
        self.delete(server)


class TestHealth(test_publishing.PublishingTestCase):
    """The owner and the guest learn that a device does not work."""

    def setUp(self):
        super().setUp()
        self.addCleanup(fake_fpga.FakeFpgaDriver.faults.clear)
        self.flags(
            group='vendordata_dynamic_auth', auth_section='service_user'
        )
        self.flags(
            group='api',
            vendordata_providers=['DynamicJSON'],
            vendordata_dynamic_targets=[
                f'accelerators@{self.url}/accelerator/v2/vendordata'
            ],
            metadata_cache_expiration=0,
        )
        self.metadata = self.useFixture(nova_fixtures.OSMetadataServer())
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.api.handlers.server._PATIENCE_S', 60
            )
        )

    def test_a_device_breaks(self):
        server = self.boot_with_profile('fpga')
        [arq] = self.owner_reads(server)
        self.assertEqual(('healthy', None), (arq['health'], arq['reason']))
        self.assertEqual([arq], self.guest_reads(server))
        fake_fpga.FakeFpgaDriver.faults['0000:82:00.0'] = _SECRET
        self.update()
        [arq] = self.owner_reads(server)
        self.assertEqual(
            ('failed', 'the device does not work'),
            (arq['health'], arq['reason']),
        )
        self.assertIsNotNone(arq['since'])
        self.assertEqual([arq], self.guest_reads(server))
        self.assert_told(server, 'accelerator_failed')
        for secret in ('host1', 'host9', '0000:'):
            self.assertNotIn(secret, json.dumps(arq))
        fake_fpga.FakeFpgaDriver.faults.clear()
        self.update()
        [arq] = self.owner_reads(server)
        self.assertEqual(('healthy', None), (arq['health'], arq['since']))
        self.assert_told(server, 'accelerator_failed', 'accelerator_recovered')
        self.delete(server)

    def test_a_device_is_gone(self):
        server = self.boot_with_profile('qat')
        [address] = self.guest_devices(server)
        put_back = self.pull_out(self.name_of(address))
        self.update()
        [arq] = self.owner_reads(server)
        self.assertEqual(
            ('failed', 'the device is no longer there'),
            (arq['health'], arq['reason']),
        )
        self.assert_told(server, 'accelerator_failed')
        put_back()
        self.update()
        self.assert_told(server, 'accelerator_failed', 'accelerator_recovered')
        self.delete(server)

    def assert_told(self, server, *names):
        """The owner reads these actions, and that they have ended."""
        api = self.api_fixture.api
        path = f'/servers/{server["id"]}/os-instance-actions'

        def check():
            api.microversion = self.microversion
            first, *actions = reversed(
                api.api_get(path).body['instanceActions']
            )
            self.assertEqual(
                ('create', *names),
                (first['action'], *(each['action'] for each in actions)),
            )
            for action in actions:
                self.assertIsNotNone(action['updated_at'])
                self.assertIsNone(action['message'])

        self._wait_for_assert(check)

    def owner_reads(self, server):
        return self.demo_accelerator.get(
            f'/servers/{server["id"]}/accelerators'
        )['accelerators']

    def guest_reads(self, server):
        """From Nova's metadata API, which asks Neutron who has an address."""
        with fixtures.MonkeyPatch(
            'nova.network.neutron.API.get_fixed_ip_by_address',
            lambda *_arguments: {'instance_uuid': server['id']},
        ):
            answer = requests.get(
                f'{self.metadata.md_url}openstack/latest/vendor_data2.json',
                timeout=60,
            )
        return answer.json()['accelerators']['accelerators']
