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

from nova.tests.functional.api import client

from functional import base
from nova_accel.model.profiles import device_profile

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
