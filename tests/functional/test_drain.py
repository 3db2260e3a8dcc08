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

"""A host is drained by its command's own code, through keystone and HTTP."""

import datetime
import time

from keystoneauth1 import adapter
from openstack import config
from openstack import connection

from functional import test_live_migration
from nova_accel.osc import drain_cloud
from nova_accel.osc import host_emptying

#: A run is over long before, or fails.
_TIMEOUT_S = 120

_SOON = datetime.timedelta(seconds=3)


class DrainTestCase(test_live_migration.LiveMigrationTestCase):
    """host1 is drained, and host2 is there to take its servers."""

    def setUp(self):
        super().setUp()
        # Nova's driver confirms on the host that this says; all computes here
        # share the option.
        self.flags(host='host1')
        path = self.write_clouds(self.admin)
        region = config.OpenStackConfig(config_files=[str(path)]).get_one(
            cloud='admin'
        )
        # Nova's fixtures replace its proxies, not its session.
        self.sdk = connection.Connection(config=region)
        self.nova_adapter, self.accelerator_adapter = (
            adapter.Adapter(
                self.sdk.session, service_type=service, interface='public'
            )
            for service in ('compute', 'accelerator')
        )
        self.cloud = drain_cloud.DrainCloud(
            self.nova_adapter, self.accelerator_adapter, 'host1'
        )

    def drain(self, *, cold=False, timeout_s=_TIMEOUT_S):
        """Server's name -> way, and why it remains, empty if it does not."""
        self.cloud.begin('new fans', '2120-01-01T00:00:00+00:00')
        rows = self.emptying(cold).run(timeout_s, lambda _progress: None)
        return {row.name: (row.way, row.why) for row in rows}

    def emptying(self, cold=False):
        return host_emptying.HostEmptying(
            self.cloud,
            allows_cold=cold,
            clock=time.monotonic,
            sleep=time.sleep,
        )

    def undrain(self):
        self.accelerator.microversion = '2.4'
        self.accelerator.delete('/hosts/host1/drain')

    def boot_three(self):
        """A server that can go live, one with a PCI device, a stopped one."""
        servers = {
            name: self.boot_on_host1(flavor, name)
            for name, flavor in (
                ('live', self.vgpus),
                ('fixed', self.both),
                ('stopped', self.both),
            )
        }
        self._stop_server(servers['stopped'])
        return servers

    def boot_on_host1(self, flavor, name):
        return self.boot(flavor, host='host1', name=name)

    def host_of(self, server):
        return self.api.get_server(server['id'])['OS-EXT-SRV-ATTR:host']

    def assert_empty(self, *servers):
        """host1 has nothing, and each server is on host2 with its ARQs."""
        for server in servers:
            self.assertEqual('host2', self.host_of(server))
            self.assertEqual(
                [('host2', 'active')], list(self.held(server)), server['name']
            )
        self.assertFalse(self.mdevs('host1'))
        self.assertEqual({}, self.cloud.holdings())
        self.wait_for_usage('host1')


