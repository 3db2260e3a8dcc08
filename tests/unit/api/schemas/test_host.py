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

from nova_accel.api.http import quick_check
from nova_accel.api.schemas import host
from nova_accel.model import finding
from nova_accel.model import host_contract
from nova_accel.model.cards import card_slice
from unit.model.cards import slices

#: The keys of the first contract. A newer key has to have a contract in
#: nova_accel.model.host_contract: without it, an API of the release before
#: would refuse the whole report.
_FIRST_REPORT = {
    'node_uuid',
    'service_host',
    'digest',
    'devices',
    'orders_seen',
    'orders_published',
    'part',
    'others',
    'contract',
    'findings',
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
    'link_sets',
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
        report: Any = host.REPORT
        part = report
        for name, first in (
            ('report', _FIRST_REPORT),
            ('devices', _FIRST_DEVICE),
            ('deployables', _FIRST_DEPLOYABLE),
            ('attach_handles', _FIRST_HANDLE),
            ('findings', finding.Finding('mdev', 'destroyed').to_dict()),
        ):
            if name == 'findings':
                part = report
            if name != 'report':
                part = part['properties'][name]['items']
            newer = host_contract.SINCE.get(name, {}).keys()
            self.assertEqual({*first, *newer}, set(part['properties']))
            self.assertEqual(set(), newer & set(part['required']))

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
            finding.to_dicts(found), part['properties']['findings']
        )


class TestSlices(testtools.TestCase):
    def is_valid(self, **more: Any) -> bool:
        part: Any = host.REPORT
        for name in ('devices', 'deployables', 'attach_handles'):
            part = part['properties'][name]['items']
        handle = {
            'uuid': '4b20d080-1b54-4048-85b3-a6a62d165c01',
            'type': 'PCI',
            'info': {
                'domain': '0000',
                'bus': '81',
                'device': '02',
                'function': '3',
                **more,
            },
        }
        answers = {
            quick_check.matches(handle, part),
            jsonschema.Draft7Validator(part).is_valid(handle),
        }
        [answer] = answers
        return answer

    @given(slices.ANY | st.just(slices.WHOLE))
    def test_whatever_a_card_has(self, found: card_slice.CardSlice) -> None:
        self.assertTrue(self.is_valid(slice=found.to_dict()))

    def test_units_that_share_no_card(self) -> None:
        self.assertTrue(self.is_valid())

    def test_malformed(self) -> None:
        good = slices.WHOLE.to_dict()
        for spoilt in (
            None,
            'whole',
            [],
            {},
            *(
                {key: value for key, value in good.items() if key != left_out}
                for left_out in good
            ),
            good | {'more': 1},
            good | {'shape': ''},
            good | {'shape': 'a\nb'},
            good | {'shape': 7},
            good | {'mode': None},
            good | {'mode': ''},
            good | {'start': -1},
            good | {'start': card_slice.WHOLE_CARD},
            good | {'start': 0.5},
            good | {'start': '0'},
            good | {'size': 0},
            good | {'size': card_slice.WHOLE_CARD + 1},
            good | {'size': None},
        ):
            self.assertFalse(self.is_valid(slice=spoilt), spoilt)


class TestNames(testtools.TestCase):
    HOSTILE = (
        'a\nb',
        'a\r',
        'a\x1b[2J',
        'a\x9b2J',
        'a\x85b',
        'a\x7f',
        'a\u2028b',
        'a\u202eb',
        'a\u2066b',
        'a\u200bb',
        'a\ud800',
        'a\0',
        '',
        'x' * 256,
    )

    def is_valid(self, name: str, value: str) -> bool:
        schema = host.REPORT['properties'][name]
        answers = {
            quick_check.matches(value, schema),
            jsonschema.Draft7Validator(schema).is_valid(value),
        }
        [answer] = answers
        return answer

    def test_a_service_has_any_word_for_a_name(self) -> None:
        for name in (
            'compute-1',
            'compute_1.example.org',
            'compute-1@cell-2',
            'compute-1.service',
            '2001:db8::1',
            'COMPUTE#1/a+b',
            'kołobrzeg-1',
            'x' * 255,
        ):
            self.assertTrue(self.is_valid('service_host', name), name)
        for name in (*self.HOSTILE, 'a b', 'a\tb', '\xa0a'):
            self.assertFalse(self.is_valid('service_host', name), ascii(name))

    def test_no_name_deceives_a_terminal(self) -> None:
        device = host.REPORT['properties']['devices']['items']['properties']
        deployable = device['deployables']['items']['properties']
        info = deployable['attach_handles']['items']['properties']['info']
        for schema in (
            device['name'],
            device['driver'],
            device['attributes']['propertyNames'],
            device['link_sets']['items'],
            deployable['name'],
            deployable['region'],
            info['properties']['asked_type'],
            info['properties']['physical_network'],
            info['properties']['slice']['properties']['shape'],
            info['properties']['slice']['properties']['mode'],
        ):
            is_valid = jsonschema.Draft7Validator(schema).is_valid
            self.assertTrue(is_valid('GRID T4-2B zu heiß'))
            for name in self.HOSTILE:
                self.assertFalse(is_valid(name), (schema, name))
