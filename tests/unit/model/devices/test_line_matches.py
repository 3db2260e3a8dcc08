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

import json

import testtools

from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import line_matches
from nova_accel.model.devices import offered_functions
from nova_accel.model.devices import subsystem

BOARD = subsystem.Subsystem('10de', '157e')


def function(address, vendor_id, product_id, board=None):
    return offered_functions.Function(
        pci_address.PciAddress.parse(address), vendor_id, product_id, board
    )


GPU = function('0000:08:00.0', '10de', '25b6', BOARD)
QAT = function('0000:3d:00.0', '8086', '4940')
OTHER = function('0000:3e:00.0', '8086', '4940')
FUNCTIONS = (GPU, QAT, OTHER)


def specs(*lines):
    return device_spec.parse(
        [json.dumps({'driver': 'pci', **line}) for line in lines], ['pci']
    )


class TestShadowed(testtools.TestCase):
    def test_the_first_line_has_them(self):
        lines = specs(
            {'address': '0000:3d:00.0'},
            {'vendor_id': '8086'},
            {'product_id': '4940', 'vendor_id': '*'},
            {'vendor_id': '10de'},
        )
        self.assertEqual(
            {(1, 0): [QAT], (2, 0): [QAT], (2, 1): [OTHER]},
            line_matches.shadowed(lines, FUNCTIONS),
        )

    def test_none(self):
        lines = specs({'vendor_id': '10de'}, {'vendor_id': 'abcd'})
        self.assertEqual({}, line_matches.shadowed(lines, FUNCTIONS))
        self.assertEqual({}, line_matches.shadowed((), FUNCTIONS))


class TestWhyUnmatched(testtools.TestCase):
    def why(self, functions=FUNCTIONS, **line):
        (spec,) = specs(line)
        return line_matches.why_unmatched(spec, functions)

    def test_a_mistyped_vendor(self):
        self.assertEqual(
            'no device has "vendor_id": "8068" (did you mean "8086"?)',
            self.why(vendor_id='8068'),
        )

    def test_the_rest_of_the_line_is_right(self):
        self.assertEqual(
            'no device has "vendor_id": "8068"; with "product_id": "4940" '
            'there is 0000:3d:00.0 (8086:4940), 0000:3e:00.0 (8086:4940)',
            self.why(vendor_id='8068', product_id='4940'),
        )

    def test_an_address_of_no_device(self):
        self.assertEqual(
            'no device has "address": "0000:08:00.1" (did you mean '
            '"0000:08:00.0"?)',
            self.why(address='0000:08:00.1'),
        )

    def test_all_keys_are_wrong(self):
        self.assertEqual(
            'no device has "address": "*:ff:*.*"; no device has "vendor_id": '
            '"abcd"',
            self.why(address='*:ff:*.*', vendor_id='abcd'),
        )

    def test_each_key_is_right_alone(self):
        self.assertEqual(
            'no device has all of "address": "0000:08:00.0", "product_id": '
            '"4940": there is 0000:08:00.0 (10de:25b6)',
            self.why(address='0000:08:00.0', product_id='4940'),
        )
        self.assertEqual(
            'no device has all of "vendor_id": "10de", "product_id": "4940"',
            self.why(vendor_id='10de', product_id='4940'),
        )

    def test_the_board(self):
        self.assertEqual(
            'no device has "subsystem_product_id": "14a9"; with "vendor_id": '
            '"10de" there is 0000:08:00.0 (10de:25b6)',
            self.why(vendor_id='10de', subsystem_product_id='14a9'),
        )

    def test_a_host_without_devices(self):
        self.assertEqual(
            'no device has "vendor_id": "8086"',
            self.why((), vendor_id='8086'),
        )
