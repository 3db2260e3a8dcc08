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
import dataclasses
import logging
import pathlib
import time
import types

import fixtures
from oslo_utils import uuidutils
import sqlalchemy as sa
import testtools

from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.db import device_profile
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import arq_types
from nova_accel.model import host_findings
from nova_accel.model.providers import reshape
from nova_accel.state import durable_file
from nova_accel.testing import accelerator_api
from nova_accel.testing import fake_sysfs
from nova_accel.testing import reports
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import attaching
from nova_accel.virt.holding import holdings
from nova_accel.virt.holding import intents
from nova_accel.virt.holding import plugging
from rig import quick_database

HOST = 'compute-1'
INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
OTHER = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a02'


class RecordingDriver:
    """A device driver whose devices are a set of handles."""

    def __init__(self):
        self.plugged = set()
        self.refuses = False
        self.bug = None

    def plug(self, handle):
        self._check()
        self.plugged.add(handle)

    def check_migratable(self, handle):
        self._check()

    def migration_facts(self, handles):
        self._check()
        return tuple(
            {'driver': '550'} if handle.vgpu_type else {} for handle in handles
        )

    def unplug(self, handle):
        self._check()
        self.plugged.discard(handle)

    def _check(self):
        if self.bug is not None:
            raise self.bug
        if self.refuses:
            raise exceptions.DeviceError('the device is stuck')


class AttachmentsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.findings = host_findings.Findings()
        self.useFixture(quick_database.QuickDatabases())
        self.api = self.useFixture(accelerator_api.AcceleratorApi())
        self.host = reports.SimulatedHost(
            HOST, regions=(1, 1), serials=((0, 'S1'),)
        )
        self.host.report()
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.driver = RecordingDriver()
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        self.released = []
        self.drivers = {
            handle.uuid: 'fake'
            for device in self.host.devices()
            for deployable in device.deployables
            for handle in deployable.handles
        }
        self.present = {}
        self.guests = types.SimpleNamespace(
            check_unused=self.check_unused, use_any=self.use_any
        )
        self.in_guests = set()
        # Instance uuid -> the device profile that Nova's flavor of it names.
        self.named = {}
        self.name_fault = None
        self.attachments = self.restarted()

    def check_unused(self, handle):
        if handle.uuid in self.in_guests:
            raise exceptions.DeviceError('a guest has it')

    def use_any(self, handles, made_anew):
        return any(handle.uuid in self.in_guests for handle in handles)

    def name_profile(self, instance_uuid, name):
        if self.name_fault is not None:
            raise self.name_fault
        self.named[instance_uuid] = name

    def note_released(self, arqs):
        """At that moment the journal keeps others from having them, still."""
        uuids = {request.handle.uuid for request in arqs}
        held = self.attachments.held
        self.assertLessEqual(
            uuids,
            held.releasing()
            | {request.handle.uuid for request in held.arqs()},
        )
        self.released += uuids

    @property
    def view(self):
        return types.SimpleNamespace(
            drivers=self.drivers,
            handles=self.present,
            unusable=lambda _orders: frozenset(),
        )

    def restarted(self):
        """The attachments as the next nova-compute finds them."""
        entries = attach_journal.AttachJournal(self.directory)
        return attaching.Attachments(
            HOST,
            entries,
            holdings.Holdings(entries),
            self.api.client(HOST),
            plugging.Devices(
                HOST,
                self,
                {'fake': self.driver},
                lambda uuid: None,
                self.sysfs.sysfs,
            ),
            types.SimpleNamespace(released=self.note_released),
            self,
            self.guests,
            self.name_profile,
        )

    def rewrite(self, **changes):
        """Change the only entry of the journal."""
        journal = attach_journal.AttachJournal(self.directory)
        (entry,) = journal.entries()
        journal.write(dataclasses.replace(entry, **changes))

    def acquire(self, instance=INSTANCE, bus=0):
        self.attachments.hold(
            intents.acquire(
                instance,
                'project',
                'fpga',
                [self.host.allocated(bus)],
            )
        )

    def acquire_two(self):
        """Both cards."""
        device_profile.create('two', [{'resources:FPGA': '1'}] * 2)
        self.attachments.hold(
            intents.acquire(
                INSTANCE,
                'project',
                'two',
                [self.host.allocated(bus) for bus in range(2)],
            )
        )

    def adopt(self):
        """What Nova's Cyborg client binds, then the host."""
        (made,) = client_arqs.create('fpga', 'project')
        client_arqs.bind(
            {
                made['uuid']: {
                    'hostname': HOST,
                    'instance_uuid': INSTANCE,
                    'device_rp_uuid': self.host.rp_uuid(),
                }
            }
        )
        self.attachments.hold(intents.adopt(INSTANCE, [made['uuid']]))
        return made['uuid']

    def arqs(self):
        return client_arqs.get_all()

    def assert_nothing_left(self):
        self.assertEqual([], self.arqs())
        self.assertEqual(set(), self.driver.plugged)
        self.assertEqual(
            [], attach_journal.AttachJournal(self.directory).entries()
        )


