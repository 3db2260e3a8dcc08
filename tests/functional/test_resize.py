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

from nova import exception
from nova.tests.fixtures import libvirt as fakelibvirt

from functional import moves
from functional import operations


class TestResize(moves.MoveTestCase):
    """To another host."""

    @operations.shows('resize between profiles', 'to another host, confirmed')
    def test_between_profiles_and_confirm(self):
        server = self.boot_on('host1', self.both)
        before = self.guest_devices(server)
        server = self.resize(server, self.vgpus)
        held = self.held(server)
        after = held['host2', 'active']
        self.assertEqual(
            {('host1', 'old'): before, ('host2', 'active'): after}, held
        )
        self.assertEqual(2, len(after))
        self.assert_usage('host1', FPGA=1, VGPU=1)
        self.assert_usage('host2', VGPU=2)
        self.confirm(server)
        self.assert_guest(server, 'host2', after)
        self.assertFalse(self.mdevs('host1'))
        self.assert_usage('host1')
        self._reboot_server(server, hard=True)
        self.assert_guest(server, 'host2', after)
        self.delete(server)

    @operations.shows('resize between profiles', 'to another host, reverted')
    def test_between_profiles_and_revert(self):
        server = self.boot_on('host1', self.both)
        before = self.guest_devices(server)
        arqs = self.arqs(server)
        server = self.revert(self.resize(server, self.vgpus))
        self.assert_guest(server, 'host1', before)
        self.assertEqual(
            [arq['uuid'] for arq in arqs],
            [arq['uuid'] for arq in self.arqs(server)],
        )
        self.assertFalse(self.mdevs('host2'))
        self.assert_usage('host1', FPGA=1, VGPU=1)
        self.assert_usage('host2')
        self._reboot_server(server, hard=True)
        self.assert_guest(server, 'host1', before)
        self.delete(server)

    @operations.shows('resize to accelerators', 'to another host, confirmed')
    def test_to_accelerators_and_confirm(self):
        server = self.resize(self.boot_on('host1', self.plain), self.both)
        devices = self.held(server)['host2', 'active']
        self.confirm(server)
        self.assert_guest(server, 'host2', devices)
        self.delete(server)

    @operations.shows('resize to accelerators', 'to another host, reverted')
    def test_to_accelerators_and_revert(self):
        server = self.resize(self.boot_on('host1', self.plain), self.both)
        self.assertEqual([('host2', 'active')], list(self.held(server)))
        self.revert(server)
        self.assert_guest(server, 'host1', [])
        self.assert_nothing_left()

    @operations.shows('resize to a plain flavor', 'to another host, confirmed')
    def test_to_a_plain_flavor_and_confirm(self):
        server = self.resize(self.boot_on('host1', self.both), self.plain)
        self.assertEqual([('host1', 'old')], list(self.held(server)))
        self.assertEqual([], self.hostdevs(server, 'host2'))
        self.confirm(server)
        self.assert_guest(server, 'host2', [])
        self.assert_nothing_left()

    @operations.shows('resize to a plain flavor', 'to another host, reverted')
    def test_to_a_plain_flavor_and_revert(self):
        server = self.boot_on('host1', self.both)
        before = self.guest_devices(server)
        self.revert(self.resize(server, self.plain))
        self.assert_guest(server, 'host1', before)
        self.delete(server)

    @operations.shows('resize', 'deleted before it is confirmed')
    def test_deleted_before_it_is_confirmed(self):
        server = self.resize(self.boot_on('host1', self.both), self.vgpus)
        self.flags(host='host1')
        self.delete(server)

    def test_a_stopped_server(self):
        server = self.boot_on('host1', self.both)
        self._stop_server(server)
        server = self.confirm_stopped(self.resize(server, self.vgpus))
        devices = self.held(server)['host2', 'active']
        self._start_server(server)
        self.assert_guest(server, 'host2', devices)
        self.delete(server)

    def confirm_stopped(self, server):
        self.flags(host='host1')
        self.api.post_server_action(server['id'], {'confirmResize': None})
        return self._wait_for_state_change(server, 'SHUTOFF')


