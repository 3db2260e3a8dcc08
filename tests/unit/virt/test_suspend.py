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

import contextlib
import types

from nova import exception
from nova.compute import power_state

from nova_accel import exceptions
from nova_accel.host import nvidia_smi
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.virt import hot_plug
from nova_accel.virt import suspend
from nova_accel.virt.fabric import no_fabric
from unit.virt import mixin_case

GPU = pci_address.PciAddress(0, 0x81, 0, 0)
ARQ = types.SimpleNamespace(handle=attach_handle.AttachHandle('uuid', GPU))

INSTANCE = types.SimpleNamespace(
    get_network_info=list,
    uuid='5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01',
    flavor=types.SimpleNamespace(
        extra_specs={'nova_accel:device_profile': 'gpu'}
    ),
)


class Accelerators:
    """What the mixin uses of the parts of a host and of ``OsAcc``."""

    def __init__(self):
        self.attachments = self.held = self
        self.arqs = (ARQ,)
        self.left = ()
        self.sysfs = None
        self.fault = None
        self.plugged = []
        self.fabric = no_fabric.NoFabric()

    def arqs_of(self, instance_uuid):
        if self.fault:
            raise exceptions.DeviceError(self.fault)
        return self.arqs

    def left_by(self, instance_uuid):
        return self.left

    def ready_ports(self, instance, network_info):
        pass

    def owns_mdev(self, uuid):
        return uuid == 'ours'

    def ready(self, instance):
        self.plugged.append(instance)
        return self.arqs_of(instance.uuid)


class NovaDriver:
    """What the mixin is mixed into: a host with one guest."""

    def __init__(self):
        self.state = power_state.RUNNING
        self.fails = set()
        self.calls = []
        self._host = self

    def do(self, name):
        self.calls.append(name)
        if name in self.fails:
            raise exception.InternalError(f'{name} failed')

    def get_guest(self, instance):
        return self

    def get_power_state(self, host):
        return self.state

    def suspend(self, context, instance):
        self.do('suspend')
        self.state = power_state.SHUTDOWN

    def resume(self, context, instance, network_info, share_info=None):
        self.state = power_state.RUNNING
        self.do('resume')

    def pause(self):
        self.do('pause')

    def _attach_mediated_devices(self, guest, devs):
        self.calls += [dev.uuid for dev in devs]

    def _resume_guest_after_snapshot(
        self, context, live_snapshot, original_power_state, instance, guest
    ):
        self.do('resume')

    def _needs_suspend_resume_for_snapshot(self, live_snapshot, state):
        return not live_snapshot

    def rescue(self, context, instance):
        self.do('rescue')

    def unrescue(self, context, instance):
        self.do('unrescue')


class Driver(suspend.SuspendMixin, NovaDriver):
    pass


