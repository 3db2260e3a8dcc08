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
from nova_accel.db import accelerator_request as arqs
from nova_accel.db import binding
from nova_accel.db import capacity
from nova_accel.db import cleaning
from nova_accel.db import device
from nova_accel.db import schema
from nova_accel.model import device as device_model
from nova_accel.model import orders
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

HOST = reports.SimulatedHost(regions=(1, 1), cleaned=True)
WITHOUT = dataclasses.replace(HOST, regions=(None, 1))


class CleaningTestCase(base.DatabaseTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.host = HOST
        self.host.report()
        self.make_profile()

    def told(self, host: reports.SimulatedHost = HOST) -> orders.Orders:
        told = host.report()
        assert told is not None
        return told

    def use(self) -> str:
        """The handle that an instance had."""
        request = self.request()
        [held] = binding.acquire(request)
        binding.release(*request.key, 1)
        handle: str = held['attach_handle_uuid']
        return handle

    def refusal(self) -> str:
        return str(self.assertRaises(
            exceptions.AcceleratorsBusy, binding.acquire, self.request()))

    def reasons(self) -> dict[str, str]:
        return {handle['uuid']: handle['reason']
                for found in device.get_all() for handle in found['unclean']}


class TestRelease(CleaningTestCase):
    scenarios = database.SCENARIOS

    def test_by_the_host(self) -> None:
        handle = self.use()
        self.assertIn('(1 being cleaned)', self.refusal())
        self.assertEqual({'compute-1': 1}, capacity.free_by_host())
        self.assertEqual(
            orders.Orders(1, uncleaned=frozenset({handle})), self.told())
        self.assertEqual({handle: 'being cleaned'}, self.reasons())

    def test_by_whoever_else(self) -> None:
        """Nova's deletion, a local deletion, an audit, an unbinding."""
        for free in (lambda uuid, place: arqs.unbind([uuid]),
                     lambda uuid, place: arqs.delete_by_uuids(
                         [uuid], bound_allowed=True),
                     lambda uuid, place: arqs.delete_by_instance(
                         place['instance_uuid']),
                     lambda uuid, place: binding.delete_unadopted(
                         place['instance_uuid'], 'compute-1', [uuid])):
            [uuid] = self.make_arqs(1)
            place = self.place()
            arqs.bind({uuid: place})
            [bound] = self.taken()
            free(uuid, place)
            [handle] = self.told().uncleaned
            self.assertEqual(bound, handle)
            cleaning.note('compute-1', [handle], {}, self.told().revision)

    def test_one_that_is_not_cleaned_is_free_at_once(self) -> None:
        dataclasses.replace(HOST, cleaned=False).report()
        self.use()
        self.use()
        told = dataclasses.replace(HOST, cleaned=False).report()
        self.assertEqual(orders.Orders(0), told)

    def test_of_several_hosts_at_once(self) -> None:
        others = [reports.SimulatedHost(f'compute-{number}', cleaned=cleaned)
                  for number, cleaned in ((2, True), (3, False))]
        uuids = self.make_arqs(3)
        for uuid, host in zip(uuids, [HOST, *others], strict=True):
            host.report()
            arqs.bind({uuid: {
                **self.place(host.rp_uuid()), 'hostname': host.hostname}})
        arqs.delete_by_uuids(uuids, bound_allowed=True)
        self.assertEqual(
            [1, 1, 0], [self.told(host).revision for host in [HOST, *others]])
        self.assertEqual(
            [1, 1, 0],
            [len(self.told(host).uncleaned) for host in [HOST, *others]])


class TestNote(CleaningTestCase):
    scenarios = database.SCENARIOS

    def test_cleaned_is_free_again(self) -> None:
        handle = self.use()
        revision = self.told().revision
        for _again in range(2):
            cleaning.note('compute-1', [handle], {}, revision)
            self.assertEqual(orders.Orders(2), self.told())
        self.assertEqual({}, self.reasons())
        self.assertEqual(handle, self.use())

    def test_failed_stays_with_the_reason(self) -> None:
        handle = self.use()
        revision = self.told().revision
        for why in ('sanitize: I/O error', 'sanitize: timeout'):
            cleaning.note('compute-1', [], {handle: why}, revision)
            self.assertIn(f'(1 not cleaned: {why})', self.refusal())
            self.assertEqual({handle: f'not cleaned: {why}'}, self.reasons())
        self.assertEqual({handle}, self.told().uncleaned)
        cleaning.note('compute-1', [handle], {}, revision)
        self.use()
        self.assertEqual({handle: 'being cleaned'}, self.reasons())

    def test_both_in_one(self) -> None:
        first = self.use()
        request = self.request(HOST.allocated(bus=1))
        [held] = binding.acquire(request)
        binding.release(*request.key, 1)
        second = held['attach_handle_uuid']
        cleaning.note('compute-1', [first], {second: 'why'},
                      self.told().revision)
        self.assertEqual({second: 'not cleaned: why'}, self.reasons())

    def test_late_word_of_an_earlier_cleaning(self) -> None:
        """Another guest has had it since: it would see that one's data."""
        handle = self.use()
        earlier = self.told().revision
        cleaning.note('compute-1', [handle], {}, earlier)
        self.use()
        cleaning.note('compute-1', [handle], {}, earlier)
        cleaning.note('compute-1', [], {handle: 'why'}, earlier)
        self.assertEqual({handle: 'being cleaned'}, self.reasons())
        cleaning.note('compute-1', [handle], {}, self.told().revision)
        self.assertEqual({}, self.reasons())

    def test_word_of_one_that_is_held(self) -> None:
        request = self.request()
        [held] = binding.acquire(request)
        cleaning.note('compute-1', [held['attach_handle_uuid']], {}, 99)
        self.assertEqual([held], binding.get(*request.key))

    def test_unknown(self) -> None:
        handle, unknown = self.use(), uuidutils.generate_uuid()
        for cleaned, failed in (([handle, unknown], {}),
                                ([handle], {unknown: 'why'})):
            error = self.assertRaises(
                exceptions.NotFound, cleaning.note, 'compute-1', cleaned,
                failed, 99)
            self.assertEqual(
                f'Attach handle not found with uuid={unknown}', str(error))
        self.assertEqual({handle}, self.told().uncleaned)

    def test_of_another_host(self) -> None:
        reports.SimulatedHost('compute-2').report()
        handle = self.use()
        error = self.assertRaises(
            exceptions.Conflict, cleaning.note, 'compute-2', [handle], {}, 99)
        self.assertEqual(
            f'attach handle {handle} belongs to host compute-1', str(error))
        self.assertEqual({handle}, self.told().uncleaned)

    def test_statements_do_not_depend_on_the_amount(self) -> None:
        host = reports.SimulatedHost(functions=9, cleaned=True)
        self.host = host
        counts = []
        for amount in (1, 8):
            name = f'qat-{amount}'
            self.make_profile({'resources:CUSTOM_QAT': str(amount)},
                              name=name)
            self.told(host)
            request = self.request(host.allocated_functions(amount),
                                   device_profile_name=name)
            handles = [held['attach_handle_uuid']
                       for held in binding.acquire(request)]
            released = self.statements(
                lambda request=request: binding.release(*request.key, 1))
            told = self.told(host)
            self.assertEqual(set(handles), told.uncleaned)
            noted = self.statements(
                lambda handles=handles, told=told: cleaning.note(
                    host.hostname, handles, {}, told.revision))
            counts.append((len(released), len(noted)))
        self.assertEqual(counts[0], counts[1])


class TestVanished(CleaningTestCase):
    """Of a device that is gone while something of it is unclean."""

    scenarios = database.SCENARIOS

    def test_comes_back_unclean(self) -> None:
        handle = self.use()
        self.assertEqual({handle}, self.told(WITHOUT).uncleaned)
        self.assertEqual(
            {handle: 'gone from its host before it was cleaned'},
            self.reasons())
        self.assertIn('gone from its host before it was cleaned',
                      self.refusal())
        self.assertEqual({handle}, self.told().uncleaned)
        self.assertEqual({handle: 'being cleaned'}, self.reasons())
        self.assertIn('(1 being cleaned)', self.refusal())

    def test_released_when_it_was_gone(self) -> None:
        request = self.request()
        [held] = binding.acquire(request)
        WITHOUT.report()
        binding.release(*request.key, 1)
        self.assertEqual({held['attach_handle_uuid']},
                         self.told(WITHOUT).uncleaned)
        self.assertIn('gone from its host', self.refusal())
        self.assertEqual({held['attach_handle_uuid']}, self.told().uncleaned)

    def test_cleaned_just_before_it_went(self) -> None:
        handle = self.use()
        told = self.told(WITHOUT)
        cleaning.note('compute-1', [handle], {}, told.revision)
        self.assertIn('1 gone from its host', self.refusal())
        self.assertEqual({'compute-1': 1}, capacity.free_by_host())
        self.assertEqual(
            orders.Orders(told.revision + 1),
            WITHOUT.report(orders_seen=told.revision))
        self.assertEqual(1, len(self.rows(schema.ATTACH_HANDLES)))
        self.assertEqual(1, len(device.get_all()))
        # The word was lost and comes once more.
        self.assertRaises(exceptions.NotFound, cleaning.note, 'compute-1',
                          [handle], {}, told.revision)

    def test_disabled_and_unclean(self) -> None:
        self.use()
        device.set_status(HOST.device_uuid(),
                          device_model.Status.MAINTAINING)
        self.assertIn('disabled by an administrator', self.refusal())
        self.assertEqual(['being cleaned'], list(self.reasons().values()))
