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

from oslo_utils import uuidutils
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import cleaning_results
from nova_accel.db import device
from nova_accel.db import host as host_db
from nova_accel.db import host_arqs
from nova_accel.db.sql import schema
from nova_accel.model import host_orders
from nova_accel.model.devices import hardware
from nova_accel.testing import database
from nova_accel.testing import reports
from rig import capacity

load_tests = testscenarios.load_tests_apply_scenarios

HOST = reports.SimulatedHost(regions=(1, 1), cleaned=True)
WITHOUT = dataclasses.replace(HOST, regions=(None, 1))


class CleaningTestCase(base.DatabaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.host = HOST
        self.host.clean()
        self.make_profile()

    def told(self, host: reports.SimulatedHost = HOST) -> host_orders.Orders:
        told = host.report()
        assert told is not None
        return told

    def use(self) -> str:
        """The handle that an instance had."""
        request = self.request()
        [held] = host_arqs.acquire(request)
        host_arqs.release(*request.key, 1)
        handle: str = held['attach_handle_uuid']
        return handle

    def refusal(self) -> str:
        return str(
            self.assertRaises(
                exceptions.AcceleratorsBusy, host_arqs.acquire, self.request()
            )
        )

    def reasons(self) -> dict[str, str]:
        return {
            handle['uuid']: handle['reason']
            for found in device.get_all()
            for handle in found['unclean']
        }


class TestNote(CleaningTestCase):
    scenarios = database.SCENARIOS

    def test_cleaned_is_free_again(self) -> None:
        handle = self.use()
        revision = self.told().revision
        for _again in range(2):
            cleaning_results.note('compute-1', [handle], {}, revision)
            self.assertEqual(host_orders.Orders(4), self.told())
        self.assertEqual({}, self.reasons())
        self.assertEqual(handle, self.use())

    def test_failed_stays_with_the_reason(self) -> None:
        handle = self.use()
        revision = self.told().revision
        for why in ('sanitize: I/O error', 'sanitize: timeout'):
            cleaning_results.note('compute-1', [], {handle: why}, revision)
            self.assertIn(f'(1 not cleaned: {why})', self.refusal())
            self.assertEqual({handle: f'not cleaned: {why}'}, self.reasons())
        self.assertEqual({handle}, self.told().uncleaned)
        cleaning_results.note('compute-1', [handle], {}, revision)
        self.use()
        self.assertEqual({handle: 'being cleaned'}, self.reasons())

    def test_both_in_one(self) -> None:
        first = self.use()
        request = self.request(HOST.allocated(bus=1))
        [held] = host_arqs.acquire(request)
        host_arqs.release(*request.key, 1)
        second = held['attach_handle_uuid']
        cleaning_results.note(
            'compute-1', [first], {second: 'why'}, self.told().revision
        )
        self.assertEqual({second: 'not cleaned: why'}, self.reasons())

    def test_late_word_of_an_earlier_cleaning(self) -> None:
        """Another guest has had it since: it would see that one's data."""
        handle = self.use()
        earlier = self.told().revision
        cleaning_results.note('compute-1', [handle], {}, earlier)
        self.use()
        cleaning_results.note('compute-1', [handle], {}, earlier)
        cleaning_results.note('compute-1', [], {handle: 'why'}, earlier)
        self.assertEqual({handle: 'being cleaned'}, self.reasons())
        cleaning_results.note('compute-1', [handle], {}, self.told().revision)
        self.assertEqual({}, self.reasons())

    def test_word_of_one_that_is_held(self) -> None:
        request = self.request()
        [held] = host_arqs.acquire(request)
        cleaning_results.note(
            'compute-1', [held['attach_handle_uuid']], {}, 99
        )
        self.assertEqual([held], host_arqs.get(*request.key))

    def test_unknown(self) -> None:
        handle, unknown = self.use(), uuidutils.generate_uuid()
        for cleaned, failed in (
            ([handle, unknown], {}),
            ([handle], {unknown: 'why'}),
        ):
            error = self.assertRaises(
                exceptions.NotFound,
                cleaning_results.note,
                'compute-1',
                cleaned,
                failed,
                99,
            )
            self.assertEqual(
                f'Attach handle not found with uuid={unknown}', str(error)
            )
        self.assertEqual({handle}, self.told().uncleaned)

    def test_of_another_host(self) -> None:
        reports.SimulatedHost('compute-2').report()
        handle = self.use()
        error = self.assertRaises(
            exceptions.Conflict,
            cleaning_results.note,
            'compute-2',
            [handle],
            {},
            99,
        )
        self.assertEqual(
            f'attach handle {handle} belongs to host compute-1', str(error)
        )
        self.assertEqual({handle}, self.told().uncleaned)

    def test_statements_do_not_depend_on_the_amount(self) -> None:
        host = reports.SimulatedHost(functions=9, cleaned=True)
        self.host = host
        host.clean()
        counts = []
        for amount in (1, 8):
            name = f'qat-{amount}'
            self.make_profile({'resources:CUSTOM_QAT': str(amount)}, name=name)
            self.told(host)
            request = self.request(
                host.allocated_functions(amount), device_profile_name=name
            )
            handles = [
                held['attach_handle_uuid']
                for held in host_arqs.acquire(request)
            ]
            released = self.statements(
                lambda request=request: host_arqs.release(*request.key, 1)
            )
            told = self.told(host)
            self.assertEqual(set(handles), told.uncleaned)
            noted = self.statements(
                lambda handles=handles, told=told: cleaning_results.note(
                    host.hostname, handles, {}, told.revision
                )
            )
            counts.append((len(released), len(noted)))
        self.assertEqual(counts[0], counts[1])


class TestFirstSeen(CleaningTestCase):
    """Nobody knows who had it before."""

    scenarios = database.SCENARIOS

    def uncleaned(self, host: reports.SimulatedHost) -> set[str]:
        told = self.told(host)
        # An answer may be lost, and the host has the orders of before.
        self.assertEqual(told, host.report(orders_seen=told.revision - 1))
        return set(told.uncleaned)

    def handles(self, host: reports.SimulatedHost) -> set[str]:
        return {
            handle.uuid
            for device in host.devices()
            for handle in device.handles
        }

    def test_is_unclean(self) -> None:
        host = reports.SimulatedHost('compute-2', functions=3, cleaned=True)
        self.assertEqual(self.handles(host), self.uncleaned(host))
        self.assertNotIn('compute-2', capacity.free_by_host())
        host.clean()
        self.assertEqual(frozenset(), self.told(host).uncleaned)
        self.assertEqual(4, capacity.free_by_host()['compute-2'])

    def test_of_what_is_not_cleaned_is_free(self) -> None:
        host = reports.SimulatedHost('compute-2', functions=3)
        self.assertEqual(host_orders.Orders(0), self.told(host))
        self.assertEqual(4, capacity.free_by_host()['compute-2'])

    def test_after_its_host_was_forgotten(self) -> None:
        handle = self.use()
        host_db.forget('compute-1', -1)
        self.assertEqual(self.handles(HOST), self.uncleaned(HOST))
        self.assertIn(handle, self.told().uncleaned)
        self.assertIn('(1 being cleaned)', self.refusal())

    def test_under_a_new_name_of_the_host(self) -> None:
        self.use()
        host_db.forget('compute-1', -1)
        renamed = dataclasses.replace(HOST, hostname='renamed')
        self.assertEqual(self.handles(renamed), self.uncleaned(renamed))

    def test_only_the_new_one_of_a_device(self) -> None:
        more = dataclasses.replace(HOST, regions=(2, 1))
        self.assertEqual(
            self.handles(more) - self.handles(HOST), self.uncleaned(more)
        )

    def test_after_it_was_gone(self) -> None:
        """Somebody may have written to it elsewhere."""
        self.told(WITHOUT)
        self.assertEqual(
            self.handles(HOST) - self.handles(WITHOUT), self.uncleaned(HOST)
        )

    def test_a_late_word_of_the_cleaning_before_it_was_gone(self) -> None:
        [handle] = self.handles(HOST) - self.handles(WITHOUT)
        earlier = self.told().revision
        self.told(WITHOUT)
        self.told(HOST)
        cleaning_results.note('compute-1', [handle], {}, earlier)
        self.assertEqual({handle}, self.told().uncleaned)

    def test_what_is_cleaned_from_now_on(self) -> None:
        """Guests may have left something in it; one that runs has not."""
        host = reports.SimulatedHost('compute-1', regions=(1, 1))
        self.told(host)
        request = self.request()
        [held] = host_arqs.acquire(request)
        free = self.handles(HOST) - {held['attach_handle_uuid']}
        self.assertEqual(free, self.uncleaned(HOST))
        host_arqs.release(*request.key, 1)
        self.assertEqual(self.handles(HOST), self.uncleaned(HOST))


class TestAnotherDevice(CleaningTestCase):
    """One that was put in the place of the first: what is free is unclean."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.first, self.second = (
            dataclasses.replace(HOST, regions=(1,), serials=((0, serial),))
            for serial in ('S1', 'S2')
        )
        self.first.clean()
        self.assertEqual(frozenset(), self.told(self.first).uncleaned)

    def hold(self) -> tuple[host_arqs.AcquireRequest, str]:
        request = self.request()
        [held] = host_arqs.acquire(request)
        return request, held['attach_handle_uuid']

    def identity(self) -> str | None:
        [held] = host_arqs.acquire(self.request())
        identity: str | None = held['attach_handle_identity']
        return identity

    def test_it_does_not_inherit_that_the_first_was_clean(self) -> None:
        told = self.told(self.second)
        self.assertEqual(1, len(told.uncleaned))
        self.assertEqual({'being cleaned'}, set(self.reasons().values()))
        cleaning_results.note('compute-1', told.uncleaned, {}, told.revision)
        self.assertEqual(frozenset(), self.told(self.second).uncleaned)
        self.assertEqual('S2', self.identity())

    def test_nor_how_the_cleaning_of_the_first_ends(self) -> None:
        request, handle = self.hold()
        host_arqs.release(*request.key, 1)
        of_first = self.told(self.first)
        cleaning_results.note(
            'compute-1', [], {handle: 'stuck'}, of_first.revision
        )
        self.assertEqual({handle: 'not cleaned: stuck'}, self.reasons())
        of_second = self.told(self.second)
        self.assertEqual({handle: 'being cleaned'}, self.reasons())
        cleaning_results.note('compute-1', [handle], {}, of_first.revision)
        self.assertEqual({handle: 'being cleaned'}, self.reasons())
        cleaning_results.note('compute-1', [handle], {}, of_second.revision)
        self.assertEqual({}, self.reasons())

    def test_what_a_guest_has_stays_of_the_first(self) -> None:
        """The host compares it with what is there when it plugs."""
        request, handle = self.hold()
        told = self.told(self.second)
        self.assertEqual(frozenset(), told.uncleaned)
        [bound] = host_arqs.get_of_host('compute-1')
        self.assertEqual(
            ['S1'], [arq['attach_handle_identity'] for arq in bound['arqs']]
        )
        host_arqs.release(*request.key, 1)
        # The digest is as it was; the report is compared all the same.
        told = self.told(self.second)
        self.assertEqual({handle}, told.uncleaned)
        cleaning_results.note('compute-1', [handle], {}, told.revision)
        self.assertEqual('S2', self.identity())

    def test_one_that_does_not_say_it_is_the_same(self) -> None:
        """As an NVMe drive that a guest has."""
        silent = dataclasses.replace(self.first, serials=())
        self.assertEqual(frozenset(), self.told(silent).uncleaned)
        self.assertEqual(frozenset(), self.told(self.first).uncleaned)
        self.assertEqual('S1', self.identity())

    def test_of_what_is_not_cleaned(self) -> None:
        first, second = (
            dataclasses.replace(host, cleaned=False)
            for host in (self.first, self.second)
        )
        first.report()
        self.assertEqual(frozenset(), self.told(second).uncleaned)
        self.assertEqual('S2', self.identity())


class TestVanished(CleaningTestCase):
    """Of a device that is gone while something of it is unclean."""

    scenarios = database.SCENARIOS

    def test_comes_back_unclean(self) -> None:
        handle = self.use()
        self.assertEqual({handle}, self.told(WITHOUT).uncleaned)
        self.assertEqual(
            {handle: 'gone from its host before it was cleaned'},
            self.reasons(),
        )
        self.assertIn(
            'gone from its host before it was cleaned', self.refusal()
        )
        self.assertEqual({handle}, self.told().uncleaned)
        self.assertEqual({handle: 'being cleaned'}, self.reasons())
        self.assertIn('(1 being cleaned)', self.refusal())

    def test_cleaned_just_before_it_went(self) -> None:
        handle = self.use()
        told = self.told(WITHOUT)
        cleaning_results.note('compute-1', [handle], {}, told.revision)
        self.assertIn('1 gone from its host', self.refusal())
        self.assertEqual({'compute-1': 1}, capacity.free_by_host())
        self.assertEqual(
            host_orders.Orders(told.revision + 1),
            WITHOUT.report(orders_seen=told.revision),
        )
        self.assertEqual(1, len(self.rows(schema.ATTACH_HANDLES)))
        self.assertEqual(1, len(device.get_all()))
        # The word was lost and comes once more.
        self.assertRaises(
            exceptions.NotFound,
            cleaning_results.note,
            'compute-1',
            [handle],
            {},
            told.revision,
        )

    def test_disabled_and_unclean(self) -> None:
        self.use()
        device.set_status(HOST.device_uuid(), hardware.Status.MAINTAINING)
        self.assertIn('disabled by an administrator', self.refusal())
        self.assertEqual(['being cleaned'], list(self.reasons().values()))
