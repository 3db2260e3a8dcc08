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


"""What Placement counts, after Nova has lost or left allocations.

The tests of each operation compare Placement with what is held, too:
``base.AcceleratorTestCase.assert_counted``.
"""

import fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt import libvirt

from functional import base
from functional import moves
from functional import one_server
from nova_accel.cmd import database_fleet
from nova_accel.model import finding
from rig import compute_parts

_IMAGE = '70a599e0-31e7-49b7-b260-868f441e862b'


class CountedTestCase(base.AcceleratorTestCase):
    def setUp(self):
        super().setUp()
        self._reconcilers = {}

    def compare(self, host):
        """A pass of a host that remembers its passes."""
        driver = self.computes[host].driver
        if driver not in self._reconcilers:
            self._reconcilers[driver] = compute_parts.reconciler(
                driver._accelerators, driver._host
            )
        self._reconcilers[driver].repair()

    def findings(self, host):
        """Those that concern Placement, after the host's next report."""
        compute_parts.publisher(
            self.computes[host].driver._accelerators
        ).report()
        return [
            (found.kind, found.whose, found.is_repaired)
            for found in database_fleet.read().reported
            if found.kind in (finding.Kind.UNCOUNTED, finding.Kind.ALLOCATION)
        ]

    def do_within(self, method, do):
        """Do something once, when the method of a class is called."""
        target, name = method
        real = getattr(target, name)
        is_first = iter([True])

        def do_and_call(*args, **kwargs):
            if next(is_first, False):
                do()
            return real(*args, **kwargs)

        self.useFixture(
            fixtures.MonkeyPatch(
                f'{target.__module__}.{target.__name__}.{name}', do_and_call
            )
        )

    def allocations(self, consumer):
        return self.placement.get(
            f'/allocations/{consumer}', version='1.28'
        ).body['allocations']

    def resources(self, consumer):
        return {
            uuid: allocation['resources']
            for uuid, allocation in self.allocations(consumer).items()
        }

    def lose_allocations(self, consumer):
        self.placement.delete(f'/allocations/{consumer}')

    def reserved(self, host):
        found = {}
        for provider in self.accelerator_providers(host):
            for resource_class, amount in provider['reserved'].items():
                found[resource_class] = found.get(resource_class, 0) + amount
        return {name: amount for name, amount in found.items() if amount}


class TestLost(CountedTestCase, one_server.OneServerTestCase):
    """A server runs, and its allocations are gone."""

    def setUp(self):
        super().setUp()
        self.before = self.resources(self.server['id'])
        self.assertEqual(3, len(self.before))

    def assert_healed(self):
        self.assertEqual({}, self.resources(self.server['id']))
        self.compare(self.host)
        self.assertEqual(self.before, self.resources(self.server['id']))
        self.assertEqual(
            [(finding.Kind.UNCOUNTED, self.server['id'], True)],
            self.findings(self.host),
        )

    def test_a_rebuild_that_fails(self):
        """Nova removes the allocations of its server."""
        for rebuilds_again in (False, True):
            self.break_libvirt(
                (fakelibvirt.Domain, 'createWithFlags'), times=1
            )
            self.assert_fails(
                'rebuild', {'imageRef': _IMAGE}, 'rebuild', 'ERROR'
            )
            if rebuilds_again:
                self.act('rebuild', {'imageRef': _IMAGE})
                self.wait_for_status('ACTIVE')
                self.assertEqual(self.devices, self.guest_devices(self.server))
            self.assert_healed()
            self.compare(self.host)
            self.assertEqual([], self.findings(self.host))
        self.assert_runs_with_all()
        self.delete(self.server)

    def test_the_host_looks_soon_after_a_failure(self):
        driver = self.computes[self.host].driver
        board = compute_parts.current_state(driver._accelerators)
        board.is_doubtful = False
        self.break_libvirt((fakelibvirt.Domain, 'createWithFlags'), times=1)
        self.assert_fails('rebuild', {'imageRef': _IMAGE}, 'rebuild', 'ERROR')
        self.assertTrue(board.is_doubtful)

    def test_an_operator_deletes_them(self):
        self.lose_allocations(self.server['id'])
        self.assert_healed()
        self.delete(self.server)

    def test_one_of_them_is_lost(self):
        body = self.placement.get(
            f'/allocations/{self.server["id"]}', version='1.28'
        ).body
        (lost,) = (
            uuid
            for uuid, allocation in body['allocations'].items()
            if 'VGPU' in allocation['resources']
        )
        del body['allocations'][lost]
        self.placement.put(
            f'/allocations/{self.server["id"]}', body, version='1.28'
        )
        self.compare(self.host)
        self.assertEqual(self.before, self.resources(self.server['id']))
        self.delete(self.server)

    def test_while_nova_is_busy_they_are_reserved(self):
        """No one else gets the unit, and it is allocated in the end."""

        def lose():
            self.lose_allocations(self.server['id'])
            self.assert_is_reserved()

        self.do_within((fakelibvirt.Domain, 'createWithFlags'), lose)
        self._reboot_server(self.server, hard=True)
        self.assertEqual({'FPGA': 1, 'VGPU': 1}, self.reserved(self.host))
        self.compare(self.host)
        self.assertEqual(self.before, self.resources(self.server['id']))
        self._run_periodics()
        self.assertEqual({}, self.reserved(self.host))
        self.delete(self.server)

    def assert_is_reserved(self):
        for _again in range(2):
            self.compare(self.host)
            self._run_periodics()
            self.assertEqual({'FPGA': 1, 'VGPU': 1}, self.reserved(self.host))
            self.assertEqual({}, self.resources(self.server['id']))
        self.assertEqual(
            [(finding.Kind.UNCOUNTED, self.server['id'], False)],
            self.findings(self.host),
        )

    def test_others_have_the_unit(self):
        """Placement is not made to count more than there is."""
        other = '4f1a3c52-6d0e-4d5a-9a3b-1f2e3d4c5b6a'
        self.lose_allocations(self.server['id'])
        body = {
            'allocations': {
                uuid: {'resources': resources}
                for uuid, resources in self.before.items()
                if 'FPGA' in resources
            },
            'project_id': 'project',
            'user_id': 'user',
            'consumer_generation': None,
        }
        self.placement.put(f'/allocations/{other}', body, version='1.28')
        self.compare(self.host)
        self.assertEqual({}, self.resources(self.server['id']))
        self.assertEqual(
            [(finding.Kind.UNCOUNTED, self.server['id'], False)],
            self.findings(self.host),
        )
        self._run_periodics()
        self.assertEqual({'FPGA': 1, 'VGPU': 1}, self.reserved(self.host))
        self.lose_allocations(other)
        self.compare(self.host)
        self.assertEqual(self.before, self.resources(self.server['id']))
        self.delete(self.server)