class TestDrain(DrainTestCase):
    def test_a_host_is_emptied(self):
        servers = self.boot_three()
        self.assertEqual(
            {
                'live': ('live', ''),
                'fixed': ('cold', ''),
                'stopped': ('cold', ''),
            },
            self.drain(cold=True),
        )
        self.assert_empty(*servers.values())
        self.assertEqual(
            {'live': 'ACTIVE', 'fixed': 'ACTIVE', 'stopped': 'SHUTOFF'},
            {
                name: self.api.get_server(server['id'])['status']
                for name, server in servers.items()
            },
        )
        # The stopped one starts with its devices.
        self._start_server(servers['stopped'])
        self.assertEqual(2, len(self.guest_devices(servers['stopped'])))

    def test_a_server_that_cannot_go_is_named(self):
        servers = self.boot_three()
        found = self.drain()
        self.assertEqual(('live', ''), found['live'])
        self.assertEqual(('cold', ''), found['stopped'])
        way, why = found['fixed']
        self.assertEqual('not at all', way)
        self.assertIn('cannot be migrated live', why)
        self.assertIn('--cold', why)
        self.assertEqual('host1', self.host_of(servers['fixed']))
        self.assertEqual(2, len(self.guest_devices(servers['fixed'])))
        # The administrator reads it, and decides.
        self.assertEqual({'fixed': ('cold', '')}, self.drain(cold=True))
        self.assert_empty(*servers.values())

    def test_it_is_interrupted_and_run_again(self):
        servers = self.boot_three()
        found = self.drain(cold=True, timeout_s=0)
        self.assertEqual(3, len(found))
        self.assertTrue(any(why for _way, why in found.values()))
        self.drain(cold=True)
        self.assert_empty(*servers.values())

    def test_no_server_comes_meanwhile(self):
        """Neither at once nor when Placement knows it."""
        self.drain()
        for _time in range(2):
            server = self.boot(self.both)
            self.assertEqual('host2', self.host_of(server))
            self.settle('host1')
            self._run_periodics()
        self.assertEqual(
            'ERROR', self.boot(self.both, expected_state='ERROR')['status']
        )
        self.undrain()
        self.settle('host1')
        self._run_periodics()
        server = self.boot(self.both)
        self.assertEqual('host1', self.host_of(server))

    def test_a_drain_that_is_announced(self):
        """Servers come until then, and none from the next report on."""
        self.cloud.begin('new fans', None, '2120-01-01T00:00:00+00:00')
        self._run_periodics()
        server = self.boot_on_host1(self.both, 'before')
        self.assertEqual('host1', self.host_of(server))
        self.delete(server)
        soon = datetime.datetime.now(datetime.UTC) + _SOON
        self.cloud.begin('new fans', None, soon.isoformat())
        time.sleep(_SOON.total_seconds())
        self.settle('host1')
        self._run_periodics()
        self.assertEqual('host2', self.host_of(self.boot(self.both)))
        refused = self.boot(self.both, host='host1', expected_state='ERROR')
        self.assertEqual('ERROR', refused['status'])
        drain = self.cloud.drain()
        self.assertEqual(
            soon.replace(microsecond=0).isoformat(), drain['from']
        )
        self.assertIsNotNone(drain['requested_at'])

    def test_no_other_host_has_room(self):
        self.boot_on_host1(self.both, 'first')
        for name in ('a', 'b'):
            self.boot(self.both, host='host2', name=name)
        [row] = self.emptying(cold=True).look()
        self.assertEqual('not at all', row.way)
        self.assertIn('no other host has free units', row.why)
        self.assertEqual(
            [row.why], [why for _way, why in self.drain(cold=True).values()]
        )

    def test_a_resize_of_its_owner(self):
        """It is not ours to confirm."""
        server = self.boot_on_host1(self.both, 'resized')
        self.resize(server, self.create_accel_flavor('both', name='larger'))
        self.assertEqual('host2', self.host_of(server))
        [(way, why)] = self.drain(cold=True).values()
        self.assertEqual('not at all', way)
        self.assertIn('confirm or revert', why)
        self.confirm(server)
        self.drain()
        self.assert_empty(server)


class TestCyborgsKey(DrainTestCase):
    flavor_key = 'accel:device_profile'

    def test_it_is_shelved_and_unshelved(self):
        server = self.boot_on_host1(self.both, 'compat')
        [(way, why)] = self.drain(cold=True).values()
        self.assertEqual('not at all', way)
        self.assertIn('shelve it and unshelve it', why)
        # Its owner does what is told.
        self._shelve_server(server, expected_state='SHELVED_OFFLOADED')
        self._unshelve_server(server)
        self.drain()
        self.assertEqual({}, self.cloud.holdings())
        self.assertEqual('host2', self.host_of(server))
