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


import pathlib

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.drivers import catalogue_file

GOOD = """
"8086":
  name: Intel
  products:
    QAT:
      "4948": 6xxx
"ac3e":
  name: ACME
"""


class TestRead(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.file = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'catalogue.yaml'
        )

    def assert_refused(self, text, *reasons):
        self.file.write_text(text)
        error = self.assertRaises(
            exceptions.ConfigurationError, catalogue_file.read, str(self.file)
        )
        for reason in (
            f'[nova_accel] catalogue_file = {self.file}: ',
            *reasons,
        ):
            self.assertIn(reason, str(error))

    def test_good(self):
        self.file.write_text(GOOD)
        self.assertEqual(
            {
                '8086': {
                    'name': 'Intel',
                    'products': {'QAT': {'4948': '6xxx'}},
                },
                'ac3e': {'name': 'ACME'},
            },
            catalogue_file.read(str(self.file)),
        )

    def test_no_file(self):
        error = self.assertRaises(
            exceptions.ConfigurationError, catalogue_file.read, str(self.file)
        )
        self.assertIn('No such file', str(error))

    def test_no_yaml(self):
        self.assert_refused('"8086": [', 'line 1')

    def test_no_text(self):
        self.file.write_bytes(b'\xff\xfe\xfd')
        self.assertRaises(
            exceptions.ConfigurationError, catalogue_file.read, str(self.file)
        )

    def test_empty(self):
        self.assert_refused('', 'None')

    def test_ids_that_yaml_takes_for_numbers(self):
        self.assert_refused(GOOD.replace('"8086"', '8086'), '8086', 'quotes')
        self.assert_refused(GOOD.replace('"4948"', '0435'), '285', 'quotes')

    def test_ids_that_are_none(self):
        for bad in ('80860', 'AC3E', '0x80', 'intel'):
            self.assert_refused(GOOD.replace('ac3e', bad), bad)
        for bad in ('494x', '4948/8086', '4948/8086:17D4', '/8086:17d4'):
            self.assert_refused(GOOD.replace('4948', bad), bad)

    def test_a_board(self):
        self.file.write_text(GOOD.replace('4948', '4948/8086:17d4'))
        self.assertEqual(
            {'4948/8086:17d4': '6xxx'},
            catalogue_file.read(str(self.file))['8086']['products']['QAT'],
        )

    def test_form(self):
        self.assert_refused(GOOD.replace('QAT', 'QUAT'), 'QUAT', '8086')
        self.assert_refused(GOOD.replace('name: ACME', '{}'), 'ac3e', 'name')
        self.assert_refused(GOOD.replace('6xxx', '["6xxx"]'), '6xxx')
        self.assert_refused(GOOD + '  ids: 7', 'ids')

    def test_names_that_make_no_traits(self):
        self.assert_refused(GOOD.replace('6xxx', '"-"'), '8086/4948')
        self.assert_refused(GOOD.replace('6xxx', 'x' * 300), '8086/4948')

    def test_one_product_is_of_one_type(self):
        self.assert_refused(
            GOOD.replace('"ac3e"', '    FPGA:\n      "4948": FX\n"ac3e"'),
            '8086/4948',
            'QAT',
            'FPGA',
        )