class TestSameHost(moves.MoveTestCase):
    """Both sets are on one host, and may be of one provider."""

    hosts = ('host1',)

    def setUp(self):
        super().setUp()
        self.flags(allow_resize_to_same_host=True)
        self.server = self.boot(self.both)
        self.before = self.guest_devices(self.server)

    def test_two_sets_of_one_provider(self):
        server = self.resize(self.server, self.vgpus)
        held = self.held(server)
        after = held['host1', 'active']
        self.assertEqual(
            {('host1', 'old'): self.before, ('host1', 'active'): after}, held
        )
        self.assertFalse(set(self.before) & set(after))
        self.assertEqual(after, self.guest_devices(server))
        self.assert_usage('host1', FPGA=1, VGPU=3)
        self.assertEqual(3, len(self.mdevs('host1')))

    @operations.shows('resize between profiles', 'on the same host, confirmed')
    def test_confirm(self):
        server = self.resize(self.server, self.vgpus)
        after = self.guest_devices(server)
        self.confirm(server)
        self.assert_guest(server, 'host1', after)
        self.assertEqual(sorted(after), sorted(self.mdevs('host1')))
        self._reboot_server(server, hard=True)
        self.assert_guest(server, 'host1', after)
        self.delete(server)

    @operations.shows('resize between profiles', 'on the same host, reverted')
    def test_revert(self):
        self.revert(self.resize(self.server, self.vgpus))
        self.assert_guest(self.server, 'host1', self.before)
        self.assertEqual(1, len(self.mdevs('host1')))
        self._reboot_server(self.server, hard=True)
        self.assert_guest(self.server, 'host1', self.before)
        self.delete(self.server)

    def test_to_a_flavor_with_the_same_profile(self):
        """The sets are alike, and still two."""
        flavor = self.create_accel_flavor('both')
        server = self.resize(self.server, flavor)
        after = self.guest_devices(server)
        self.assertFalse(set(self.before) & set(after))
        self.confirm(server)
        self.assert_guest(server, 'host1', after)
        self.delete(server)

    @operations.shows(
        'resize to a plain flavor',
        'on the same host, reverted',
        'on the same host, confirmed',
    )
    def test_to_a_plain_flavor_and_back(self):
        server = self.resize(self.server, self.plain)
        self.assertEqual([], self.guest_devices(server))
        self.revert(server)
        self.assert_guest(server, 'host1', self.before)
        self.confirm(self.resize(server, self.plain))
        self.assert_nothing_left()

    @operations.shows(
        'resize to accelerators',
        'on the same host, reverted',
        'on the same host, confirmed',
    )
    def test_to_accelerators(self):
        plain = self.boot(self.plain)
        self.revert(self.resize(plain, self.both))
        self.assert_guest(plain, 'host1', [])
        server = self.resize(plain, self.both)
        after = self.guest_devices(server)
        self.confirm(server)
        self.assert_guest(plain, 'host1', after)
        self.delete(plain, self.server)

    def test_deleted_before_it_is_confirmed(self):
        server = self.resize(self.server, self.vgpus)
        self.delete(server)

    def test_a_restart_of_nova_compute_between(self):
        server = self.resize(self.server, self.vgpus)
        after = self.guest_devices(server)
        self.restart_compute_service('host1')
        self.assertEqual(after, self.held(server)['host1', 'active'])
        self.revert(server)
        self.assert_guest(server, 'host1', self.before)
        self.delete(server)


