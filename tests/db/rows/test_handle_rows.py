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

import testscenarios

from db import test_cleaning_results
from nova_accel.db import cleaning_results
from nova_accel.db import client_arqs
from nova_accel.db import host_arqs
from nova_accel.model import host_orders
from nova_accel.testing import database
from nova_accel.testing import reports
from rig import capacity

load_tests = testscenarios.load_tests_apply_scenarios

HOST = test_cleaning_results.HOST
WITHOUT = test_cleaning_results.WITHOUT


class TestGiveBack(test_cleaning_results.CleaningTestCase):
    scenarios = database.SCENARIOS

    def test_by_the_host(self) -> None:
        handle = self.use()
        self.assertIn('(1 being cleaned)', self.refusal())
        self.assertEqual({'compute-1': 1}, capacity.free_by_host())
        self.assertEqual(
            host_orders.Orders(3, uncleaned=frozenset({handle})),
            self.told(),
        )
        self.assertEqual({handle: 'being cleaned'}, self.reasons())

    def test_by_whoever_else(self) -> None:
        """Nova's deletion, a local deletion, an audit, an unbinding."""
        for free in (
            lambda uuid, place: client_arqs.unbind([uuid]),
            lambda uuid, place: client_arqs.delete_by_uuids(
                [uuid], bound_allowed=True
            ),
            lambda uuid, place: client_arqs.delete_by_instance(
                place['instance_uuid']
            ),
            lambda uuid, place: host_arqs.delete_unadopted(
                place['instance_uuid'], 'compute-1', [uuid]
            ),
        ):
            [uuid] = self.make_arqs(1)
            place = self.place()
            client_arqs.bind({uuid: place})
            [bound] = self.taken()
            free(uuid, place)
            [handle] = self.told().uncleaned
            self.assertEqual(bound, handle)
            cleaning_results.note(
                'compute-1', [handle], {}, self.told().revision
            )

    def test_one_that_is_not_cleaned_is_free_at_once(self) -> None:
        dataclasses.replace(HOST, cleaned=False).report()
        self.use()
        self.use()
        told = dataclasses.replace(HOST, cleaned=False).report()
        self.assertEqual(host_orders.Orders(2), told)

    def test_of_several_hosts_at_once(self) -> None:
        others = [
            reports.SimulatedHost(f'compute-{number}', cleaned=cleaned)
            for number, cleaned in ((2, True), (3, False))
        ]
        uuids = self.make_arqs(3)
        for uuid, host in zip(uuids, [HOST, *others], strict=True):
            host.clean()
            client_arqs.bind(
                {
                    uuid: {
                        **self.place(host.rp_uuid()),
                        'hostname': host.hostname,
                    }
                }
            )
        client_arqs.delete_by_uuids(uuids, bound_allowed=True)
        self.assertEqual(
            [4, 4, 1],
            [self.told(host).revision for host in [HOST, *others]],
        )
        self.assertEqual(
            [1, 1, 0],
            [len(self.told(host).uncleaned) for host in [HOST, *others]],
        )

    def test_released_when_it_was_gone(self) -> None:
        request = self.request()
        [held] = host_arqs.acquire(request)
        WITHOUT.report()
        host_arqs.release(*request.key, 1)
        self.assertEqual(
            {held['attach_handle_uuid']},
            self.told(WITHOUT).uncleaned,
        )
        self.assertIn('gone from its host', self.refusal())
        self.assertEqual({held['attach_handle_uuid']}, self.told().uncleaned)