class TestMoves(CountedTestCase, moves.MoveTestCase):
    """A server moves, and its allocations are lost, or are left behind."""

    CAST_AS_CALL = False

    def setUp(self):
        super().setUp()
        self.server = self.boot_on('host1', self.both)
        self.before = self.resources(self.server['id'])

    def migrate(self):
        self.admin_api.post_server_action(self.server['id'], {'migrate': None})

    def migrations(self):
        return [
            migration['uuid']
            for migration in self.admin_api.api_get(
                f'/os-migrations?instance_uuid={self.server["id"]}'
            ).body['migrations']
        ]

    def test_both_are_lost_while_a_migration_waits(self):
        """They stay reserved, also when nova-compute starts anew."""
        self.migrate()
        server = self._wait_for_state_change(self.server, 'VERIFY_RESIZE')
        after = self.resources(server['id'])
        (migration,) = self.migrations()
        self.assertEqual(self.before, self.resources(migration))
        for consumer in (migration, server['id']):
            self.lose_allocations(consumer)
        both = {'FPGA': 1, 'VGPU': 1}
        for host in self.hosts:
            self.compare(host)
        self._run_periodics()
        for host in self.hosts:
            self.assertEqual(both, self.reserved(host))
        self.restart_compute_service('host2')
        self.assertEqual(both, self.reserved('host2'))
        self.settle('host2')
        self._run_periodics()
        self.assertEqual(both, self.reserved('host2'))
        server = self.confirm(server)
        for host in self.hosts:
            self.compare(host)
        self._run_periodics()
        self.assertEqual(after, self.resources(server['id']))
        for host in self.hosts:
            self.assertEqual({}, self.reserved(host))
        self.delete(server)

    def delete_within(self, method):
        """The server is deleted while Nova's driver does a part of a move."""

        def delete():
            self.api.delete_server(self.server['id'])
            self._wait_until_deleted(self.server)

        self.do_within((libvirt.LibvirtDriver, method), delete)
        self.migrate()
        self._wait_until_deleted(self.server)

    def test_deleted_while_its_disk_is_copied(self):
        """Nova gives its allocations back to the server that is gone."""
        self.delete_within('migrate_disk_and_power_off')
        self._wait_for_assert(
            lambda: self.assertEqual(
                self.before, self.resources(self.server['id'])
            )
        )
        for is_left in (True, True, False):
            self.assertEqual(is_left, bool(self.leftovers()))
            self.compare('host1')
        self.assertEqual(
            set(self.before).difference(self.provider_names()),
            set(self.resources(self.server['id'])),
        )
        self.assert_nothing_left()

    def test_deleted_while_its_disk_arrives(self):
        self.delete_within('finish_migration')

        def all_is_gone():
            for host in self.hosts:
                self.compare(host)
            self.assert_nothing_left()

        self._wait_for_assert(all_is_gone)
