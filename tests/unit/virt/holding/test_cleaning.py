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

import threading
import time
import types

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model import attach_handle
from nova_accel.model import host_orders
from nova_accel.model import pci_address
from nova_accel.virt.holding import cleaning

A, B, GONE = 'a', 'b', 'gone'
TIMEOUT_S = 10


class Api:
    """What is unclean, and what a host said of it."""

    def __init__(self):
        self.revision = 1
        self.unclean = {}
        self.reasons = {}
        self.told = []
        self.fault = None
        self.loses_answers = False
        self.stock = {}

    def release(self, *uuids):
        self.revision += 1
        self.unclean |= dict.fromkeys(uuids, self.revision)

    def cleaning(self, cleaned, failed, revision):
        if self.fault is not None:
            raise self.fault
        self.told.append((sorted(cleaned), dict(failed)))
        for uuid in cleaned:
            if self.unclean.get(uuid, revision + 1) <= revision:
                del self.unclean[uuid]
                self.revision += 1
        self.reasons |= failed
        if self.loses_answers:
            raise exceptions.ServiceUnavailable('the answer was lost')

    def orders(self):
        return host_orders.Orders(
            self.revision,
            uncleaned=frozenset(self.unclean),
            stock=self.stock,
        )


class Driver:
    """Cleans when it may."""

    def __init__(self):
        self.may_end = threading.Event()
        self.may_end.set()
        self.fault = None
        self.began = []

    def clean(self, handle):
        self.began.append(handle.uuid)
        if not self.may_end.wait(TIMEOUT_S):
            raise AssertionError('never allowed to end')
        if self.fault is not None:
            raise self.fault


