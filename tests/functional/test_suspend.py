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
from nova.tests.fixtures import libvirt as fakelibvirt

from functional import one_server
from functional import operations
from nova_accel import exceptions

_ATTACH = (fakelibvirt.Domain, 'attachDeviceFlags')
_DETACH = (fakelibvirt.Domain, 'detachDeviceFlags')
_SAVE = (fakelibvirt.Domain, 'managedSave')


class SuspendTestCase(one_server.OneServerTestCase):
    """libvirt saves no guest that has a device: here that is so too."""

    def suspend(self):
        self.act('suspend')
        self.wait_for_status('SUSPENDED')
        self.assertFalse(self.domain().isActive())
        self.assertTrue(self.domain().hasManagedSaveImage(0))

    def resume(self):
        self.act('resume')
        self.wait_for_status('ACTIVE')
        self.assert_runs_with_all()
        self.assertFalse(self.domain().hasManagedSaveImage(0))


class TestSuspend(SuspendTestCase):
    @operations.shows('suspend')
    @operations.shows('resume')
    def test_suspend_and_resume(self):
        for _number in range(2):
            self.suspend()
            self.assert_held()
            self.resume()
        self.delete(self.server)

    def test_nobody_else_gets_its_devices(self):
        self.suspend()
        other = self.boot(self.flavor)
        self.assertFalse(set(self.devices) & set(self.guest_devices(other)))
        self._delete_server(other)
        self.resume()
        self.delete(self.server)

    def test_delete_a_suspended_server(self):
        self.suspend()
        self.delete(self.server)

    def test_hard_reboot_of_a_suspended_server(self):
        self.suspend()
        self.assert_hard_reboot_helps()
        self.delete(self.server)

    def test_reboot_of_the_host_meanwhile_and_the_api_away(self):
        self.suspend()
        self.reboot_host()
        with self.api_away():
            self.restart_compute_service(self.host)
            self.act('resume')
            self.wait_for_status('ACTIVE')
        self.assert_runs_with_all()
        self.delete(self.server)

    def test_a_server_without_accelerators(self):
        plain = self.boot(self._create_flavor())
        for action, status in (('suspend', 'SUSPENDED'), ('resume', 'ACTIVE')):
            self.admin_api.post_server_action(plain['id'], {action: None})
            self._wait_for_state_change(plain, status)
            self.assertEqual([], self.guest_devices(plain))
        self._delete_server(plain)
        self.assert_runs_with_all()
        self.delete(self.server)


class TestSuspendFails(SuspendTestCase):
    def assert_suspend_fails(self, status='ACTIVE'):
        return self.assert_fails('suspend', None, 'suspend', status)

    @operations.shows('suspend', 'a device is not detached')
    def test_a_device_that_is_not_detached(self):
        self.break_libvirt(_DETACH, times=1)
        self.assertIn('libvirtError', self.assert_suspend_fails())
        self.assert_runs_with_all()
        self.suspend()
        self.resume()
        self.delete(self.server)

    @operations.shows('suspend', 'the guest does not let go')
    def test_a_guest_that_does_not_let_go(self):
        self.flags(device_detach_timeout=1, group='libvirt')
        with fixtures.MonkeyPatch(
            'nova.tests.fixtures.libvirt.Domain.detachDeviceFlags',
            lambda domain, xml, flags: None,
        ):
            fault = self.assert_suspend_fails()
        self.assertIn('has not let go of its accelerators', fault)
        for device in self.devices:
            self.assertNotIn(device, fault)
            self.assertIn(device, self.stdlog.logger.output)
        self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('suspend', 'the guest is not saved')
    def test_a_guest_that_is_not_saved(self):
        self.break_libvirt(_SAVE, times=1)
        self.assertIn('libvirtError', self.assert_suspend_fails())
        self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('suspend', 'devices do not come back either')
    def test_devices_that_do_not_come_back_either(self):
        self.break_libvirt(_SAVE, times=1)
        self.break_libvirt(_ATTACH, times=1)
        self.assertIn(
            'a hard reboot gives the server its accelerators back',
            self.assert_suspend_fails('ERROR'),
        )
        self.assert_held()
        self.assert_hard_reboot_helps()
        self.delete(self.server)

    @operations.shows('suspend', 'the guest dies')
    def test_a_guest_that_dies_before_it_is_saved(self):
        """It has let go of its devices, and they are still its own."""

        def die(domain, flags):
            domain.destroy()
            raise fakelibvirt.make_libvirtError(
                fakelibvirt.libvirtError,
                'domain is not running',
                error_code=fakelibvirt.VIR_ERR_OPERATION_INVALID,
            )

        with fixtures.MonkeyPatch(
            'nova.tests.fixtures.libvirt.Domain.managedSave', die
        ):
            self.assertIn('libvirtError', self.assert_suspend_fails())
        self.assertFalse(self.domain().isActive())
        self.assert_held()
        self.assert_hard_reboot_helps()
        self.suspend()
        self.resume()
        self.delete(self.server)


class TestResumeFails(SuspendTestCase):
    def setUp(self):
        super().setUp()
        self.suspend()

    def assert_resume_fails(self, status='SUSPENDED'):
        return self.assert_fails('resume', None, 'resume', status)

    @operations.shows('resume', 'a device is not attached')
    def test_a_device_that_is_not_attached(self):
        """Be it the first or the last one, it can be tried again."""
        attach = fakelibvirt.Domain.attachDeviceFlags
        for kind in ('mdev', 'pci'):

            def refuse(domain, xml, flags=0, kind=kind):
                if f'type="{kind}"' in xml:
                    raise fakelibvirt.make_libvirtError(
                        fakelibvirt.libvirtError,
                        f'the {kind} is stuck',
                        error_code=fakelibvirt.VIR_ERR_INTERNAL_ERROR,
                    )
                attach(domain, xml, flags)

            with fixtures.MonkeyPatch(
                'nova.tests.fixtures.libvirt.Domain.attachDeviceFlags', refuse
            ):
                self.assertIn('libvirtError', self.assert_resume_fails())
                self.assertIn(
                    f'the {kind} is stuck', self.stdlog.logger.output
                )
            self.assertFalse(self.domain().isActive())
            self.assertTrue(self.domain().hasManagedSaveImage(0))
            self.assert_held()
        self.resume()
        self.delete(self.server)

    @operations.shows('resume', 'it is not suspended again')
    def test_a_guest_that_is_not_suspended_again(self):
        self.break_libvirt(_ATTACH, times=2)
        self.break_libvirt(_SAVE, times=1)
        self.assertIn(
            'a hard reboot gives the server its accelerators back',
            self.assert_resume_fails('ERROR'),
        )
        self.assert_held()
        self.assert_hard_reboot_helps()
        self.delete(self.server)

    @operations.shows('resume', 'a device refuses')
    def test_a_device_that_refuses(self):
        self.reboot_host()
        for _device in self.each_refusing():
            self.assertIn('the device is stuck', self.assert_resume_fails())
            self.assertTrue(self.domain().hasManagedSaveImage(0))
        self.resume()
        self.delete(self.server)

    @operations.shows('resume', 'the journal is lost')
    def test_a_lost_journal(self):
        """The guest is not started without what the API says that it has."""
        (path,) = self.state_path.glob('nova_accel/*/*.json')
        path.unlink()
        self.restart_compute_service(self.host)
        with self.api_away():
            self.assertIn(
                exceptions.ServiceUnavailable.PUBLIC,
                self.assert_resume_fails(),
            )
        self.resume()
        self.delete(self.server)
