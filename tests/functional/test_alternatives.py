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

"""A flavor names several device profiles, the best one first."""

from nova.limit import utils as limit_utils
from oslo_limit import fixture as limit_fixture
import sqlalchemy as sa

from functional import base
from functional import moves
from functional import test_live_migration
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.scheduler import known_stock

_IMAGE = '155d900f-4e14-4e4c-a73d-069cbf4541e6'


class TestAlternatives(moves.MoveTestCase):
    """A server gets vGPUs while all FPGAs are taken."""

    CAST_AS_CALL = False

    def setUp(self):
        super().setUp()
        self.create_profile('fpga', [base.FPGA])
        self.flavor = self.create_accel_flavor('fpga, vgpus')
        self.fpga_flavor = self.create_accel_flavor('fpga')

    def take_fpgas(self):
        """All four."""
        return [
            self.boot_on(host, self.fpga_flavor)
            for host in ('host1', 'host1', 'host2', 'host2')
        ]

    def boot_vgpus(self):
        """A server on host1 with vGPUs, while there are no FPGAs; one later.

        The FPGA is on host2.
        """
        *others, last = self.take_fpgas()
        self.server = self.boot_on('host1', self.flavor)
        self.assert_has('vgpus', self.server)
        self._delete_server(last)
        return others

    def profiles(self, server):
        with engine.reader() as connection:
            return dict(
                connection.execute(
                    sa.select(
                        schema.ARQS.c.hostname,
                        schema.ARQS.c.device_profile_name,
                    ).where(schema.ARQS.c.instance_uuid == server['id'])
                )
                .tuples()
                .all()
            )

    def assert_has(self, name, server):
        server = self.api.get_server(server['id'])
        self.assertEqual('ACTIVE', server['status'])
        self.assertEqual(
            {server['OS-EXT-SRV-ATTR:host']: name}, self.profiles(server)
        )
        self.assertEqual(
            {'fpga': 1, 'vgpus': 2}[name], len(self.guest_devices(server))
        )
        self.assert_counted(server)

    def reasons(self, server):
        with engine.reader() as connection:
            return set(
                connection.scalars(
                    sa.select(schema.ARQS.c.chosen_because).where(
                        schema.ARQS.c.instance_uuid == server['id']
                    )
                )
            )

    def test_boot(self):
        first = self.boot(self.flavor)
        self.assert_has('fpga', first)
        self.assertNotIn('not fpga', str(self.reasons(first)))
        self._delete_server(first)
        others = self.take_fpgas()
        second = self.boot(self.flavor)
        self.assert_has('vgpus', second)
        for reason in self.reasons(second):
            self.assertRegex(reason, '^not fpga: all 4 are in use; .')
        self.delete(second, *others)

    def boot_second_best(self, flavor, why):
        """A server that has vGPUs, for a reason that its ARQs tell."""
        server = self.boot(flavor)
        self.assert_has('vgpus', server)
        for reason in self.reasons(server):
            self.assertRegex(reason, why)
        return server

    def test_drained(self):
        for each in self.accelerator.get('/devices?type=FPGA')['devices']:
            self.accelerator.post(f'/devices/{each["uuid"]}/disable', None)
        self.delete(
            self.boot_second_best(self.flavor, '^not fpga: all 4 are disabled')
        )

    def test_an_unknown_trait(self):
        self.create_profile(
            'typo', [{**base.FPGA, 'trait:CUSTOM_NO_SUCH': 'required'}]
        )
        flavor = self.create_accel_flavor('typo,vgpus')
        self.delete(
            self.boot_second_best(flavor, '^not typo: .*CUSTOM_NO_SUCH')
        )

    def test_over_quota(self):
        self.flags(driver=limit_utils.UNIFIED_LIMITS_DRIVER, group='quota')
        self.useFixture(
            limit_fixture.LimitFixture(
                {
                    'servers': 10,
                    'class:VCPU': 10,
                    'class:MEMORY_MB': 10240,
                    'class:DISK_GB': 100,
                    'class:FPGA': 1,
                    'class:VGPU': 2,
                },
                {},
            )
        )
        first = self.boot(self.flavor)
        self.assert_has('fpga', first)
        second = self.boot(self.flavor)
        self.assert_has('vgpus', second)
        refused = self.boot(self.flavor, expected_state='ERROR')
        self.assertIn(
            'device profile fpga: quota exceeded', refused['fault']['message']
        )
        self.delete(refused, second, first)

    def test_no_one_can_be_served(self):
        others = self.take_fpgas()
        server = self._create_server(
            flavor_id=self.create_accel_flavor('nothing,fpga'),
            networks='none',
            expected_state='ERROR',
        )
        text = server['fault']['message']
        self.assertIn(
            'device profile nothing: there is none of that name; device '
            'profile fpga: device_profile_0 (FPGA=1): all 4 are in use',
            text,
        )
        self.delete(server, *others)

    def test_what_it_has_stays_without_a_move(self):
        others = self.boot_vgpus()
        before = self.guest_devices(self.server)
        for operation in (
            lambda: self._reboot_server(self.server, hard=True),
            lambda: self._rebuild_server(self.server, _IMAGE),
            lambda: self._stop_server(self.server),
            lambda: self._start_server(self.server),
        ):
            operation()
        self.assert_has('vgpus', self.server)
        self.assertEqual(len(before), len(self.guest_devices(self.server)))
        self.delete(self.server, *others)

    def test_cold_migration_chooses_anew(self):
        others = self.boot_vgpus()
        server = self.migrate()
        self.assertEqual(
            {'host1': 'vgpus', 'host2': 'fpga'}, self.profiles(server)
        )
        self.revert(server)
        self.assert_has('vgpus', server)
        server = self.migrate()
        self.confirm(server)
        self.assert_has('fpga', server)
        self.delete(server, *others)

    def migrate(self):
        self.admin_api.post_server_action(self.server['id'], {'migrate': None})
        server = self._wait_for_state_change(self.server, 'VERIFY_RESIZE')
        # A claim that is never seen bound would count for a while.
        known_stock.current(known_stock.FRESH_S)
        return server

    def test_unshelve_chooses_anew(self):
        others = self.boot_vgpus()
        self.flags(shelved_offload_time=0)
        self._shelve_server(self.server)
        self.assertEqual({}, self.profiles(self.server))
        self.api.post_server_action(self.server['id'], {'unshelve': None})
        self._wait_for_state_change(self.server, 'ACTIVE')
        self.assert_has('fpga', self.server)
        self.delete(self.server, *others)

    def test_evacuation_chooses_anew(self):
        others = self.boot_vgpus()
        self.flags(host='host1')
        self.computes['host1'].stop()
        (service,) = self.api.get_services(binary='nova-compute', host='host1')
        self.api.put_service_force_down(service['id'], True)
        server = self._evacuate_server(self.server, expected_host='host2')
        self.api.post_server_action(server['id'], {'os-start': None})
        server = self._wait_for_state_change(server, 'ACTIVE')
        self.assertEqual('fpga', self.profiles(server)['host2'])
        self.assertEqual(1, len(self.hostdevs(server, 'host2')))
        self.assertEqual(3, len(others))

    def test_resize_there_and_back(self):
        others = self.take_fpgas()
        server = self.boot_on('host1', self.plain)
        self.resize(server, self.flavor)
        self.confirm(server)
        self.assert_has('vgpus', server)
        self.resize(server, self.plain)
        self.revert(server)
        self.assert_has('vgpus', server)
        self.delete(server, *others)


class TestLiveMigration(test_live_migration.LiveMigrationTestCase):
    def test_a_guest_keeps_what_it_has(self):
        self.create_profile('fpga', [base.FPGA])
        fpga = self.create_accel_flavor('fpga')
        others = [
            self.boot_on(host, fpga)
            for host in ('host1', 'host1', 'host2', 'host2')
        ]
        server = self.boot_on('host1', self.create_accel_flavor('fpga,vgpus'))
        for other in others:
            self._delete_server(other)
        self.live_migrate(server)
        self.assertEqual(
            {'vgpus'},
            {arq['device_profile_name'] for arq in self.arqs(server)},
        )
        self.assert_arrived(server)