class TestCleaner(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.api, self.driver = Api(), Driver()
        self.drivers = {'fake': self.driver}
        self.held = set()
        self.one_thing = set()
        self.in_guests = set()
        self.methods = {}
        self.blanked = []
        self.orders = None
        self.reports = 0
        self.cleaner = self.restarted()

    def restarted(self, workers=2):
        return cleaning.Cleaner(
            self.api,
            workers,
            self,
            self.drivers,
            self,
            types.SimpleNamespace(handles=lambda: self.held),
            self.blank,
            self.hurry,
        )

    @property
    def view(self):
        return types.SimpleNamespace(
            handles={
                uuid: attach_handle.AttachHandle(
                    uuid,
                    pci_address.PciAddress(0, 1, 0, 0),
                    cleaning=self.methods.get(uuid, ()),
                )
                for uuid in (A, B)
            },
            drivers=dict.fromkeys((A, B), 'fake'),
            cleaned=frozenset({A, B, GONE}),
            beside=lambda uuid: {
                other: self.view.handles[other]
                for other in self.one_thing - {uuid}
                if uuid in self.one_thing
            },
        )

    def check_unused(self, handle):
        if handle.uuid in self.in_guests:
            raise exceptions.DeviceError('it is in a guest')

    def blank(self, handle, bitstream_id):
        self.blanked.append((handle.uuid, bitstream_id))

    def released(self, *uuids):
        """A guest had them."""
        self.cleaner.released(
            types.SimpleNamespace(handle=types.SimpleNamespace(uuid=uuid))
            for uuid in uuids
        )

    def hurry(self):
        self.reports += 1

    def cycle(self):
        """What the publisher does, and then what was started ends."""
        self.cleaner.report()
        self.orders = self.api.orders()
        self.cleaner.go_on()
        if self.driver.may_end.is_set():
            self.wait()

    def wait(self):
        deadline = time.monotonic() + TIMEOUT_S
        while self.cleaner._running:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)

    def pass_s(self, seconds):
        """Time goes by."""
        now = time.monotonic
        self.useFixture(
            fixtures.MonkeyPatch('time.monotonic', lambda: now() + seconds)
        )

    def test_it_is_cleaned_told_and_free(self):
        self.api.release(A)
        self.released(A)
        self.assertEqual(({A}, 1), (self.cleaner.awaited, self.reports))
        self.cycle()
        self.assertEqual(
            (frozenset(), [A], 2),
            (self.cleaner.awaited, self.driver.began, self.reports),
        )
        self.cycle()
        self.assertEqual([([A], {})], self.api.told)
        self.assertEqual({}, self.api.unclean)
        self.cycle()
        self.assertEqual([A], self.driver.began)
        self.assertEqual(1, len(self.api.told))
        self.assertEqual('', self.log.output)

    def test_nothing_is_cleaned_before_the_first_orders(self):
        self.cleaner.go_on()
        self.assertEqual([], self.driver.began)

    def test_what_was_ordered_at_two_times_is_told_apart(self):
        """The API knows by the revision what it has not ordered again."""
        self.driver.may_end.clear()
        for uuid in (A, B):
            self.api.release(uuid)
            self.cycle()
        self.driver.may_end.set()
        self.wait()
        self.cycle()
        self.assertEqual([([A], {}), ([B], {})], self.api.told)
        self.assertEqual({}, self.api.unclean)

    def test_nothing_to_clean_costs_nothing(self):
        self.released()
        self.cycle()
        self.assertEqual(
            (0, [], []), (self.reports, self.api.told, self.driver.began)
        )

    def test_what_is_released_during_a_report_is_awaited(self):
        """Its answer may have been made before."""
        before = self.api.orders()
        self.cleaner.report()
        self.api.release(A)
        self.released(A)
        self.orders = before
        self.cleaner.go_on()
        self.assertEqual({A}, self.cleaner.awaited)
        self.cycle()
        self.assertEqual(frozenset(), self.cleaner.awaited)

    def test_a_restart_goes_on(self):
        self.driver.may_end.clear()
        self.api.release(A)
        self.cycle()
        died, self.cleaner = self.cleaner, self.restarted()
        self.driver.may_end.set()
        self.cycle()
        self.cycle()
        self.assertEqual({}, self.api.unclean)
        died._executor.shutdown()

    def test_one_that_never_ends_keeps_no_other(self):
        self.driver.may_end.clear()
        self.api.release(A)
        self.cycle()
        self.addCleanup(self.driver.may_end.set)
        stuck, self.driver = self.driver, Driver()
        self.drivers['fake'] = self.driver
        self.addCleanup(stuck.may_end.set)
        self.api.release(B)
        for _cycle in range(3):
            self.cleaner.report()
            self.orders = self.api.orders()
            self.cleaner.go_on()
            self.cleaner._executor.submit(lambda: None).result(TIMEOUT_S)
        self.assertEqual(([A], [B]), (stuck.began, self.driver.began))
        self.assertEqual({A}, self.api.unclean.keys())

    def test_a_failure_is_told_and_tried_again_ever_later(self):
        self.driver.fault = exceptions.DeviceError('it burns')
        self.api.release(A)
        for _cycle in range(3):
            self.cycle()
        self.assertEqual([([], {A: 'it burns'})], self.api.told)
        self.assertEqual([A], self.driver.began)
        self.assertIn('it burns', self.log.output)
        for tries, delay_s in enumerate(
            (60, 120, 240, 480, 960, 1920, 3600, 3600), 2
        ):
            self.pass_s(delay_s - 1)
            self.cycle()
            self.assertEqual(tries - 1, len(self.driver.began))
            self.pass_s(1)
            self.cycle()
            self.assertEqual(tries, len(self.driver.began))
        # The reason is the same: it is not told again.
        self.cycle()
        self.assertEqual(1, len(self.api.told))
        self.assertEqual(1, self.reports)

    def test_what_others_have_cleaned_does_not_wait_the_next_time(self):
        self.driver.fault = exceptions.DeviceError('it burns')
        self.api.release(A)
        self.cycle()
        self.cycle()
        self.api.unclean.clear()
        self.cycle()
        self.driver.fault = None
        self.api.release(A)
        self.cycle()
        self.assertEqual([A, A], self.driver.began)

    def test_another_reason_is_told_and_so_is_success(self):
        self.api.release(A)
        for fault, expected in (
            (exceptions.DeviceError('it burns'), ([], {A: 'it burns'})),
            (exceptions.DeviceError('wet'), ([], {A: 'wet'})),
            (
                ValueError('a bug'),
                ([], {A: "its driver failed: ValueError('a bug')"}),
            ),
            (None, ([A], {})),
        ):
            self.driver.fault = fault
            self.cycle()
            self.cycle()
            self.assertEqual(expected, self.api.told[-1])
            self.pass_s(3600)
        self.assertEqual({}, self.api.unclean)
        self.assertIn('Traceback', self.log.output)

    def test_what_is_held_is_never_touched(self):
        """Whatever a database that was restored may say."""
        self.held = {A}
        self.api.release(A, GONE)
        self.cycle()
        self.assertEqual([], self.driver.began)
        self.held = set()
        self.cycle()
        self.assertEqual([A], self.driver.began)

    def test_what_leads_to_the_same_as_a_held_one_is_never_touched(self):
        """Both ports of a drive were given away while it did not tell."""
        self.one_thing, self.held = {A, B}, {B}
        self.api.release(A)
        self.cycle()
        self.cycle()
        self.assertEqual([], self.driver.began)
        self.assertIn('leads to the same', self.api.reasons[A])
        self.held = set()
        self.pass_s(cleaning.FIRST_RETRY_S)
        self.cycle()
        self.assertEqual([A], self.driver.began)

    def test_what_is_in_a_guest_is_never_touched(self):
        """Also if the journal is lost, or that of a host of another name."""
        self.in_guests = {A}
        self.api.release(A)
        self.cycle()
        self.cycle()
        self.assertEqual([], self.driver.began)
        self.assertEqual({A: 'it is in a guest'}, self.api.reasons)

    def test_a_region_is_blanked(self):
        self.methods = {A: ('program', 'blank')}
        self.api.release(A, B)
        self.cycle()
        self.assertEqual(([(A, None)], [B]), (self.blanked, self.driver.began))

    def test_a_region_is_stocked(self):
        self.methods = dict.fromkeys((A, B), ('program', 'blank'))
        self.api.stock = {B: 'bitstream'}
        self.api.release(A, B)
        self.cycle()
        self.assertEqual({(A, None), (B, 'bitstream')}, set(self.blanked))

    def test_what_is_not_cleaned_is_not_awaited(self):
        self.released('another')
        self.assertEqual(
            (frozenset(), 0), (self.cleaner.awaited, self.reports)
        )

    def test_a_lost_answer_frees_nothing_that_was_used_since(self):
        self.api.release(A)
        self.cycle()
        self.api.loses_answers = True
        self.assertRaises(exceptions.ServiceUnavailable, self.cycle)
        self.assertEqual({}, self.api.unclean)
        # Somebody has it, and gives it back.
        self.api.release(A)
        self.api.loses_answers = False
        self.cycle()
        self.assertEqual({A}, self.api.unclean.keys())
        self.cycle()
        self.cycle()
        self.assertEqual(({}, [A, A]), (self.api.unclean, self.driver.began))

    def test_the_api_is_away(self):
        self.api.release(A, B)
        self.cycle()
        self.api.fault = exceptions.ServiceUnavailable('away')
        for _cycle in range(2):
            self.assertRaises(exceptions.ServiceUnavailable, self.cycle)
        self.api.fault = None
        self.cycle()
        self.assertEqual([([A, B], {})], self.api.told)
        self.assertEqual([A, B], sorted(self.driver.began))

    def test_what_the_api_does_not_know_keeps_nothing(self):
        """The host was forgotten and has reported anew."""
        for fault in (
            exceptions.NotFound('no such handle'),
            exceptions.Conflict('another report came first'),
        ):
            self.api.release(A)
            self.cycle()
            self.api.fault = fault
            self.cycle()
            self.assertIn(str(fault), self.log.output)
            self.api.fault = None
            self.cycle()
            self.cycle()
            self.assertEqual({}, self.api.unclean)
