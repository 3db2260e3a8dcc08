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

import copy
from typing import Any

import fixtures
import requests
import testtools

from nova_accel import exceptions
from nova_accel.client import report_contract
from nova_accel.model import host_contract
from nova_accel.model import host_orders
from nova_accel.testing import accelerator_api
from nova_accel.testing import reports

#: The contract of the next release, which tells the colour of a device.
_NEXT = host_contract.NEWEST + 1
_SINCE = {
    'devices': {'colour': _NEXT},
    host_contract.REQUEST: {'mood': _NEXT},
}

_REPORT = {'digest': 'a', 'devices': [{'uuid': 'b', 'colour': 'red'}]}


class TestAgreement(testtools.TestCase):
    """Of a host of the next release."""

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.agreement = report_contract.Agreement(_NEXT, _SINCE)

    def answer(self, status: int, contract: int | None) -> int:
        """The contract of the next report."""
        self.agreement.note_answer(
            status,
            {} if contract is None else {host_contract.HEADER: str(contract)},
        )
        return self.agreement.contract

    def test_it_begins_with_the_newest(self) -> None:
        self.assertEqual(
            {**_REPORT, 'contract': _NEXT}, self.agreement.compose(_REPORT)
        )
        self.assertEqual({'mood': 1}, self.agreement.request({'mood': 1}))
        self.assertEqual('', self.log.output)

    def test_what_an_older_api_is_not_told_is_logged_once(self) -> None:
        self.assertEqual(1, self.answer(400, 1))
        for _report in range(2):
            self.assertEqual(
                {'digest': 'a', 'devices': [{'uuid': 'b'}], 'contract': 1},
                self.agreement.compose(_REPORT),
            )
        self.assertEqual({}, self.agreement.request({'mood': 1}))
        self.assertEqual(1, self.log.output.count('not told: colour'))

    def test_nothing_is_said_where_nothing_is_left_out(self) -> None:
        self.answer(400, 1)
        self.agreement.compose({'digest': 'a', 'devices': [{'uuid': 'b'}]})
        self.assertNotIn('not told', self.log.output)

    def test_a_refusal_by_an_api_that_knows_as_much(self) -> None:
        for known in (_NEXT, _NEXT + 1):
            self.assertEqual(_NEXT, self.answer(400, known))

    def test_other_faults_say_nothing_of_the_contract(self) -> None:
        for status in (401, 404, 409, 500, 502, 503):
            self.assertEqual(_NEXT, self.answer(status, None))

    def test_what_was_accepted_is_known(self) -> None:
        """A proxy may keep the header to itself."""
        for status in (200, 204):
            self.assertEqual(_NEXT, self.answer(status, None))

    def test_an_api_that_was_upgraded(self) -> None:
        self.answer(400, None)
        self.agreement.compose(_REPORT)
        self.assertEqual(1, self.answer(204, 1))
        self.assertEqual(1, self.answer(404, _NEXT))
        self.assertEqual(_NEXT, self.answer(204, _NEXT + 1))
        self.assertEqual(1, self.answer(400, None))
        self.agreement.compose(_REPORT)
        self.assertEqual(2, self.log.output.count('not told'))


class TestReports(testtools.TestCase):
    """Of a host of the next release to the API of this one."""

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.api = self.useFixture(accelerator_api.AcceleratorApi())
        self.client = self.api.client('compute-1')
        self.client._agreement = report_contract.Agreement(_NEXT, _SINCE)
        self.is_older = True
        self.sent: list[dict[str, Any]] = []
        request = self.api.adapter.request

        def answer(path: str, method: str, **kwargs: Any) -> Any:
            self.sent.append(kwargs['json'])
            if self.is_older:
                return request(path, method, **kwargs)
            # An upgraded API: it has a word for the colour.
            told = copy.deepcopy(kwargs['json'])
            told['contract'] = host_contract.NEWEST
            for device in told.get('devices', ()):
                device.pop('colour', None)
            answered: requests.Response = request(
                path, method, **{**kwargs, 'json': told}
            )
            answered.headers[host_contract.HEADER] = str(_NEXT)
            return answered

        self.useFixture(
            fixtures.MockPatchObject(
                self.api.adapter, 'request', side_effect=answer
            )
        )

    def report(
        self, orders_seen: int | None = None, **changes: Any
    ) -> host_orders.Orders | None:
        host = reports.SimulatedHost(regions=(1, 1))
        devices = [
            each.to_report(host.node_uuid, host.layout().rp_uuids)
            | {'colour': 'red'}
            | changes
            for each in host.devices()
        ]
        return self.client.report(
            host.node_uuid, 'service', str(changes), devices, orders_seen
        )

    def contracts(self) -> list[int]:
        """Those of the reports, of which each has what its contract has."""
        for each in self.sent:
            self.assertEqual(
                'devices' in each and each['contract'] == _NEXT,
                'colour' in str(each),
            )
        return [each['contract'] for each in self.sent]

    def test_an_older_api_accepts_what_it_knows(self) -> None:
        told = self.report()
        assert told is not None
        self.assertIsNone(self.report(told.revision))
        self.assertEqual([_NEXT, 1, 1], self.contracts())
        self.assertNotIn('devices', self.sent[-1])
        self.assertEqual(1, self.log.output.count('not told: colour'))

    def test_an_upgraded_api_is_told_the_rest(self) -> None:
        told = self.report()
        assert told is not None
        self.is_older = False
        self.assertIsNone(self.report(told.revision))
        self.report(told.revision)
        self.assertEqual([_NEXT, 1, 1, _NEXT], self.contracts())
        self.assertIn('devices', self.sent[-1])

    def test_an_api_that_goes_back_to_the_release_before(self) -> None:
        self.is_older = False
        told = self.report()
        assert told is not None
        self.is_older = True
        self.report(told.revision)
        self.assertEqual(1, self.contracts()[-1])

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
        self.assertEqual([_NEXT, _NEXT], self.contracts())