class TestFailures(moves.ServerTestCase):
    """Each releases what was taken, and nothing else."""

    def start_resize(self, flavor=None):
        self.api.post_server_action(
            self.server['id'], {'resize': {'flavorRef': flavor or self.vgpus}}
        )

    def wait_for_error(self):
        return self._wait_for_state_change(self.server, 'ERROR')

    def assert_unharmed(self):
        self.assert_guest(self.server, 'host1', self.before)
        self.assert_usage('host1', FPGA=1, VGPU=1)
        self._reboot_server(self.server, hard=True)
        self.assert_guest(self.server, 'host1', self.before)
        self.delete(self.server)

    @operations.shows('resize', 'the source refuses')
    def test_refused_on_the_source(self):
        self.break_driver(
            'migrate_disk_and_power_off',
            exception.InstanceFaultRollback(
                exception.ResizeError(reason='the disk is too large')
            ),
        )
        self.start_resize()
        self._wait_for_action_fail_completion(
            self.server, 'resize', 'compute_resize_instance'
        )
        self._wait_for_state_change(self.server, 'ACTIVE')
        self.assert_unharmed()

    @operations.shows('resize', 'the source fails')
    def test_failed_on_the_source(self):
        self.break_driver(
            'migrate_disk_and_power_off', exception.InternalError('broken')
        )
        self.start_resize()
        self.wait_for_error()
        self.assert_unharmed()

    @operations.shows(
        'resize', 'a device refuses on the destination', devices=['PCI']
    )
    def test_a_pci_device_refuses_on_the_destination(self):
        self.break_plug('PCI')
        self.assert_stays_on_the_destination(self.create_accel_flavor('both'))

    @operations.shows(
        'resize', 'a device refuses on the destination', devices=['mdev']
    )
    def test_an_mdev_refuses_on_the_destination(self):
        self.break_plug('mdev')
        self.assert_stays_on_the_destination(self.vgpus)

    def assert_stays_on_the_destination(self, flavor):
        """As Nova has it, with its new devices."""
        self.start_resize(flavor)
        self.wait_for_error()
        self.assertEqual(1, self.failures)
        self._wait_for_migration_status(self.server, ['error'])
        self.settle('host1')
        self._wait_for_assert(
            lambda: self.assertEqual(
                [('host2', 'active')], list(self.held(self.server))
            )
        )
        self._wait_for_assert(lambda: self.assertFalse(self.mdevs('host1')))
        self.assert_usage('host1')
        self._reboot_server(self.server, hard=True)
        devices = self.held(self.server)['host2', 'active']
        self.assertEqual(2, len(devices))
        self.assert_guest(self.server, 'host2', devices)
        self.delete(self.server)

    @operations.shows('resize', 'the destination acquires nothing')
    def test_the_destination_acquires_nothing(self):
        """A hard reboot does, when it can, as much as is allocated."""
        reconnect = self.cut_off('host2')
        self.start_resize()
        self.wait_for_error()
        self._wait_for_migration_status(self.server, ['error'])
        self.act_and_fail()
        reconnect()
        for host in self.hosts:
            self.settle(host)
        self.assertEqual({}, self.held(self.server))
        self._reboot_server(self.server, hard=True)
        devices = self.held(self.server)['host2', 'active']
        self.assertEqual(2, len(devices))
        self.assert_guest(self.server, 'host2', devices)
        self.assert_usage('host2', VGPU=2)
        self.delete(self.server)

    def act_and_fail(self):
        """A hard reboot that cannot acquire either says why."""
        self.api.post_server_action(
            self.server['id'], {'reboot': {'type': 'HARD'}}
        )
        self._wait_for_action_fail_completion(
            self.server, 'reboot', 'compute_reboot_instance'
        )
        server = self._wait_for_state_change(self.server, 'ERROR')
        self.assertIn(
            'Insufficient compute resources', server['fault']['message']
        )

    def test_nothing_is_allocated(self):
        """As an administrator may have left it."""
        reconnect = self.cut_off('host2')
        self.start_resize()
        self.wait_for_error()
        self._wait_for_migration_status(self.server, ['error'])
        reconnect()
        for host in self.hosts:
            self.settle(host)
        self.placement.delete(
            f'/allocations/{self.server["id"]}', version='1.12'
        )
        self.act_and_fail()
        self.assertIn(
            'can only be deleted',
            self.api.get_server(self.server['id'])['fault']['message'],
        )
        self.assertEqual({}, self.held(self.server))
        self.api.delete_server(self.server['id'])
        self._wait_for_assert(self.assert_nothing_left)

    def finish(self, action, method='unplug'):
        """End a resize; the devices of each kind refuse once."""
        self.start_resize(self.create_accel_flavor('both'))
        server = self._wait_for_state_change(self.server, 'VERIFY_RESIZE')
        after = self.held(server)['host2', 'active']
        for device in ('PCI', 'mdev'):
            self.break_plug(device, method)
        self.flags(host='host1')
        self.api.post_server_action(server['id'], {action: None})
        return after

    @operations.shows('resize', 'a device is stuck when it is confirmed')
    def test_a_device_is_stuck_when_it_is_confirmed(self):
        after = self.finish('confirmResize')
        server = self._wait_for_state_change(self.server, 'ACTIVE')
        for _time in range(2):
            self.assertEqual(
                self.before, self.held(server).get(('host1', 'old'))
            )
            self.settle('host1')
        self.assertEqual(2, self.failures)
        self.assert_guest(server, 'host2', after)
        self.assertFalse(self.mdevs('host1'))
        self.delete(server)

    @operations.shows('resize', 'a device is stuck when it is reverted')
    def test_a_device_is_stuck_when_it_is_reverted(self):
        after = self.finish('revertResize')
        server = self._wait_for_state_change(self.server, 'ACTIVE')
        for _time in range(2):
            self.assertEqual(after, self.held(server).get(('host2', 'active')))
            self.settle('host2')
        self.assertEqual(2, self.failures)
        self.assertFalse(self.mdevs('host2'))
        self.assert_unharmed()

    @operations.shows('resize', 'a device refuses when it is reverted')
    def test_a_device_refuses_when_it_is_reverted(self):
        """A hard reboot starts it with what it had."""
        self.finish('revertResize', 'plug')
        self.wait_for_error()
        self.act_and_fail()
        self.assertEqual(2, self.failures)
        self._reboot_server(self.server, hard=True)
        self.assert_unharmed()

    @operations.shows('resize', 'the destination fails, deleted')
    def test_failed_on_the_destination_and_deleted(self):
        self.break_driver('_create_image', exception.InternalError('broken'))
        self.start_resize()
        self.wait_for_error()
        self.api.delete_server(self.server['id'])
        self._wait_for_assert(
            lambda: self.assertEqual(
                {},
                {
                    key: devices
                    for key, devices in self.held(self.server).items()
                    if key[0] == 'host2'
                },
            )
        )
        self.settle('host1')
        self._wait_for_assert(self.assert_nothing_left)

    @operations.shows('resize', 'the revert fails on the source')
    def test_a_revert_that_fails_on_the_source(self):
        """A hard reboot there repairs it."""
        self.start_resize()
        server = self._wait_for_state_change(self.server, 'VERIFY_RESIZE')
        self.break_libvirt((fakelibvirt.Connection, 'defineXML'), 1)
        self.api.post_server_action(server['id'], {'revertResize': None})
        self.wait_for_error()
        self.assertEqual(1, self.failures)
        self.assertEqual(
            {('host1', 'active'): self.before}, self.held(self.server)
        )
        self.assert_usage('host2')
        self.assertFalse(self.mdevs('host2'))
        self._reboot_server(self.server, hard=True)
        self.assert_unharmed()

    @operations.shows('resize', 'the confirmation fails')
    def test_a_confirmation_that_fails(self):
        self.start_resize()
        server = self._wait_for_state_change(self.server, 'VERIFY_RESIZE')
        self.break_driver(
            'confirm_migration', exception.InternalError('broken')
        )
        self.api.post_server_action(server['id'], {'confirmResize': None})
        self.wait_for_error()
        self._wait_for_assert(lambda: self.assert_usage('host1'))
        self.assertEqual([('host2', 'active')], list(self.held(self.server)))
        self._reboot_server(self.server, hard=True)
        self.delete(self.server)
