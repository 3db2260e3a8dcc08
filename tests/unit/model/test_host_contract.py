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

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.model import host_contract

_SINCE = {
    host_contract.REPORT: {'weather': 3},
    'devices': {'colour': 2},
    'deployables': {'shape': 3},
}

_DEVICES = st.lists(
    st.fixed_dictionaries(
        {
            'deployables': st.lists(
                st.dictionaries(
                    st.sampled_from(['uuid', 'colour', 'shape']), st.integers()
                )
            )
        },
        optional={'uuid': st.integers(), 'colour': st.integers()},
    )
)


class TestStated(testtools.TestCase):
    def test_a_number(self) -> None:
        self.assertEqual(12, host_contract.stated('12'))

    def test_anything_else_is_the_first(self) -> None:
        for text in (None, '', '-1', '1.2', 'one', '1' * 99, '²', '1\n'):
            self.assertEqual(host_contract.FIRST, host_contract.stated(text))


class TestSpoken(testtools.TestCase):
    def test_the_newest_is_told_whole(self) -> None:
        report = {'devices': [{'colour': 'red'}], 'weather': 'fair'}
        self.assertEqual(
            (report, frozenset()),
            host_contract.spoken(report, host_contract.REPORT, 3, _SINCE),
        )

    def test_what_the_first_has_no_word_for_is_left_out(self) -> None:
        report = {
            'digest': 'a',
            'devices': [{'uuid': 'b', 'colour': 'red'}, {'uuid': 'd'}],
            'weather': 'fair',
        }
        before = repr(report)
        told, left_out = host_contract.spoken(
            report, host_contract.REPORT, 1, _SINCE
        )
        self.assertEqual(
            {'digest': 'a', 'devices': [{'uuid': 'b'}, {'uuid': 'd'}]}, told
        )
        self.assertEqual({'colour', 'weather'}, left_out)
        self.assertEqual(before, repr(report))

    def test_a_word_of_one_message_is_none_of_another(self) -> None:
        request = {'attempt': 1, 'weather': 'fair'}
        told, left_out = host_contract.spoken(
            request, host_contract.REQUEST, 1, _SINCE
        )
        self.assertEqual((request, frozenset()), (told, left_out))

    @given(_DEVICES)
    def test_no_key_is_newer_than_the_contract(
        self, devices: list[dict[str, object]]
    ) -> None:
        for contract in (1, 2, 3):
            told, _left_out = host_contract.spoken(
                {'devices': devices}, host_contract.REPORT, contract, _SINCE
            )
            self.assertEqual(len(devices), len(told['devices']))
            for device, kept in zip(devices, told['devices'], strict=True):
                self.assertEqual(
                    device.keys() - ({'colour'} if contract < 2 else set()),
                    kept.keys(),
                )
                self.assertEqual(
                    contract == 3 and 'shape' in str(device),
                    'shape' in str(kept),
                )
