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

_KEYS = st.sampled_from(
    [
        'uuid',
        'fault',
        *host_contract.DEVICE_SINCE,
        *host_contract.DEPLOYABLE_SINCE,
    ]
)

_DEVICES = st.lists(
    st.fixed_dictionaries(
        {'deployables': st.lists(st.dictionaries(_KEYS, st.integers()))},
        optional={'uuid': st.text(), 'link_sets': st.lists(st.text())},
    )
)


class TestStated(testtools.TestCase):
    def test_a_number(self) -> None:
        self.assertEqual(12, host_contract.stated('12'))

    def test_anything_else_is_the_first(self) -> None:
        for text in (None, '', '-1', '1.2', 'one', '1' * 99, '²', '1\n'):
            self.assertEqual(0, host_contract.stated(text))


class TestSpoken(testtools.TestCase):
    def test_the_newest_is_told_whole(self) -> None:
        report = {'devices': [{'link_sets': ['a']}]}
        told, left_out = host_contract.spoken(report, host_contract.NEWEST)
        self.assertEqual(
            ({**report, 'contract': host_contract.NEWEST}, frozenset()),
            (told, left_out),
        )

    def test_what_the_first_has_no_word_for_is_left_out(self) -> None:
        told, left_out = host_contract.spoken(
            {
                'digest': 'a',
                'devices': [{'uuid': 'b', 'link_sets': ['c']}, {'uuid': 'd'}],
            },
            0,
        )
        self.assertEqual(
            {'digest': 'a', 'devices': [{'uuid': 'b'}, {'uuid': 'd'}]}, told
        )
        self.assertEqual({'link_sets'}, left_out)

    def test_nothing_is_left_out_of_a_report_without_news(self) -> None:
        told, left_out = host_contract.spoken({'digest': 'a'}, 0)
        self.assertEqual(({'digest': 'a'}, frozenset()), (told, left_out))

    @given(_DEVICES)
    def test_no_key_is_newer_than_the_contract(
        self, devices: list[dict[str, object]]
    ) -> None:
        for contract in range(host_contract.NEWEST):
            told, _left_out = host_contract.spoken(
                {'devices': devices}, contract
            )
            self.assertEqual(len(devices), len(told['devices']))
            for device, kept in zip(devices, told['devices'], strict=True):
                self.assertEqual(
                    {
                        key
                        for key in device
                        if host_contract.DEVICE_SINCE.get(key, 0) <= contract
                    },
                    set(kept),
                )

    @given(_DEVICES)
    def test_the_report_itself_stays(
        self, devices: list[dict[str, object]]
    ) -> None:
        before = repr(devices)
        host_contract.spoken({'devices': devices}, 0)
        self.assertEqual(before, repr(devices))


class TestAcquired(testtools.TestCase):
    def test_the_newest_is_told_whole(self) -> None:
        request = {'attempt': 1, 'numa_nodes': [0], 'is_new': True}
        self.assertEqual(
            request, host_contract.acquired(request, host_contract.NEWEST)
        )

    def test_what_the_first_has_no_word_for_is_left_out(self) -> None:
        self.assertEqual(
            {'attempt': 1},
            host_contract.acquired(
                {'attempt': 1, 'numa_nodes': [0], 'is_new': True}, 0
            ),
        )
