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

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import jsonschema
import testtools

from nova_accel.api.schemas import host
from nova_accel.model import finding
from nova_accel.model import host_contract

#: The keys that every API knows. A newer one has to have a contract in
#: nova_accel.model.host_contract: without it, an API of the release before
#: would refuse the whole report.
_FIRST_REPORT = {
    'node_uuid',
    'service_host',
    'digest',
    'devices',
    'orders_seen',
    'part',
    'others',
}
_FIRST_DEVICE = {
    'uuid',
    'name',
    'type',
    'vendor_id',
    'vendor',
    'product_id',
    'product',
    'address',
    'driver',
    'numa_node',
    'fault',
    'attributes',
    'deployables',
}
_FIRST_DEPLOYABLE = {
    'uuid',
    'name',
    'rp_uuid',
    'resource_class',
    'traits',
    'is_cleaned',
    'region',
    'bitstream_id',
    'attach_handles',
}
_FIRST_HANDLE = {'uuid', 'type', 'info', 'identity'}


class TestReport(testtools.TestCase):
    def test_each_newer_key_has_a_contract_and_is_optional(self) -> None:
        part: Any = host.REPORT
        for name, first, since in (
            (None, _FIRST_REPORT, host_contract.REPORT_SINCE),
            ('devices', _FIRST_DEVICE, host_contract.DEVICE_SINCE),
            ('deployables', _FIRST_DEPLOYABLE, host_contract.DEPLOYABLE_SINCE),
            ('attach_handles', _FIRST_HANDLE, host_contract.HANDLE_SINCE),
        ):
            if name is not None:
                part = part['properties'][name]['items']
            self.assertEqual(first | since.keys(), set(part['properties']))
            self.assertEqual(set(), since.keys() & set(part['required']))

    def test_no_contract_is_newer_than_the_newest(self) -> None:
        self.assertEqual(
            host_contract.NEWEST,
            max(
                number
                for since in (
                    host_contract.REPORT_SINCE,
                    host_contract.DEVICE_SINCE,
                    host_contract.DEPLOYABLE_SINCE,
                    host_contract.HANDLE_SINCE,
                    host_contract.FINDING_SINCE,
                )
                for number in since.values()
            ),
        )

    def test_a_finding_has_all_keys(self) -> None:
        """It is as new as they are; one that comes later has a contract."""
        part: Any = host.REPORT
        keys = part['properties']['findings']['items']['properties'].keys()
        self.assertEqual(
            finding.Finding('mdev', 'destroyed').to_dict().keys()
            | host_contract.FINDING_SINCE.keys(),
            keys,
        )

    @given(
        st.lists(
            st.builds(
                finding.Finding,
                st.sampled_from(finding.Kind) | st.just('a_newer_one'),
                st.text(max_size=2 * finding.MAX_WORDS),
                st.booleans(),
                st.none() | st.uuids().map(str) | st.text(max_size=9),
                st.none() | st.text(max_size=300),
            ),
            max_size=3,
        )
    )
    def test_whatever_a_host_tells_is_accepted(
        self, found: list[finding.Finding]
    ) -> None:
        part: Any = host.REPORT
        jsonschema.validate(
            finding.told(found), part['properties']['findings']
        )