class TestAttachments(AttachmentsTestCase):
    def test_what_an_instance_gets_and_returns_is_logged_once(self):
        log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        for _again in range(2):
            self.acquire()
        [arq] = self.attachments.held.arqs_of(INSTANCE)
        what = f'FPGA {arq.handle.address} (active)'
        self.assertEqual(f'Instance {INSTANCE} got {what}\n', log.output)
        for _again in range(2):
            self.attachments.release(INSTANCE)
        self.assertIn(f'Instance {INSTANCE} returned {what}\n', log.output)
        self.assertEqual(2, log.output.count('\n'))

    def test_from_acquire_to_release(self):
        self.assertFalse(self.attachments.held.has(INSTANCE))
        self.acquire()
        self.assertTrue(self.attachments.held.has(INSTANCE))
        (bound,) = self.attachments.held.arqs_of(INSTANCE)
        self.assertEqual(set(), self.driver.plugged)
        self.assertEqual((bound,), self.attachments.plug(INSTANCE))
        self.assertEqual({bound.handle}, self.driver.plugged)
        self.assertEqual([bound.uuid], [arq['uuid'] for arq in self.arqs()])
        self.assertEqual([], self.released)
        self.assertEqual(1, self.attachments.release(INSTANCE))
        self.assertEqual([bound.handle.uuid], self.released)
        self.assert_nothing_left()

    def test_another_device_is_not_plugged(self):
        """It was put in the place of the one that the instance got."""
        self.acquire()
        (bound,) = self.attachments.held.arqs_of(INSTANCE)
        self.assertEqual('S1', bound.handle.identity)
        for identity in (None, 'S1', '10de:2331 class 0302 serial number S1'):
            self.present = {
                bound.handle.uuid: dataclasses.replace(
                    bound.handle, identity=identity
                )
            }
            self.attachments.plug(INSTANCE)
        self.driver.plugged.clear()
        self.present = {
            bound.handle.uuid: dataclasses.replace(bound.handle, identity='S2')
        }
        # Whether the journal is kept, or the API has to be asked.
        for _time in range(2):
            for method in (
                self.attachments.plug,
                self.attachments.check_migratable,
            ):
                error = self.assertRaises(
                    exceptions.DeviceError, method, INSTANCE
                )
                self.assertIn('S2 now, not S1', str(error))
            self.assertEqual(set(), self.driver.plugged)
            for file in self.directory.iterdir():
                file.unlink()
            self.attachments = self.restarted()
            self.attachments.recover(INSTANCE)
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_what_is_being_released_is_said(self):
        self.acquire()
        (bound,) = self.attachments.plug(INSTANCE)
        handles = frozenset({bound.handle.uuid})
        self.assertEqual(
            (handles, frozenset()),
            (
                self.attachments.held.handles(),
                self.attachments.held.releasing(),
            ),
        )
        self.driver.refuses = True
        self.attachments.release(INSTANCE)
        self.assertEqual(
            (frozenset(), handles),
            (
                self.attachments.held.handles(),
                self.attachments.held.releasing(),
            ),
        )
        self.assertEqual([], self.released)
        self.driver.refuses = False
        self.attachments.retry()
        self.assertEqual(frozenset(), self.attachments.held.releasing())

    def test_the_journal_follows_what_placement_has_moved(self):
        self.acquire()
        (bound,) = self.attachments.held.arqs_of(INSTANCE)
        moved = self.host.rp_uuid(1)
        for instance, handle in (
            (INSTANCE, bound.handle.uuid),
            (INSTANCE, OTHER),
            (OTHER, OTHER),
        ):
            self.attachments.follow(
                reshape.ReshapeMove(
                    instance,
                    arq_types.Role.ACTIVE,
                    handle,
                    'FPGA',
                    bound.device_rp_uuid,
                    moved,
                )
            )
        self.assertEqual(
            (dataclasses.replace(bound, device_rp_uuid=moved),),
            self.restarted().held.arqs_of(INSTANCE),
        )

    def test_the_other_units_of_an_instance_stay_where_they_were(self):
        self.acquire_two()
        first, second = self.attachments.held.arqs_of(INSTANCE)
        self.attachments.follow(
            reshape.ReshapeMove(
                INSTANCE,
                arq_types.Role.ACTIVE,
                second.handle.uuid,
                'FPGA',
                second.device_rp_uuid,
                OTHER,
            )
        )
        self.assertEqual(
            (first, dataclasses.replace(second, device_rp_uuid=OTHER)),
            self.attachments.held.arqs_of(INSTANCE),
        )

    def test_from_adopt_to_release(self):
        uuid = self.adopt()
        self.assertTrue(self.attachments.held.has(INSTANCE))
        (bound,) = self.attachments.plug(INSTANCE)
        self.assertEqual(uuid, bound.uuid)
        self.assertEqual({bound.handle}, self.driver.plugged)
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_novas_delete_frees_nothing_that_is_plugged(self):
        self.adopt()
        (bound,) = self.attachments.plug(INSTANCE)
        self.driver.refuses = True
        self.attachments.release(INSTANCE)
        client_arqs.delete_by_instance(INSTANCE)
        self.assertEqual([bound.uuid], [arq['uuid'] for arq in self.arqs()])
        self.driver.refuses = False
        self.attachments.retry()
        self.assert_nothing_left()

    def test_what_cannot_be_adopted_is_not_held(self):
        self.assertRaises(
            exceptions.NotFound,
            self.attachments.hold,
            intents.adopt(INSTANCE, [OTHER]),
        )
        self.assertFalse(self.attachments.held.has(INSTANCE))
        self.assert_nothing_left()

    def test_adopted_though_the_answer_was_lost(self):
        self.api.lose_answers = True
        self.assertRaises(exceptions.ServiceUnavailable, self.adopt)
        self.api.lose_answers = False
        self.assertFalse(self.attachments.held.has(INSTANCE))
        self.attachments.retry()
        self.assert_nothing_left()

    def test_plug_again_gives_the_same_also_after_a_restart(self):
        self.acquire()
        arqs = self.attachments.plug(INSTANCE)
        self.assertEqual(arqs, self.attachments.plug(INSTANCE))
        self.api.refuse = True
        self.assertEqual(arqs, self.restarted().plug(INSTANCE))

    def test_nothing_is_plugged_if_one_device_is_not_there(self):
        self.acquire()
        (first,) = self.attachments.held.arqs_of(INSTANCE)
        handle = dataclasses.replace(
            first.handle,
            uuid=uuidutils.generate_uuid(),
            identity='10de:2331 class 0302',
        )
        second = dataclasses.replace(first, handle=handle)
        self.drivers[handle.uuid] = 'fake'
        self.present = {
            handle.uuid: dataclasses.replace(
                handle, identity='15b3:101e class 0200'
            )
        }
        self.attachments.held.arqs_of = lambda *_of: (first, second)
        error = self.assertRaises(
            exceptions.DeviceError, self.attachments.plug, INSTANCE
        )
        self.assertIn(
            'is 15b3:101e class 0200 now, not 10de:2331 class 0302: another '
            'device',
            str(error),
        )
        self.assertEqual(set(), self.driver.plugged)

    def test_an_instance_without_any(self):
        self.assertEqual((), self.attachments.plug(INSTANCE))
        self.assertEqual(0, self.attachments.release(INSTANCE))
        self.assertEqual('', self.log.output)
        self.assert_nothing_left()

    def test_acquired_again_it_keeps_what_it_has(self):
        """As a rebuild does."""
        self.acquire()
        arqs = self.attachments.plug(INSTANCE)
        self.acquire()
        self.assertEqual(
            {request.handle for request in arqs}, self.driver.plugged
        )
        self.assertEqual([], self.released)
        self.assertEqual(arqs, self.attachments.plug(INSTANCE))

    def test_what_is_replaced_is_unplugged(self):
        self.acquire(bus=0)
        (old,) = self.attachments.plug(INSTANCE)
        self.acquire(bus=1)
        self.assertEqual(set(), self.driver.plugged)
        self.assertEqual([old.handle.uuid], self.released)
        (new,) = self.attachments.plug(INSTANCE)
        self.assertNotEqual(old.handle, new.handle)
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_what_is_replaced_is_stuck(self):
        self.acquire(bus=0)
        self.attachments.plug(INSTANCE)
        self.driver.refuses = True
        self.assertRaises(exceptions.DeviceError, self.acquire, bus=1)
        self.assertFalse(self.attachments.held.has(INSTANCE))
        self.driver.refuses = False
        self.attachments.retry()
        self.assert_nothing_left()

    def test_a_busy_device_leaves_nothing(self):
        self.acquire(OTHER)
        self.assertRaises(exceptions.AcceleratorsBusy, self.acquire)
        self.assertFalse(self.attachments.held.has(INSTANCE))
        self.attachments.release(OTHER)
        self.assert_nothing_left()

    def test_a_refused_repetition_leaves_what_there_was(self):
        self.acquire(OTHER, bus=1)
        self.acquire(bus=0)
        arqs = self.attachments.plug(INSTANCE)
        before = attach_journal.AttachJournal(self.directory).entries()
        self.assertRaises(exceptions.AcceleratorsBusy, self.acquire, bus=1)
        self.assertEqual(
            before, attach_journal.AttachJournal(self.directory).entries()
        )
        self.assertEqual(arqs, self.attachments.plug(INSTANCE))
        self.attachments.release(OTHER)
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_it_comes_back_after_the_clock_was_set_back(self):
        """As when a server returns to a host, within a day."""
        self.acquire()
        self.attachments.release(INSTANCE)
        day_before = time.time_ns() - 24 * 60 * 60 * 10**9
        self.useFixture(
            fixtures.MonkeyPatch('time.time_ns', lambda: day_before)
        )
        self.acquire()
        self.assertEqual(1, len(self.attachments.plug(INSTANCE)))
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_what_was_held_moves_after_the_clock_was_set_back(self):
        self.acquire()
        self.set_aside()
        self.attachments.release(INSTANCE, arq_types.Role.OLD)
        self.useFixture(fixtures.MonkeyPatch('time.time_ns', lambda: 0))
        self.acquire()
        arqs = self.attachments.plug(INSTANCE)
        self.set_aside()
        self.restore()
        self.assertEqual(arqs, self.attachments.plug(INSTANCE))
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_a_request_that_comes_after_the_release_takes_nothing(self):
        """Nor does it when the instance is here again."""
        late = []
        send = self.api.adapter.request
        self.api.adapter.request = lambda path, method, **more: (
            late.append(lambda: send(path, method, **more)),
            send(path, method, **more),
        )[1]
        self.acquire()
        self.api.adapter.request = send
        (repeat, *_) = late
        self.attachments.release(INSTANCE)
        self.assertEqual(409, repeat().status_code)
        self.assert_nothing_left()
        self.acquire(bus=1)
        before = self.arqs()
        self.assertEqual(409, repeat().status_code)
        self.assertEqual(before, self.arqs())

    def test_a_lost_journal_begins_to_count_again(self):
        self.acquire()
        before = self.arqs()
        (entry,) = attach_journal.AttachJournal(self.directory).entries()
        attach_journal.AttachJournal(self.directory).remove(entry)
        self.attachments = self.restarted()
        # The number is the same one, what is asked for is not.
        self.acquire(bus=1)
        (now,) = self.arqs()
        self.assertNotEqual(before[0]['device_rp_uuid'], now['device_rp_uuid'])
        self.assertEqual(
            [now['uuid']],
            [held.uuid for held in self.attachments.held.arqs_of(INSTANCE)],
        )

    def test_a_journal_of_a_clock_that_was_years_ahead(self):
        future = time.time_ns() * 2
        journal_ = attach_journal.AttachJournal(self.directory)
        for step in (
            attach_journal.AttachStep.RELEASING,
            attach_journal.AttachStep.HELD,
        ):
            journal_.write(
                attach_journal.AttachEntry(
                    INSTANCE, arq_types.Role.ACTIVE, future, step
                )
            )
            self.attachments = self.restarted()
            self.acquire()
            self.assertEqual(1, len(self.attachments.plug(INSTANCE)))
            self.attachments.release(INSTANCE)
            self.assert_nothing_left()

    def test_what_is_held_by_the_number_of_such_a_clock_is_released(self):
        self.acquire()
        self.rewrite(attempt=time.time_ns() * 2)
        self.restarted().release(INSTANCE)
        self.assert_nothing_left()

    def test_a_lost_answer_of_a_second_number_is_released_later(self):
        self.acquire()
        self.attachments.release(INSTANCE)
        send = self.api.adapter.request

        def request(*args, **kwargs):
            answer = send(*args, **kwargs)
            self.api.lose_answers = True
            return answer

        self.api.adapter.request = request
        self.assertRaises(exceptions.ServiceUnavailable, self.acquire)
        self.api.adapter.request = send
        self.assertEqual(1, len(self.arqs()))
        self.api.lose_answers = False
        self.attachments.retry()
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

    def test_a_bug_after_the_api_has_given_something(self):
        client = self.attachments._attempts._api

        def acquire(*arguments):
            client.acquire(*arguments)
            raise TypeError('the answer is of another form')

        self.attachments._attempts._api = types.SimpleNamespace(
            acquire=acquire
        )
        self.assertRaises(TypeError, self.acquire)
        self.assertFalse(self.attachments.held.has(INSTANCE))
        self.restarted().retry()
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
        self.assertFalse(restarted.held.has(INSTANCE))
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

    def test_a_stuck_device_stays_taken_whatever_its_instance_asks_for(self):
        """As a server that is scheduled here again does."""
        self.acquire(bus=0)
        self.attachments.plug(INSTANCE)
        self.driver.refuses = True
        self.attachments.release(INSTANCE)
        self.assertRaises(exceptions.DeviceError, self.acquire, bus=1)
        self.assertRaises(exceptions.AcceleratorsBusy, self.acquire, OTHER)
        self.driver.refuses = False
        self.acquire(bus=1)
        self.assertEqual(set(), self.driver.plugged)
        self.acquire(OTHER)
        for instance in (INSTANCE, OTHER):
            self.attachments.release(instance)
        self.assert_nothing_left()

    def test_a_device_that_is_gone(self):
        self.acquire()
        self.drivers.clear()
        error = self.assertRaises(
            exceptions.DeviceError, self.attachments.plug, INSTANCE
        )
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
        self.rewrite(step=attach_journal.AttachStep.ACQUIRING, arqs=())
        restarted = self.restarted()
        restarted.finish_interrupted()
        restarted.retry()
        self.assert_nothing_left()

    def test_a_restart_keeps_what_is_held(self):
        self.acquire()
        restarted = self.restarted()
        restarted.finish_interrupted()
        restarted.retry()
        self.assertTrue(restarted.held.has(INSTANCE))

    def test_a_binding_that_another_attempt_took_over(self):
        """The journal of an earlier life of the host must not undo it."""
        self.acquire()
        (entry,) = attach_journal.AttachJournal(self.directory).entries()
        self.api.client(HOST).acquire(
            INSTANCE,
            arq_types.Role.ACTIVE,
            entry.attempt + 1,
            'project',
            'fpga',
            [self.host.allocated()],
        )
        self.attachments.release(INSTANCE)
        self.assertIn('Nothing to release', self.log.output)
        self.assertEqual(1, len(self.arqs()))
        self.assertEqual(
            [], attach_journal.AttachJournal(self.directory).entries()
        )

    def test_a_number_is_too_far_for_an_api_that_says_no_newest(self):
        self.acquire()
        (entry,) = attach_journal.AttachJournal(self.directory).entries()
        asked = []

        def release(instance_uuid, role, attempt):
            asked.append(attempt)
            raise exceptions.FarAttempt('too far')

        self.attachments._releases._api = types.SimpleNamespace(
            release=release
        )
        self.attachments.release(INSTANCE)
        self.assertEqual([entry.attempt], asked)
        self.assertIn('too far', self.log.output)
        self.restarted().retry()
        self.assert_nothing_left()

    def set_aside(self):
        self.attachments.move(
            INSTANCE, arq_types.Role.ACTIVE, arq_types.Role.OLD
        )

    def restore(self):
        self.attachments.move(
            INSTANCE, arq_types.Role.OLD, arq_types.Role.ACTIVE
        )

    def test_set_aside_and_restored(self):
        self.acquire()
        arqs = self.attachments.plug(INSTANCE)
        self.set_aside()
        self.assertEqual((), self.attachments.plug(INSTANCE))
        self.assertTrue(
            self.attachments.held.has(INSTANCE, arq_types.Role.OLD)
        )
        (binding,) = self.attachments.held.bindings()
        self.assertEqual(
            (INSTANCE, arq_types.Role.OLD, arqs),
            (binding.instance_uuid, binding.role, binding.arqs),
        )
        self.assertEqual(
            {(INSTANCE, arq_types.Role.OLD)}, self.attachments.held.journaled()
        )
        self.restore()
        self.assertEqual(arqs, self.attachments.plug(INSTANCE))
        self.assertEqual(
            {(INSTANCE, arq_types.Role.ACTIVE)},
            self.attachments.held.journaled(),
        )
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_two_sets_of_one_instance(self):
        """As a resize on the same host has; both ways it may end."""
        for end in (
            lambda: self.attachments.release(INSTANCE, arq_types.Role.OLD),
            self.restore,
        ):
            self.acquire(bus=0)
            (first,) = self.attachments.plug(INSTANCE)
            self.set_aside()
            self.acquire(bus=1)
            (second,) = self.attachments.plug(INSTANCE)
            self.assertEqual(
                {first.handle, second.handle}, self.driver.plugged
            )
            end()
            (last,) = self.attachments.plug(INSTANCE)
            self.assertEqual(first if end == self.restore else second, last)
            self.assertEqual({last.handle}, self.driver.plugged)
            self.attachments.release(INSTANCE)
            self.assert_nothing_left()

    def test_the_api_is_told_of_a_move_later(self):
        self.acquire()
        self.api.refuse = True
        self.set_aside()
        self.attachments.retry()
        self.api.refuse = False
        self.assertEqual(['active'], [arq['role'] for arq in self.arqs()])
        restarted = self.restarted()
        restarted.retry()
        self.assertEqual(['old'], [arq['role'] for arq in self.arqs()])
        restarted.release(INSTANCE, arq_types.Role.OLD)
        self.assert_nothing_left()

    def test_the_api_never_hears_of_a_move(self):
        """Neither way, as when it is released at once."""
        for api_breaks in ('refuse', 'lose_answers'):
            self.acquire()
            self.attachments.plug(INSTANCE)
            setattr(self.api, api_breaks, True)
            self.set_aside()
            self.attachments.release(INSTANCE, arq_types.Role.OLD)
            setattr(self.api, api_breaks, False)
            self.attachments.retry()
            self.assert_nothing_left()

    def test_there_and_back_while_the_api_is_away(self):
        self.acquire()
        arqs = self.attachments.plug(INSTANCE)
        self.api.refuse = True
        self.set_aside()
        self.restore()
        self.api.refuse = False
        self.attachments.retry()
        self.assertEqual(arqs, self.attachments.plug(INSTANCE))
        self.assertEqual(['active'], [arq['role'] for arq in self.arqs()])
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_what_was_set_aside_is_not_acquired_again(self):
        """Though it is what is asked for, and the API was not told yet."""
        self.acquire(bus=0)
        (old,) = self.attachments.plug(INSTANCE)
        self.api.refuse = True
        self.set_aside()
        self.assertRaises(exceptions.ServiceUnavailable, self.acquire)
        self.api.refuse = False
        self.assertRaises(exceptions.AcceleratorsBusy, self.acquire)
        self.acquire(bus=1)
        (new,) = self.attachments.plug(INSTANCE)
        self.assertNotEqual(old.handle, new.handle)
        for role in (arq_types.Role.ACTIVE, arq_types.Role.OLD):
            self.attachments.release(INSTANCE, role)
        self.assert_nothing_left()

    def test_a_stuck_device_is_in_the_way_of_a_move(self):
        """It is not free for others, and comes after all."""
        self.acquire(bus=0)
        self.set_aside()
        self.acquire(bus=1)
        self.attachments.plug(INSTANCE)
        self.driver.refuses = True
        self.attachments.release(INSTANCE)
        self.assertRaises(exceptions.DeviceError, self.restore)
        self.assertRaises(
            exceptions.AcceleratorsBusy, self.acquire, OTHER, bus=1
        )
        self.driver.refuses = False
        self.restore()
        self.assertEqual(1, len(self.arqs()))
        self.assertEqual(1, len(self.attachments.plug(INSTANCE)))
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_who_may_go_to_another_host_live(self):
        self.attachments.check_migratable(INSTANCE)
        self.acquire()
        self.attachments.check_migratable(INSTANCE)
        self.driver.refuses = True
        error = self.assertRaises(
            exceptions.DeviceError, self.attachments.check_migratable, INSTANCE
        )
        self.assertIn('stuck', str(error))
        self.drivers.clear()
        error = self.assertRaises(
            exceptions.DeviceError, self.attachments.check_migratable, INSTANCE
        )
        self.assertIn('gone', str(error))

    def test_the_api_hears_of_a_move_before_the_guest_goes(self):
        self.acquire()
        self.api.refuse = True
        for roles in (
            (arq_types.Role.ACTIVE, arq_types.Role.OLD),
            (arq_types.Role.OLD, arq_types.Role.ACTIVE),
        ):
            self.attachments.move(INSTANCE, *roles)
        self.assertRaises(
            exceptions.ServiceUnavailable,
            self.attachments.check_migratable,
            INSTANCE,
        )
        self.api.refuse = False
        self.attachments.check_migratable(INSTANCE)
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_what_comes_in_is_plugged_and_then_active(self):
        incoming = arq_types.Role.INCOMING
        self.attachments.hold(
            intents.acquire(
                INSTANCE,
                'project',
                'fpga',
                [self.host.allocated()],
                incoming,
            )
        )
        self.assertEqual((), self.attachments.held.arqs_of(INSTANCE))
        (bound,) = self.attachments.plug(INSTANCE, incoming)
        self.assertEqual({bound.handle}, self.driver.plugged)
        self.attachments.move(INSTANCE, incoming, arq_types.Role.ACTIVE)
        self.assertEqual((bound,), self.attachments.held.arqs_of(INSTANCE))
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_only_the_attempt_that_is_meant_is_released(self):
        self.acquire()
        self.set_aside()
        (attempt,) = (
            binding.attempt for binding in self.attachments.held.bindings()
        )
        self.attachments.release(INSTANCE, arq_types.Role.OLD, attempt - 1)
        self.assertTrue(
            self.attachments.held.has(INSTANCE, arq_types.Role.OLD)
        )
        self.attachments.release(INSTANCE, arq_types.Role.OLD, attempt)
        self.assert_nothing_left()

    def test_a_nova_compute_that_is_killed_while_it_sets_aside(self):
        self.acquire()
        (active,) = attach_journal.AttachJournal(self.directory).entries()
        self.rewrite(
            role=arq_types.Role.OLD,
            attempt=active.attempt + 1,
            moved_from=arq_types.Role.ACTIVE,
        )
        self.attachments = self.restarted()
        self.attachments.finish_interrupted()
        self.assertFalse(self.attachments.held.has(INSTANCE))
        self.restore()
        self.attachments.retry()
        self.assertEqual(1, len(self.attachments.plug(INSTANCE)))
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_roles_are_apart(self):
        self.acquire(bus=0)
        self.attachments.hold(
            intents.acquire(
                INSTANCE,
                'project',
                'fpga',
                [self.host.allocated(1)],
                arq_types.Role.INCOMING,
            )
        )
        self.assertEqual(2, len(self.attachments.held.arqs()))
        self.attachments.release(INSTANCE, arq_types.Role.INCOMING)
        self.assertEqual(1, len(self.attachments.plug(INSTANCE)))

    def lose_journal(self):
        """What the API has of it then."""
        self.acquire()
        self.attachments.plug(INSTANCE)
        self.empty_journal()
        (binding,) = self.api.client(HOST).bindings()
        return binding

    def empty_journal(self):
        for entry in attach_journal.AttachJournal(self.directory).entries():
            attach_journal.AttachJournal(self.directory).remove(entry)
        self.attachments = self.restarted()

    def imported(self, instance=INSTANCE, bus=0):
        """An ARQ of a guest that runs, which no host has adopted."""
        (made,) = client_arqs.create('fpga', 'project')
        client_arqs.bind(
            {
                made['uuid']: {
                    'hostname': HOST,
                    'instance_uuid': instance,
                    'device_rp_uuid': self.host.rp_uuid(bus),
                }
            }
        )
        return next(
            arq
            for binding in self.api.client(HOST).bindings()
            for arq in binding.arqs
            if arq.uuid == made['uuid']
        )

    def test_an_imported_one_is_taken_over(self):
        arq = self.imported()
        for _again in range(2):
            self.attachments.hold(intents.take_over(INSTANCE, [arq]))
            self.assertEqual((arq,), self.restarted().held.arqs_of(INSTANCE))
            (binding,) = self.api.client(HOST).bindings()
            self.assertEqual(arq_types.Role.ACTIVE, binding.role)
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_one_is_taken_over_beside_what_is_held(self):
        first = self.imported()
        self.attachments.hold(intents.take_over(INSTANCE, [first]))
        second = self.imported(bus=1)
        self.attachments.recover(INSTANCE, unadopted=[second.uuid, 'unknown'])
        self.assertEqual(
            {first.uuid, second.uuid},
            {arq.uuid for arq in self.attachments.held.arqs_of(INSTANCE)},
        )
        self.assertEqual(2, len(self.arqs()))
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_a_port_is_taken_over(self):
        arq = self.imported()
        self.attachments.recover(INSTANCE, arq_types.Role.PORT, [arq.uuid])
        self.assertFalse(self.attachments.held.has(INSTANCE))
        self.assertEqual(
            [arq], self.attachments.held.arqs(arq_types.Role.PORT)
        )

    def test_a_take_over_that_was_cut_short_is_not_undone(self):
        """The guest has it, whatever the API knows."""
        arq = self.imported()
        for api_breaks in ('refuse', 'lose_answers'):
            setattr(self.api, api_breaks, True)
            self.assertRaises(
                exceptions.ServiceUnavailable,
                self.attachments.hold,
                intents.take_over(INSTANCE, [arq]),
            )
            setattr(self.api, api_breaks, False)
            self.attachments = self.restarted()
            self.attachments.retry()
            self.assertEqual((arq,), self.attachments.held.arqs_of(INSTANCE))
            self.assertEqual(1, len(self.arqs()))
        self.attachments.hold(intents.take_over(INSTANCE, [arq]))
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_one_that_is_gone_is_not_taken_over(self):
        arq = self.imported()
        client_arqs.delete_by_instance(INSTANCE)
        self.assertRaises(
            exceptions.NotFound,
            self.attachments.hold,
            intents.take_over(INSTANCE, [arq]),
        )
        self.assertEqual(set(), self.attachments.held.journaled())

    def test_what_is_held_stays_if_one_is_not_taken_over(self):
        first = self.imported()
        self.attachments.hold(intents.take_over(INSTANCE, [first]))
        second = self.imported(bus=1)
        client_arqs.delete_by_instance(INSTANCE)
        self.assertRaises(
            exceptions.NotFound,
            self.attachments.hold,
            intents.take_over(INSTANCE, [second]),
        )
        self.assertEqual((first,), self.attachments.held.arqs_of(INSTANCE))

    def test_one_is_taken_over_once_what_goes_is_given_back(self):
        self.acquire()
        self.driver.refuses = True
        self.attachments.release(INSTANCE)
        arq = self.imported(bus=1)
        intent = intents.take_over(INSTANCE, [arq])
        self.assertRaises(
            exceptions.DeviceError, self.attachments.hold, intent
        )
        self.assertFalse(self.attachments.held.has(INSTANCE))
        self.driver.refuses = False
        self.attachments.hold(intent)
        self.assertEqual((arq,), self.attachments.held.arqs_of(INSTANCE))
        self.assertEqual([arq.uuid], [each['uuid'] for each in self.arqs()])

    def test_what_another_guest_has_is_not_taken_over(self):
        self.lose_transactions()
        arq = self.imported()
        self.assert_refused(
            lambda: self.attachments.hold(intents.take_over(INSTANCE, [arq]))
        )
        # A guest may have it, so it stays an administrator's matter.
        self.assertEqual(1, len(self.arqs()))

    def test_a_lost_journal_is_recovered(self):
        binding = self.lose_journal()
        self.assertFalse(self.attachments.held.has(INSTANCE))
        for _again in range(2):
            self.attachments.hold(intents.recover(binding))
            self.assertEqual(binding.arqs, self.attachments.plug(INSTANCE))
        self.assertTrue(self.restarted().held.has(INSTANCE))
        # What the nova-compute before it may still be asking for is too old.
        self.assertRaises(
            exceptions.StaleAttempt,
            self.api.client(HOST).release,
            INSTANCE,
            arq_types.Role.ACTIVE,
            binding.attempt,
        )
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_only_the_instance_that_is_meant_is_recovered(self):
        self.acquire()
        self.acquire(OTHER, bus=1)
        self.empty_journal()
        self.attachments.recover(INSTANCE)
        self.assertEqual(
            {(INSTANCE, arq_types.Role.ACTIVE)},
            self.attachments.held.journaled(),
        )

    def test_what_is_being_given_back_is_not_recovered(self):
        binding = self.lose_journal()
        self.acquire()
        self.driver.refuses = True
        self.attachments.release(INSTANCE)
        self.attachments.hold(intents.recover(binding))
        self.assertFalse(self.attachments.held.has(INSTANCE))

    def test_what_is_not_recovered_is_not_undone(self):
        """A guest may have it."""
        binding = self.lose_journal()
        for api_breaks in ('refuse', 'lose_answers'):
            setattr(self.api, api_breaks, True)
            self.assertRaises(
                exceptions.ServiceUnavailable,
                self.attachments.hold,
                intents.recover(binding),
            )
            setattr(self.api, api_breaks, False)
            self.attachments.retry()
            self.assertEqual(set(), self.attachments.held.journaled())
            self.assertEqual(1, len(self.arqs()))
        self.attachments.hold(intents.recover(binding))
        self.assertTrue(self.attachments.held.has(INSTANCE))

    def test_what_changed_since_it_was_listed_is_not_recovered(self):
        binding = self.lose_journal()
        self.api.client(HOST).release(
            INSTANCE, arq_types.Role.ACTIVE, binding.attempt
        )
        self.assertRaises(
            exceptions.NotFound,
            self.attachments.hold,
            intents.recover(binding),
        )
        self.assertFalse(self.attachments.held.has(INSTANCE))

    def lose_transactions(self):
        """The database is one in which OTHER has nothing; its guest runs."""
        self.acquire(OTHER)
        arqs = self.attachments.plug(OTHER)
        (binding,) = self.api.client(HOST).bindings()
        self.api.client(HOST).release(
            OTHER, arq_types.Role.ACTIVE, binding.attempt
        )
        return arqs

    def assert_refused(self, refused, has=1):
        """What it was given the API has back, and OTHER has its device."""
        error = self.assertRaises(exceptions.Conflict, refused)
        (request,) = self.attachments.held.arqs_of(OTHER)
        self.assertIn(
            f'gives {request.handle.address} of host {HOST} to instance '
            f"{INSTANCE}, and by the host's journal instance {OTHER} has it",
            str(error),
        )
        self.assertIn('lost its last transactions', self.log.output)
        self.assertEqual({request.handle}, self.driver.plugged)
        self.assertEqual(
            {(OTHER, arq_types.Role.ACTIVE)}, self.attachments.held.journaled()
        )

    def test_what_another_guest_has_is_not_acquired(self):
        self.lose_transactions()
        for _again in range(2):
            self.assert_refused(self.acquire)
            self.assertEqual([], self.arqs())
        self.attachments.release(OTHER)
        self.acquire()
        self.attachments.plug(INSTANCE)

    def test_what_is_given_with_another_guests_is_given_back(self):
        self.lose_transactions()
        self.assert_refused(self.acquire_two)
        self.assertEqual([], self.arqs())
        (handle,) = self.host.devices()[1].deployables[0].handles
        self.assertEqual([handle.uuid], self.released)

    def test_the_log_names_the_instance_as_novas_does(self):
        """By the formats that ``[DEFAULT] instance_uuid_format`` rules."""
        records = []
        handler = logging.Handler()
        handler.emit = records.append
        logger = logging.getLogger('nova_accel.virt.holding')
        logger.addHandler(handler)
        self.addCleanup(logger.removeHandler, handler)
        self.acquire()
        self.api.refuse = True
        self.attachments.release(INSTANCE)
        # That it got some, and that they are not released yet.
        self.assertEqual(
            [INSTANCE] * 2, [record.instance_uuid for record in records]
        )

    def test_what_another_guest_has_is_not_adopted(self):
        self.lose_transactions()
        self.assert_refused(self.adopt)
        self.assertEqual([], self.arqs())

    def test_what_another_guest_has_is_no_ports(self):
        self.lose_transactions()
        (made,) = client_arqs.create('fpga', 'project')
        client_arqs.bind(
            {
                made['uuid']: {
                    'hostname': HOST,
                    'instance_uuid': INSTANCE,
                    'device_rp_uuid': self.host.rp_uuid(),
                }
            }
        )
        self.assert_refused(
            lambda: self.attachments.hold(
                intents.adopt(INSTANCE, [made['uuid']], arq_types.Role.PORT)
            )
        )
        self.assertEqual([], self.arqs())

    def test_what_another_guest_has_is_not_recovered(self):
        self.lose_transactions()
        self.api.client(HOST).acquire(
            INSTANCE,
            arq_types.Role.ACTIVE,
            1,
            'project',
            'fpga',
            [self.host.allocated()],
        )
        (binding,) = self.api.client(HOST).bindings()
        self.assert_refused(
            lambda: self.attachments.hold(intents.recover(binding))
        )
        self.assert_refused(lambda: self.attachments.recover(INSTANCE))
        # A guest may have what else it has.
        self.assertEqual(1, len(self.arqs()))

    def test_what_is_refused_is_given_back_later(self):
        self.lose_transactions()
        client = self.attachments._attempts._api

        class GoesAway:
            def __getattr__(_self, name):
                return getattr(client, name)

            def acquire(_self, *arguments):
                arqs = client.acquire(*arguments)
                self.api.refuse = True
                return arqs

        self.attachments._attempts._api = GoesAway()
        self.assertRaises(exceptions.Conflict, self.acquire)
        self.assertFalse(self.attachments.held.has(INSTANCE))
        self.assertEqual(1, len(self.arqs()))
        self.api.refuse = False
        self.attachments.retry()
        self.assertEqual([], self.arqs())
        self.assertEqual(
            {(OTHER, arq_types.Role.ACTIVE)}, self.attachments.held.journaled()
        )
        self.assertTrue(self.driver.plugged)

    def test_a_full_disk_does_not_keep_what_was_acquired(self):
        """Without a restart."""
        with self.full_disk(after=1):
            self.assertRaises(exceptions.DeviceError, self.acquire)
        self.assertEqual(1, len(self.arqs()))
        self.assertFalse(self.attachments.held.has(INSTANCE))
        self.attachments.retry()
        self.assert_nothing_left()

    def test_a_release_that_is_not_journaled_is_retried(self):
        """The next cycle does it, not the next comparison with Nova."""
        self.acquire()
        self.attachments.plug(INSTANCE)
        with self.full_disk(after=0):
            self.attachments.release(INSTANCE)
            self.attachments.retry()
            self.assertTrue(self.attachments.held.has(INSTANCE))
            self.assertEqual(1, len(self.arqs()))
        self.attachments.retry()
        self.assert_nothing_left()

    def test_one_that_is_not_journaled_is_not_retried_for_the_next(self):
        self.acquire()
        with self.full_disk(after=0):
            self.attachments.release(INSTANCE)
        self.acquire()
        self.attachments.retry()
        self.assertTrue(self.attachments.held.has(INSTANCE))
        self.assertEqual(1, len(self.arqs()))

    def test_a_number_that_is_used_again_is_not_released(self):
        """A day after a release the API has forgotten its number."""
        self.acquire()
        self.attachments.release(INSTANCE)
        with engine.writer() as connection:
            connection.execute(sa.delete(schema.BINDINGS))
        self.acquire()
        self.attachments.retry()
        self.assertTrue(self.attachments.held.has(INSTANCE))

    def test_no_bug_gets_out_of_a_release(self):
        """Nor does it stop the others from being retried."""
        self.acquire(OTHER, bus=1)
        self.acquire()
        self.attachments.plug(INSTANCE)
        for error in OSError(5, 'I/O error'), KeyError('firmware'):
            self.driver.bug = error
            for instance in (INSTANCE, OTHER):
                self.attachments.release(instance)
            self.attachments.retry()
            self.assertIn(str(error), self.log.output)
        self.assertEqual(2, len(self.arqs()))
        self.driver.bug = None
        unplug = self.driver.unplug

        def unplug_one(handle):
            if handle in self.driver.plugged:
                raise KeyError('firmware')
            unplug(handle)

        self.driver.unplug = unplug_one
        self.attachments.retry()
        self.assertEqual(
            [INSTANCE], [found['instance_uuid'] for found in self.arqs()]
        )
        self.driver.unplug = unplug
        self.attachments.retry()
        self.assert_nothing_left()

    @contextlib.contextmanager
    def full_disk(self, after):
        """A journal that takes so many entries more."""

        def write(path, text, write=durable_file.write):
            nonlocal after
            if not after:
                raise exceptions.DiskError('No space left on device')
            after -= 1
            write(path, text)

        with fixtures.MonkeyPatch(
            'nova_accel.state.durable_file.write', write
        ):
            yield

    def test_who_has_acquired_again_meanwhile_is_left_alone(self):
        self.acquire()
        self.api.refuse = True
        self.attachments.release(INSTANCE)
        self.api.refuse = False
        listed = list(self.attachments._journal.entries())
        self.acquire()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.virt.holding.attach_journal.AttachJournal.entries',
                lambda _: listed,
            )
        )
        self.attachments.retry()
        self.assertTrue(self.attachments.held.has(INSTANCE))
        self.assertEqual(1, len(self.arqs()))

    def test_what_is_held_by_now_stays_so(self):
        binding = self.lose_journal()
        self.acquire()
        arqs = self.attachments.plug(INSTANCE)
        self.attachments.hold(intents.recover(binding))
        self.attachments.take_back(binding)
        self.assertEqual(arqs, self.attachments.plug(INSTANCE))
        self.assertEqual(1, len(self.arqs()))

    def test_what_only_the_api_has_is_taken_back(self):
        binding = self.lose_journal()
        self.attachments.take_back(binding)
        self.assert_nothing_left()

    def test_the_api_goes_away_while_it_is_taken_back(self):
        binding = self.lose_journal()
        self.api.refuse = True
        self.assertRaises(
            exceptions.ServiceUnavailable, self.attachments.take_back, binding
        )
        self.api.refuse = False
        self.restarted().retry()
        self.assertEqual([], self.arqs())
        self.assertEqual(set(), self.driver.plugged)

    def test_a_stuck_device_is_not_taken_back(self):
        binding = self.lose_journal()
        self.driver.refuses = True
        self.assertRaises(
            exceptions.DeviceError, self.attachments.take_back, binding
        )
        self.assertEqual(1, len(self.arqs()))

    def test_a_newer_attempt_is_not_taken_back(self):
        binding = self.lose_journal()
        self.api.client(HOST).adopt(
            INSTANCE,
            arq_types.Role.ACTIVE,
            binding.attempt + 1,
            binding.arq_uuids,
        )
        self.attachments.take_back(binding)
        self.assertEqual(1, len(self.arqs()))
        self.assertEqual(set(), self.attachments.held.journaled())

    def test_what_is_not_adopted_is_nobodys_to_take_back(self):
        binding = dataclasses.replace(
            self.lose_journal(), role=None, attempt=None
        )
        for step in (self.attachments.take_back, intents.recover):
            self.assertRaises(exceptions.Conflict, step, binding)

    def test_only_what_nobody_holds_is_unplugged(self):
        self.acquire(bus=0)
        (held,) = self.attachments.plug(INSTANCE)
        orphan = self.host.devices()[1].deployables[0].handles[0]
        self.driver.plug(orphan)
        for handle in (held.handle, orphan):
            self.attachments.unplug_unheld(handle)
        self.assertEqual({held.handle}, self.driver.plugged)
