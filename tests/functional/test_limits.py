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

import fixtures
from nova.limit import utils as limit_utils
from nova.tests.functional.api import client as api_client
from oslo_limit import fixture as limit_fixture

from functional import base
from functional import moves
from nova_accel.model.profiles import device_profile

_PLENTY = {
    'servers': 10,
    'class:VCPU': 10,
    'class:MEMORY_MB': 10240,
    'class:DISK_GB': 100,
}


class LimitsTestCase(moves.MoveTestCase):
    """A project may have two QAT functions, by Keystone's unified limits."""

    def setUp(self):
        super().setUp()
        self.flags(driver=limit_utils.UNIFIED_LIMITS_DRIVER, group='quota')
        self.useFixture(
            limit_fixture.LimitFixture({**_PLENTY, 'class:CUSTOM_QAT': 2}, {})
        )
        self.create_profile('one', [base.QAT])
        self.create_profile('two', [{'resources:CUSTOM_QAT': '2'}])
        self.one = self.create_accel_flavor('one')
        self.two = self.create_accel_flavor('two')


class TestLimits(LimitsTestCase):
    def test_boot(self):
        servers = [self.boot(self.one) for _ in range(2)]
        over = self.boot(self.one, expected_state='ERROR')
        self.assertEqual(
            (
                403,
                'device profile one: quota exceeded: class:CUSTOM_QAT: '
                'limit 2, in use 2, wanted 1',
            ),
            (over['fault']['code'], over['fault']['message']),
        )
        self.assertIsNone(over['OS-EXT-SRV-ATTR:host'])
        # Nothing of it is held, and it stands in the way of no one.
        self._delete_server(over)
        self._delete_server(servers.pop())
        servers.append(self.boot(self.one))
        self.delete(*servers)

    def test_resize(self):
        """Until it is confirmed the server has what both flavors ask for."""
        server = self.boot_on('host1', self.one)
        before = self.guest_devices(server)
        # Here, and nowhere else, nova-api waits for nova-conductor.
        self.api.post_server_action(
            server['id'],
            {'resize': {'flavorRef': self.two}},
            check_response_status=[403, 500],
        )
        event = self._wait_for_action_fail_completion(
            server, 'resize', 'conductor_migrate_server'
        )
        self.assertIn(
            'class:CUSTOM_QAT: limit 2, in use 1, wanted 2', event['details']
        )
        server = self._wait_for_state_change(server, 'ACTIVE')
        self.assert_guest(server, 'host1', before)
        self.delete(server)

    def test_unshelve(self):
        shelved = self.boot(self.one)
        self._shelve_server(shelved)
        other = self.boot(self.two)
        self.api.post_server_action(
            shelved['id'], {'unshelve': None}, check_response_status=[403, 500]
        )
        event = self._wait_for_action_fail_completion(
            shelved, 'unshelve', 'schedule_instances'
        )
        self.assertIn(
            'class:CUSTOM_QAT: limit 2, in use 2, wanted 1', event['details']
        )
        self._wait_for_state_change(shelved, 'SHELVED_OFFLOADED')
        self._delete_server(other)
        self.delete(self._unshelve_server(shelved))

    def test_a_migration_is_not_counted(self):
        server = self.boot_on('host1', self.two)
        self._migrate_server(server)
        server = self.confirm(
            self._wait_for_state_change(server, 'VERIFY_RESIZE')
        )
        self.assertEqual('host2', server['OS-EXT-SRV-ATTR:host'])
        self.delete(server)


class TestAtOnce(LimitsTestCase):
    """All servers are counted before any of them is claimed."""

    def setUp(self):
        super().setUp()
        # By this nova-api and nova-scheduler count, before the claim.
        self.useFixture(
            fixtures.MockPatch('oslo_limit.limit.Enforcer.enforce')
        )

    def test_boot(self):
        first = self.boot(self.two)
        over = self.boot(self.one, expected_state='ERROR')
        self.assertIn(
            'quota exceeded: class:CUSTOM_QAT: limit 2, in use 2, wanted 1',
            over['fault']['message'],
        )
        # No other host is tried, and what it took is given back.
        self.assertIn('aborted', over['fault']['message'])
        self.assertEqual([], self.arqs(over))
        self.assertEqual(
            2,
            sum(
                sum(provider['usage'].values())
                for host in self.computes
                for provider in self.accelerator_providers(host)
            ),
        )
        self._delete_server(over)
        self._delete_server(first)
        self.delete(self.boot(self.one), self.boot(self.one))


class TestAtOnceCompat(TestAtOnce):
    flavor_key = device_profile.CYBORG_FLAVOR_KEY


class TestCompat(LimitsTestCase):
    """Nova counts Cyborg's profiles itself, and refuses at once."""

    flavor_key = device_profile.CYBORG_FLAVOR_KEY

    def test_boot(self):
        server = self.boot(self.two)
        error = self.assertRaises(
            api_client.OpenStackApiException, self.boot, self.one
        )
        self.assertEqual(403, error.response.status_code)
        self.assertIn(
            'class:CUSTOM_QAT is over limit of 2 due to current '
            'usage 2 and delta 1',
            error.response.text,
        )
        self.delete(server)
