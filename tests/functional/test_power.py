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

import time

import fixtures
from nova import context as nova_context
from nova.tests.fixtures import libvirt as fakelibvirt

from functional import one_server
from functional import operations
from nova_accel.model.profiles import device_profile

_COMPAT = device_profile.CYBORG_FLAVOR_KEY
_OTHER_IMAGE = '70a599e0-31e7-49b7-b260-868f441e862b'


class TestPower(one_server.OneServerTestCase):
    """What turns the guest off and on, or stops it for a while."""

    @operations.shows('rescue')
    @operations.shows('unrescue')
    def test_rescue_and_unrescue(self):
        self.act('rescue', {})
        self.wait_for_status('RESCUE')
        self.assert_runs_with_all()
        self.act('unrescue')
        self.wait_for_status('ACTIVE')
        self.assert_runs_with_all()
        self.delete(self.server)

    def test_delete_a_rescued_server(self):
        self.act('rescue', {})
        self.wait_for_status('RESCUE')
        self.delete(self.server)

    @operations.shows('rescue', 'a device refuses')
    def test_rescue_with_a_device_that_refuses(self):
        for _device in self.each_refusing():
            self.assertIn(
                'the device is stuck',
                self.assert_fails('rescue', {}, 'rescue', 'ERROR'),
            )
            self.assert_hard_reboot_helps()
        self.delete(self.server)

    def test_unrescue_after_a_reboot_of_the_host(self):
        self.act('rescue', {})
        self.wait_for_status('RESCUE')
        self.reboot_host()
        self.act('unrescue')
        self.wait_for_status('ACTIVE')
        self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('unrescue', 'a device refuses')
    def test_unrescue_with_a_device_that_refuses(self):
        for device in ('PCI', 'mdev'):
            self.act('rescue', {})
            self.wait_for_status('RESCUE')
            self.break_plug(device)
            self.assertIn(
                'the device is stuck',
                self.assert_fails('unrescue', None, 'unrescue', 'ERROR'),
            )
            self.assert_hard_reboot_helps()
        self.delete(self.server)

    def soft_delete(self):
        self.flags(reclaim_instance_interval=30)
        self.api.delete_server(self.server['id'])
        self.wait_for_status('SOFT_DELETED')
        self.assertFalse(self.domain().isActive())
        self.assert_kept()

    @operations.shows('soft delete, restore')
    def test_soft_delete_and_restore(self):
        self.soft_delete()
        self.reboot_host()
        self.act('restore')
        self.wait_for_status('ACTIVE')
        self.assert_runs_with_all()
        self.flags(reclaim_instance_interval=0)
        self.delete(self.server)

    @operations.shows('soft delete, restore', 'a device refuses')
    def test_restore_with_a_device_that_refuses(self):
        self.soft_delete()
        for _device in self.each_refusing():
            self.assertIn(
                'the device is stuck',
                self.assert_fails('restore', None, 'restore', 'SOFT_DELETED'),
            )
            self.assert_held()
        self.act('restore')
        self.wait_for_status('ACTIVE')
        self.assert_runs_with_all()
        self.flags(reclaim_instance_interval=0)
        self.delete(self.server)

    @operations.shows('soft delete, restore', 'reclaimed instead')
    def test_soft_delete_and_reclaim(self):
        self.soft_delete()
        self.flags(reclaim_instance_interval=1)
        # Older than the interval, which is in whole seconds.
        time.sleep(2.1)
        self.computes[self.host].manager._reclaim_queued_deletes(
            nova_context.get_admin_context()
        )
        self._wait_until_deleted(self.server)
        self.assert_nothing_left()

    def test_soft_delete_and_force_delete(self):
        self.soft_delete()
        self.act('forceDelete')
        self._wait_until_deleted(self.server)
        self.assert_nothing_left()

    @operations.shows('rebuild', 'with the same image', 'with a new image')
    def test_rebuild(self):
        for image in (self.server['image']['id'], _OTHER_IMAGE):
            self.act('rebuild', {'imageRef': image})
            self.wait_for_status('ACTIVE')
            self.assertEqual(image, self.server['image']['id'])
            self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('rebuild', 'the guest does not start')
    def test_rebuild_that_fails(self):
        self.break_libvirt((fakelibvirt.Domain, 'createWithFlags'), times=1)
        self.assert_fails(
            'rebuild', {'imageRef': _OTHER_IMAGE}, 'rebuild', 'ERROR'
        )
        self.assert_held()
        self.assert_hard_reboot_helps()
        self.delete(self.server)

    @operations.shows('rebuild', 'a device refuses')
    def test_rebuild_with_a_device_that_refuses(self):
        """Its guest is gone by then: it is no more ACTIVE."""
        for _device in self.each_refusing():
            self.assertIn(
                'the device is stuck',
                self.assert_fails(
                    'rebuild', {'imageRef': _OTHER_IMAGE}, 'rebuild', 'ERROR'
                ),
            )
            self.assertIn(
                'the device is stuck',
                self.api.get_server(self.server['id'])['fault']['message'],
            )
            self.assert_held()
            self.assert_hard_reboot_helps()
        self.delete(self.server)

    def test_delete_after_a_rebuild_that_failed(self):
        self.break_libvirt((fakelibvirt.Domain, 'createWithFlags'), times=1)
        self.assert_fails(
            'rebuild', {'imageRef': _OTHER_IMAGE}, 'rebuild', 'ERROR'
        )
        self.delete(self.server)

    @operations.shows('crash dump')
    @operations.shows('set password')
    @operations.shows('lock, unlock')
    def test_crash_dump_password_and_lock(self):
        self.act('trigger_crash_dump')
        self.act('lock')
        self.act('unlock')
        with fixtures.MonkeyPatch(
            'nova.virt.libvirt.LibvirtDriver._can_set_admin_password',
            lambda driver, image_meta: None,
        ):
            self.act('changePassword', {'adminPass': 'secret'})
            self.wait_for_status('ACTIVE')
        actions = self.admin_api.get_instance_actions(self.server['id'])
        self.assertEqual(
            {
                'create',
                'trigger_crash_dump',
                'lock',
                'unlock',
                'changePassword',
            },
            {action['action'] for action in actions},
        )
        self.assertEqual({None}, {action['message'] for action in actions})
        self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('attach, detach an interface')
    @operations.shows('attach, detach a volume')
    def test_interfaces_and_volumes(self):
        # The simulated libvirt does not always tell when a disk is detached,
        # and then Nova looks for itself.
        self.flags(device_detach_timeout=1, group='libvirt')
        port = self.neutron.port_2['id']
        self.neutron.create_port({'port': self.neutron.port_2})
        volume = self.cinder.IMAGE_BACKED_VOL
        self._attach_interface(self.server, port)
        self.assert_runs_with_all()
        self._attach_volume(self.server, volume)
        self.assert_runs_with_all()
        self._reboot_server(self.server, hard=True)
        self.assert_runs_with_all()
        self._detach_interface(self.server, port)
        self.assert_runs_with_all()
        self.api.delete_server_volume(self.server['id'], volume)
        self._wait_for_volume_detach(self.server['id'], volume)
        self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('reboot of the host')
    def test_reboot_of_the_host(self):
        """All is made again, although the API is away."""
        self.flags(resume_guests_state_on_host_boot=True)
        self.reboot_host()
        with self.api_away():
            self.restart_compute_service(self.host)
            self._wait_for_assert(
                lambda: self.assertEqual(
                    (1, 1),
                    (self.domain().isActive(), len(self.mdevs(self.host))),
                )
            )
        self.settle_twice()
        self.assert_runs_with_all()
        self.delete(self.server)

    def settle_twice(self):
        """The API hears of what is missing, and then of what is not."""
        for _time in range(2):
            self.settle(self.host)

    def test_reboot_of_the_host_of_a_stopped_server(self):
        """Its mediated device is made again, and Provisioning until then."""
        self.act('os-stop')
        self.wait_for_status('SHUTOFF')
        self.reboot_host()
        self.restart_compute_service(self.host)
        self._wait_for_assert(
            lambda: self.assertEqual(
                ['Bound', 'Provisioning'],
                sorted(arq['state'] for arq in self.arqs(self.server)),
            )
        )
        self.assertFalse(self.mdevs(self.host))
        self.settle_twice()
        self.assert_kept()
        self.act('os-start')
        self.wait_for_status('ACTIVE')
        self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('reboot of the host', 'a device refuses')
    def test_reboot_of_the_host_with_a_device_that_refuses(self):
        self.flags(resume_guests_state_on_host_boot=True)
        for _device in self.each_refusing():
            self.reboot_host()
            self.restart_compute_service(self.host)
            self.assertEqual(
                'ERROR', self.api.get_server(self.server['id'])['status']
            )
            self.settle_twice()
            self.assertEqual(self.arqs_before, self.arqs(self.server))
            self.assert_hard_reboot_helps()
        self.delete(self.server)


class TestPowerCompat(TestPower):
    flavor_key = _COMPAT


class TestLostJournal(one_server.OneServerTestCase):
    def setUp(self):
        super().setUp()
        self.flags(resume_guests_state_on_host_boot=True)
        self.reboot_host()
        (path,) = self.state_path.glob('nova_accel/*/*.json')
        path.unlink()

    def test_reboot_of_the_host(self):
        """The API knows what the server has."""
        self.restart_compute_service(self.host)
        self._wait_for_assert(self.assert_runs_with_all)
        self.delete(self.server)

    def test_reboot_of_the_host_without_the_api(self):
        """No guest starts without its devices."""
        with self.api_away():
            self.restart_compute_service(self.host)
        self.assertEqual(
            'ERROR', self.api.get_server(self.server['id'])['status']
        )
        self.assertEqual(
            [],
            self.connection(self.host).listAllDomains(
                fakelibvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
            ),
        )
        self.assert_hard_reboot_helps()
        self.delete(self.server)


class TestLostJournalCompat(TestLostJournal):
    flavor_key = _COMPAT