class TestSuspendMixin(mixin_case.MixinTestCase):
    driver_class = Driver
    accelerators_class = Accelerators

    def setUp(self):
        super().setUp()
        self.driver._resuming = set()
        self.is_kept_away = False
        self.patch(nvidia_smi, 'kept_away', self.kept_away)
        self.patch(hot_plug, 'attach', self.attach)
        self.patch(
            hot_plug, 'detach', lambda guest, arqs, *_args: guest.do('detach')
        )

    @contextlib.contextmanager
    def kept_away(self, sysfs, functions):
        self.assertEqual([GPU], functions)
        self.is_kept_away = True
        try:
            yield
        finally:
            self.is_kept_away = False

    def attach(self, guest, arqs):
        """Libvirt takes the GPU from NVIDIA's driver."""
        self.assertTrue(self.is_kept_away)
        guest.do('attach')

    def suspend(self):
        self.driver.suspend(None, INSTANCE)

    def resume(self):
        self.driver.state = power_state.SHUTDOWN
        self.driver.resume(None, INSTANCE, [], share_info=None)

    def test_nova_does_not_choose_the_places_of_our_mdevs(self):
        self.driver._attach_mediated_devices(
            self.driver,
            [types.SimpleNamespace(uuid=uuid) for uuid in ('a', 'ours', 'b')],
        )
        self.assertEqual(['a', 'b'], self.driver.calls)

    def snapshot_taken(self, live):
        self.driver._resume_guest_after_snapshot(
            None, live, power_state.RUNNING, INSTANCE, self.driver
        )

    def assert_rolled_back(self, fault, text, function):
        """The server is left as it was."""
        error = self.assertRaises(exception.InstanceFaultRollback, function)
        self.assertIsInstance(error.inner_exception, fault)
        self.assertIn(text, str(error.inner_exception))

    def assert_failed(self, fault, text, function):
        self.assertIn(text, str(self.assertRaises(fault, function)))

    def test_suspend(self):
        self.suspend()
        self.assertEqual(['detach', 'suspend'], self.driver.calls)

    def test_suspend_with_what_it_is_not_to_have(self):
        """The guest may let go of it now."""
        self.accelerators.arqs, self.accelerators.left = (), (ARQ,)
        self.suspend()
        self.assertEqual(['detach', 'suspend'], self.driver.calls)

    def test_rescue_with_what_it_is_not_to_have(self):
        """The guest is unrescued without it."""
        self.patch(
            hot_plug,
            'leave_out',
            lambda guest, arqs: guest.do(f'leave out {len(arqs)}'),
        )
        self.driver.rescue(None, INSTANCE)
        self.accelerators.left = (ARQ,)
        self.driver.rescue(None, INSTANCE)
        self.assertEqual(
            ['rescue', 'leave out 1', 'rescue'], self.driver.calls
        )

    def test_suspend_without_accelerators(self):
        self.accelerators.arqs = ()
        self.driver.state = power_state.PAUSED
        self.suspend()
        self.assertEqual(['suspend'], self.driver.calls)

    def test_a_suspend_without_accelerators_fails_as_novas(self):
        self.accelerators.arqs = ()
        self.driver.fails = {'suspend'}
        self.assertRaises(exception.InternalError, self.suspend)
        self.assertEqual(['suspend'], self.driver.calls)

    def test_a_paused_guest_is_not_asked(self):
        self.driver.state = power_state.PAUSED
        self.assert_rolled_back(
            exception.InstanceSuspendFailure, 'paused', self.suspend
        )
        self.assertEqual([], self.driver.calls)

    def test_a_damaged_journal(self):
        self.accelerators.fault = 'the journal is damaged'
        for fault, function in (
            (exception.InstanceSuspendFailure, self.suspend),
            (exception.InstanceResumeFailure, self.resume),
        ):
            self.assert_rolled_back(
                fault, exceptions.DeviceError.PUBLIC, function
            )
        self.assertEqual([], self.driver.calls)

    def test_a_failed_suspend_is_undone(self):
        for step in ('detach', 'suspend'):
            self.driver.fails = {step}
            self.assert_rolled_back(
                exception.InstanceSuspendFailure,
                f'{step} failed',
                self.suspend,
            )
            self.assertEqual('attach', self.driver.calls[-1])

    def test_the_reason_inside_a_rollback_of_novas_is_told(self):
        def refuse(driver, context, instance):
            raise exception.InstanceFaultRollback(
                exception.InstanceSuspendFailure(reason='too old')
            )

        self.patch(NovaDriver, 'suspend', refuse)
        self.assert_rolled_back(
            exception.InstanceSuspendFailure,
            'Failed to suspend instance: Failed to suspend instance: too old',
            self.suspend,
        )

    def test_a_failed_suspend_that_cannot_be_undone(self):
        self.driver.fails = {'suspend', 'attach'}
        self.assert_failed(
            exception.InstanceSuspendFailure,
            'suspend failed; attach failed; a hard reboot',
            self.suspend,
        )

    def test_resume(self):
        self.resume()
        self.assertEqual(['resume', 'attach'], self.driver.calls)
        self.assertEqual([INSTANCE], self.accelerators.plugged)

    def test_a_resume_without_accelerators(self):
        self.accelerators.arqs = ()
        self.resume()
        self.driver.fails = {'resume'}
        self.assertRaises(exception.InternalError, self.resume)
        self.assertEqual(['resume', 'resume'], self.driver.calls)

    def test_a_failed_resume_is_undone(self):
        for step, done in (
            ('resume', ['resume']),
            ('attach', ['resume', 'attach']),
        ):
            self.driver.fails = {step}
            del self.driver.calls[:]
            self.assert_rolled_back(
                exception.InstanceResumeFailure, f'{step} failed', self.resume
            )
            self.assertEqual([*done, 'detach', 'suspend'], self.driver.calls)
            self.assertEqual(power_state.SHUTDOWN, self.driver.state)

    def test_a_failed_resume_that_cannot_be_undone(self):
        self.driver.fails = {'attach', 'suspend'}
        self.assert_failed(
            exception.InstanceResumeFailure,
            'attach failed; it could not be suspended again (Failed to '
            'suspend instance: suspend failed; attach failed; a hard reboot',
            self.resume,
        )

    def test_a_guest_that_has_not_started_is_not_suspended(self):
        def fail(driver, *args, **kwargs):
            raise exception.InternalError('no network')

        self.patch(NovaDriver, 'resume', fail)
        self.assertRaises(exception.InternalError, self.resume)

        def gone(driver, instance):
            raise exception.InstanceNotFound(instance_id=instance.uuid)

        self.patch(NovaDriver, 'get_guest', gone)
        self.assertRaises(exception.InternalError, self.resume)
        self.assertEqual([], self.driver.calls)

    def test_after_a_cold_snapshot(self):
        self.snapshot_taken(live=False)
        self.assertEqual(['resume', 'attach'], self.driver.calls)

    def test_after_a_live_snapshot(self):
        self.snapshot_taken(live=True)
        self.assertEqual(['resume'], self.driver.calls)

    def test_after_a_cold_snapshot_a_device_is_stuck(self):
        self.driver.fails = {'attach'}
        self.assert_failed(
            exception.InstanceResumeFailure,
            'attach failed; a hard reboot',
            lambda: self.snapshot_taken(live=False),
        )

    def test_unrescue(self):
        self.driver.unrescue(None, INSTANCE)
        self.assertEqual(['unrescue'], self.driver.calls)
        self.assertEqual([INSTANCE], self.accelerators.plugged)

    def test_unrescue_without_its_devices(self):
        self.accelerators.fault = 'it is gone'
        self.assert_failed(
            exception.InstanceUnRescueFailure,
            exceptions.DeviceError.PUBLIC,
            lambda: self.driver.unrescue(None, INSTANCE),
        )
        self.assertEqual([], self.driver.calls)
