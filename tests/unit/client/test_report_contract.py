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
from typing import Any

import fixtures
import requests
import testtools

from nova_accel import exceptions
from nova_accel.client import report_contract
from nova_accel.db import engine
from nova_accel.db import schema
from nova_accel.model import host_contract
from nova_accel.model import standing_orders
from nova_accel.testing import accelerator_api
from nova_accel.testing import reports

_REPORT = {'digest': 'a', 'devices': [{'uuid': 'b', 'link_sets': ['c']}]}


class TestAgreement(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.agreement = report_contract.Agreement()

    def hear(self, status: int, contract: int | None) -> int:
        """The contract of the next report."""
        self.agreement.hear(
            status,
            {} if contract is None else {host_contract.HEADER: str(contract)},
        )
        return self.agreement.contract

    def test_it_begins_with_the_newest(self) -> None:
        self.assertEqual(
            {**_REPORT, 'contract': host_contract.NEWEST},
            self.agreement.speak(_REPORT),
        )
        self.assertEqual('', self.log.output)

    def test_what_an_older_api_is_not_told_is_logged_once(self) -> None:
        self.assertEqual(0, self.hear(400, None))
        for _report in range(2):
            self.assertEqual(
                {'digest': 'a', 'devices': [{'uuid': 'b'}]},
                self.agreement.speak(_REPORT),
            )
        self.assertEqual(1, self.log.output.count('not told'))
        self.assertIn('link_sets', self.log.output)

    def test_nothing_is_said_where_nothing_is_left_out(self) -> None:
        self.hear(400, None)
        self.agreement.speak({'digest': 'a', 'devices': [{'uuid': 'b'}]})
        self.assertNotIn('not told', self.log.output)

    def test_a_refusal_by_an_api_that_knows_as_much(self) -> None:
        for known in (host_contract.NEWEST, host_contract.NEWEST + 1):
            self.assertEqual(host_contract.NEWEST, self.hear(400, known))

    def test_other_faults_say_nothing_of_the_contract(self) -> None:
        for status in (401, 404, 409, 500, 502, 503):
            self.assertEqual(host_contract.NEWEST, self.hear(status, None))

    def test_what_was_accepted_is_known(self) -> None:
        """A proxy may keep the header to itself."""
        for status in (200, 204):
            self.assertEqual(host_contract.NEWEST, self.hear(status, None))

    def test_an_api_that_was_upgraded(self) -> None:
        self.hear(400, None)
        self.agreement.speak(_REPORT)
        self.assertEqual(0, self.hear(204, 0))
        self.assertEqual(0, self.hear(404, host_contract.NEWEST))
        self.assertEqual(
            host_contract.NEWEST, self.hear(204, host_contract.NEWEST + 1)
        )
        self.assertEqual(0, self.hear(400, None))
        self.agreement.speak(_REPORT)
        self.assertEqual(2, self.log.output.count('not told'))


class TestReports(testtools.TestCase):
    """Of a host that is newer than the API, until that is upgraded."""

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.api = self.useFixture(accelerator_api.AcceleratorApi())
        self.client = self.api.client('compute-1')
        self.is_older = True
        #: The keys of each report.
        self.sent: list[set[str]] = []
        request = self.api.adapter.request

        def answer(path: str, method: str, **kwargs: Any) -> Any:
            body = kwargs['json']
            self.sent.append(set(body))
            is_unknown = 'contract' in body or any(
                'link_sets' in device for device in body.get('devices', ())
            )
            if not self.is_older:
                return request(path, method, **kwargs)
            if is_unknown:
                kwargs['json'] = {**body, 'unknown': True}
            answered: requests.Response = request(path, method, **kwargs)
            del answered.headers[host_contract.HEADER]
            return answered

        self.useFixture(
            fixtures.MockPatchObject(
                self.api.adapter, 'request', side_effect=answer
            )
        )

    def report(
        self, orders_seen: int | None = None, **changes: Any
    ) -> standing_orders.Orders | None:
        host = reports.SimulatedHost(regions=(1, 1))
        devices = [
            dataclasses.replace(each, link_sets=('numa:a',)).to_report(
                host.node_uuid, host.layout().rp_uuids
            )
            | changes
            for each in host.devices()
        ]
        return self.client.report(
            host.node_uuid, 'service', str(changes), devices, orders_seen
        )

    def known(self) -> tuple[int, list[Any]]:
        """What the API has: the contract, and the link sets of devices."""
        hosts, devices = schema.HOSTS.c, schema.DEVICES.c
        with engine.reader() as connection:
            return (
                connection.execute(hosts.contract.table.select())
                .one()
                .contract,
                [
                    row.link_sets
                    for row in connection.execute(
                        devices.link_sets.table.select()
                    )
                ],
            )

    def test_an_older_api_accepts_what_it_knows(self) -> None:
        told = self.report()
        assert told is not None
        self.assertEqual((0, [[], []]), self.known())
        self.assertIsNone(self.report(told.revision))
        self.assertEqual(
            [True, False, False], ['contract' in keys for keys in self.sent]
        )
        self.assertNotIn('devices', self.sent[-1])
        self.assertEqual(1, self.log.output.count('link_sets'))

    def test_an_upgraded_api_is_told_the_rest(self) -> None:
        told = self.report()
        assert told is not None
        self.is_older = False
        self.assertIsNone(self.report(told.revision))
        self.assertEqual((0, [[], []]), self.known())
        self.assertIsNotNone(self.report(told.revision))
        self.assertEqual(
            (host_contract.NEWEST, [['numa:a'], ['numa:a']]), self.known()
        )

    def test_an_api_that_goes_back_to_the_release_before(self) -> None:
        self.is_older = False
        told = self.report()
        assert told is not None
        self.is_older = True
        self.assertIsNotNone(self.report(told.revision))
        # The column stays: the release before does not know it.
        self.assertNotIn('contract', self.sent[-1])

    def test_what_both_refuse(self) -> None:
        for self.is_older in (True, False):
            error = self.assertRaises(
                exceptions.InvalidRequest, self.report, name=7
            )
            self.assertIn('7 is not of type', str(error))

    def test_no_more_requests_than_before_to_an_api_as_new(self) -> None:
        self.is_older = False
        told = self.report()
        assert told is not None
        self.report(told.revision)
        self.assertEqual(2, len(self.sent))
        self.assertEqual(
            (host_contract.NEWEST, [['numa:a'], ['numa:a']]), self.known()
        )
