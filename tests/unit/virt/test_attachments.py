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

import dataclasses
import pathlib

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.db import accelerator_request
from nova_accel.db import device_profile
from nova_accel.model import arq
from nova_accel.model import matching
from nova_accel.testing import accelerator_api
from nova_accel.testing import reports
from nova_accel.virt import attachments
from nova_accel.virt import journal

HOST = 'compute-1'
INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
OTHER = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a02'


class RecordingDriver:
    """A device driver whose devices are a set of handles."""

    def __init__(self):
        self.plugged = set()
        self.refuses = False

    def plug(self, handle):
        self._check()
        self.plugged.add(handle)

    def unplug(self, handle):
        self._check()
        self.plugged.discard(handle)

    def _check(self):
        if self.refuses:
            raise exceptions.DeviceError('the device is stuck')


class TestAttachments(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.api = self.useFixture(accelerator_api.AcceleratorApi())
        self.host = reports.SimulatedHost(HOST, regions=(1, 1))
        self.host.report()
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        self.driver = RecordingDriver()
        self.drivers = {
            handle.uuid: 'fake' for device in self.host.devices()
            for deployable in device.deployables
            for handle in deployable.handles}
        self.attachments = self.restarted()

    def restarted(self):
        """The attachments as the next nova-compute finds them."""
        return attachments.Attachments(
            HOST, journal.Journal(self.directory), self.api.client(HOST),
            {'fake': self.driver}, lambda: self.drivers)

    def acquire(self, instance=INSTANCE, bus=0):
        self.attachments.acquire(instance, 'project', 'fpga', [
            matching.Provider(self.host.rp_uuid(bus), {'FPGA': 1},
                              frozenset({'CUSTOM_REGION0'}))])

    def arqs(self):
        return accelerator_request.get_all()

    def assert_nothing_left(self):
        self.assertEqual([], self.arqs())
        self.assertEqual(set(), self.driver.plugged)
        self.assertEqual([], journal.Journal(self.directory).entries())

    def test_from_acquire_to_release(self):
        self.assertFalse(self.attachments.holds(INSTANCE))
        self.acquire()
        self.assertTrue(self.attachments.holds(INSTANCE))
        self.assertTrue(self.attachments.holds_pci(INSTANCE))
        (bound,) = self.attachments.plug(INSTANCE)
        self.assertEqual({bound.handle}, self.driver.plugged)
        self.assertEqual([bound.uuid], [arq['uuid'] for arq in self.arqs()])
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_plug_again_gives_the_same_also_after_a_restart(self):
        self.acquire()
        arqs = self.attachments.plug(INSTANCE)
        self.assertEqual(arqs, self.attachments.plug(INSTANCE))
        self.api.refuse = True
        self.assertEqual(arqs, self.restarted().plug(INSTANCE))

    def test_an_instance_without_any(self):
        self.assertEqual((), self.attachments.plug(INSTANCE))
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_acquired_again_it_keeps_what_it_has(self):
        """As a rebuild does."""
        self.acquire()
        arqs = self.attachments.plug(INSTANCE)
        self.acquire()
        self.assertEqual(arqs, self.attachments.plug(INSTANCE))

    def test_what_is_replaced_is_unplugged(self):
        self.acquire(bus=0)
        (old,) = self.attachments.plug(INSTANCE)
        self.acquire(bus=1)
        self.assertEqual(set(), self.driver.plugged)
        (new,) = self.attachments.plug(INSTANCE)
        self.assertNotEqual(old.handle, new.handle)
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_a_busy_device_leaves_nothing(self):
        self.acquire(OTHER)
        self.assertRaises(exceptions.AcceleratorsBusy, self.acquire)
        self.assertFalse(self.attachments.holds(INSTANCE))
        self.attachments.release(OTHER)
        self.assert_nothing_left()

    def test_a_refused_repetition_leaves_what_there_was(self):
        self.acquire(OTHER, bus=1)
        self.acquire(bus=0)
        arqs = self.attachments.plug(INSTANCE)
        self.assertRaises(
            exceptions.AcceleratorsBusy, self.acquire, bus=1)
        self.assertEqual(arqs, self.attachments.plug(INSTANCE))
        self.attachments.release(OTHER)
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_a_lost_answer_is_released_later(self):
        self.api.lose_answers = True
        self.assertRaises(exceptions.ServiceUnavailable, self.acquire)
        self.assertEqual(1, len(self.arqs()))
        self.assertEqual((), self.attachments.plug(INSTANCE))
        self.attachments.retry()
        self.api.lose_answers = False
        self.attachments.retry()
        self.assert_nothing_left()

    def test_a_lost_answer_of_a_repetition_keeps_what_there_was(self):
        self.acquire()
        arqs = self.attachments.plug(INSTANCE)
        self.api.lose_answers = True
        self.assertRaises(exceptions.ServiceUnavailable, self.acquire)
        self.api.lose_answers = False
        self.assertEqual(arqs, self.attachments.plug(INSTANCE))
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_an_api_that_is_away_delays_the_release(self):
        self.acquire()
        self.attachments.plug(INSTANCE)
        self.api.refuse = True
        self.attachments.release(INSTANCE)
        self.assertEqual(set(), self.driver.plugged)
        self.attachments.retry()
        self.api.refuse = False
        restarted = self.restarted()
        self.assertFalse(restarted.holds(INSTANCE))
        restarted.retry()
        self.assert_nothing_left()

    def test_a_stuck_device_is_not_free_for_the_next_tenant(self):
        self.acquire()
        self.attachments.plug(INSTANCE)
        self.driver.refuses = True
        self.attachments.release(INSTANCE)
        self.assertRaises(exceptions.AcceleratorsBusy, self.acquire, OTHER)
        self.driver.refuses = False
        self.attachments.retry()
        self.assert_nothing_left()

    def test_a_device_that_is_gone(self):
        self.acquire()
        self.drivers.clear()
        error = self.assertRaises(
            exceptions.DeviceError, self.attachments.plug, INSTANCE)
        self.assertIn('0000:00:01.0', str(error))
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_acquiring_while_a_release_is_pending(self):
        """As an unshelve to the same host does."""
        self.acquire()
        self.api.refuse = True
        self.attachments.release(INSTANCE)
        self.api.refuse = False
        self.acquire()
        self.attachments.retry()
        self.assertEqual(1, len(self.attachments.plug(INSTANCE)))
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_what_a_killed_nova_compute_was_acquiring_is_undone(self):
        self.acquire()
        journal_ = journal.Journal(self.directory)
        (entry,) = journal_.entries()
        journal_.write(dataclasses.replace(
            entry, step=journal.Step.ACQUIRING, arqs=()))
        restarted = self.restarted()
        restarted.undo_interrupted()
        restarted.retry()
        self.assert_nothing_left()

    def test_a_restart_keeps_what_is_held(self):
        self.acquire()
        restarted = self.restarted()
        restarted.undo_interrupted()
        restarted.retry()
        self.assertTrue(restarted.holds(INSTANCE))

    def test_a_binding_that_another_attempt_took_over(self):
        """The journal of an earlier life of the host must not undo it."""
        self.acquire()
        (entry,) = journal.Journal(self.directory).entries()
        self.api.client(HOST).acquire(
            INSTANCE, arq.Role.ACTIVE, entry.attempt + 1, 'project', 'fpga',
            [matching.Provider(self.host.rp_uuid(), {'FPGA': 1},
                               frozenset())])
        self.attachments.release(INSTANCE)
        self.assertEqual(1, len(self.arqs()))
        self.assertEqual([], journal.Journal(self.directory).entries())

    def test_roles_are_apart(self):
        self.acquire(bus=0)
        self.attachments.acquire(
            INSTANCE, 'project', 'fpga', [matching.Provider(
                self.host.rp_uuid(1), {'FPGA': 1}, frozenset())],
            arq.Role.INCOMING)
        self.assertEqual(2, len(self.attachments.held_arqs()))
        self.attachments.release(INSTANCE, arq.Role.INCOMING)
        self.assertEqual(1, len(self.attachments.plug(INSTANCE)))
