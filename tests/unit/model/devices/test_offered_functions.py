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
import json

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import offered_functions
from nova_accel.model.devices import subsystem


def a_function(address, vendor_id='10ee', product_id='5004'):
    return offered_functions.Function(
        pci_address.PciAddress.parse(address), vendor_id, product_id
    )


CARD = a_function('0000:3d:00.0')
OTHER = a_function('0000:3d:00.1', product_id='5005')
FAR = a_function('0000:3e:00.0', product_id='5005')


def line_of(function, *lines, physical=None, of_slot=(), of_group=()):
    found = offered_functions.line_of(
        device_spec.parse(
            [json.dumps({'driver': 'pci', **line}) for line in lines], None
        ),
        function,
        physical,
        of_slot,
        of_group,
    )
    return found and json.loads(found.text)['address']


class TestLineOf(testtools.TestCase):
    def test_by_the_board(self):
        line = {
            'address': '3d:*.*',
            'subsystem_vendor_id': '8086',
            'subsystem_product_id': '1771',
        }
        for board, found in (
            (subsystem.Subsystem('8086', '1771'), '3d:*.*'),
            (subsystem.Subsystem('8086', '1770'), None),
            (None, None),
        ):
            function = dataclasses.replace(CARD, subsystem=board)
            self.assertEqual(found, line_of(function, line))

    def test_its_own(self):
        self.assertEqual(
            '3d:*.*',
            line_of(CARD, {'address': '3d:*.*'}, {'address': '*:*.*'}),
        )
        self.assertIsNone(line_of(CARD, {'address': '3e:*.*'}))
        self.assertIsNone(line_of(CARD))

    def test_of_its_physical_function(self):
        line = {'address': '3d:00.0'}
        self.assertEqual('3d:00.0', line_of(FAR, line, physical=CARD))
        self.assertIsNone(line_of(FAR, line))

    def test_of_its_slot(self):
        for keys, is_offered in (
            ({}, False),
            ({'unit': 'iommu_group'}, False),
            ({'unit': 'slot'}, True),
            ({'driver': 'xrt'}, True),
            ({'driver': 'fpga_region', 'whole': True}, True),
            ({'driver': 'fpga_region', 'whole': False}, False),
        ):
            line = {'address': '3d:00.0', **keys}
            self.assertEqual(
                is_offered,
                line_of(OTHER, line, of_slot=[CARD]) is not None,
                keys,
            )

    def test_of_its_iommu_group(self):
        for unit, is_offered in (
            ('function', False),
            ('slot', False),
            ('iommu_group', True),
        ):
            line = {'address': '3d:00.0', 'unit': unit}
            self.assertEqual(
                is_offered,
                line_of(FAR, line, of_group=[CARD]) is not None,
                unit,
            )

    @hypothesis.given(
        st.lists(
            st.fixed_dictionaries(
                {
                    'address': st.sampled_from(
                        ['3d:00.0', '3d:00.1', '3d:*.*', '3e:00.0', '3f:*.*']
                    )
                },
                optional={
                    'unit': st.sampled_from(
                        ['function', 'slot', 'iommu_group']
                    ),
                    'driver': st.sampled_from(['pci', 'xrt']),
                },
            ),
            max_size=4,
        )
    )
    def test_only_by_a_line_that_names_it_or_is_shared(self, lines):
        """The host's own function may be beside those of guests."""
        offering = line_of(OTHER, *lines, of_slot=[CARD], of_group=[FAR])
        names = {'own': ('3d:00.1', '3d:*.*'), 'slot': '3d:00.0'}
        shared = any(
            (
                line['address'] == names['slot']
                and (line.get('unit') == 'slot' or line.get('driver') == 'xrt')
            )
            or (
                line['address'] == '3e:00.0'
                and line.get('unit') == 'iommu_group'
            )
            for line in lines
        )
        if any(line['address'] in names['own'] for line in lines):
            self.assertIn(offering, names['own'])
        elif not shared:
            self.assertIsNone(offering)
