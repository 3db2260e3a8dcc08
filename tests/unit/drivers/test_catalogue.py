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
import re

import fixtures
import os_traits
from oslo_config import fixture as config_fixture
import testtools

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.drivers import catalogue
from nova_accel.model import naming
from nova_accel.model.devices import subsystem


class TestCatalogue(testtools.TestCase):
    def test_known(self):
        self.assertEqual(
            catalogue.Product('QAT', 'Intel', 'C62x VF'),
            catalogue.look_up('8086', '37c9'),
        )

    def test_the_functions_of_one_card_have_one_name(self):
        for ids in (
            ('5000', '5001'),
            ('500c', '500d'),
            ('5094', '5095'),
            ('50b4', '50b5'),
            ('513c', '513d'),
        ):
            first, second = (catalogue.look_up('10ee', each) for each in ids)
            self.assertEqual('FPGA', first.type, ids)
            self.assertEqual(first, second)

    def test_devices_of_each_type(self):
        for vendor, product, entry in (
            ('10de', '2321', catalogue.Product('GPU', 'NVIDIA', 'H100 NVL')),
            (
                '17cb',
                'a100',
                catalogue.Product('AICHIP', 'Qualcomm', 'Cloud AI 100'),
            ),
            (
                '1bcf',
                '001c',
                catalogue.Product('AICHIP', 'NEC', 'Vector Engine 1.0'),
            ),
            ('8086', '4949', catalogue.Product('QAT', 'Intel', '6xxx VF')),
            ('ad5a', '0400', catalogue.Product('TIME', 'ADVA', 'Time Card')),
        ):
            self.assertEqual(entry, catalogue.look_up(vendor, product))

    def test_boards_that_share_an_id(self):
        for ids, board, name in (
            ('10de 25b6', '10de:157e', 'A2'),
            ('10de 25b6', '10de:14a9', 'A16'),
            ('10de 25b6', '10de:0000', 'A2 or A16'),
            ('10de 25b6', None, 'A2 or A16'),
            ('8086 bcce', '8086:1770', 'N6000'),
            ('8086 bcce', '8086:1771', 'N6001'),
            ('8086 bccf', '8086:1771', 'N6001 VF'),
            ('8086 bcce', '8086:17d4', 'C6100'),
            ('8086 bcce', '8086:138d', 'PAC D5005'),
            ('8086 bcce', '8086:0000', 'DFL FPGA'),
            ('8086 37c9', '8086:0000', 'C62x VF'),
        ):
            found = catalogue.look_up(
                *ids.split(),
                board and subsystem.Subsystem(*board.split(':')),
            )
            self.assertEqual(name, found.product, (ids, board))
            self.assertEqual(
                name not in ('A2 or A16', 'DFL FPGA', 'C62x VF'),
                found.is_board,
            )

    def test_known_vendor(self):
        self.assertEqual(
            catalogue.Product(vendor='NVIDIA'),
            catalogue.look_up('10de', 'ffff'),
        )

    def test_unknown(self):
        self.assertEqual(
            catalogue.Product(), catalogue.look_up('ffff', '37c9')
        )

    def test_ids_are_those_of_pci_functions(self):
        for ids in catalogue.entries():
            for text in filter(
                None, re.split('[/:]', '/'.join(map(str, ids)))
            ):
                self.assertTrue(re.fullmatch('[0-9a-f]{4}|None', text), ids)

    def test_a_board_is_one_of_several(self):
        known = catalogue.entries()
        for vendor_id, product_id in known:
            if product_id is not None and '/' in product_id:
                plain = known[vendor_id, product_id.partition('/')[0]]
                self.assertEqual(plain.type, known[vendor_id, product_id].type)

    def test_types_have_resource_classes(self):
        for ids, entry in catalogue.entries().items():
            if ids[1] is not None:
                self.assertIn(entry.type, naming.RESOURCE_CLASSES, ids)

    def test_names_make_traits(self):
        for ids, entry in catalogue.entries().items():
            if ids[1] is not None:
                trait = naming.device_trait(
                    entry.type, entry.vendor, entry.product
                )
                self.assertTrue(os_traits.is_custom(trait), ids)
                self.assertFalse(trait.endswith('_'), trait)

    def test_a_virtual_function_is_told_from_its_card(self):
        names = {
            (entry.vendor, entry.product)
            for ids, entry in catalogue.entries().items()
            if ids[1] is not None
        }
        for vendor, product in names:
            if product.endswith(' VF') and vendor != 'Mellanox':
                self.assertIn((vendor, product.removesuffix(' VF')), names)


class TestOperatorsFile(testtools.TestCase):
    def read(self, text):
        file = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'catalogue.yaml'
        )
        file.write_text(text)
        self.useFixture(config_fixture.Config(conf.CONF)).config(
            group='nova_accel', catalogue_file=str(file)
        )

    def test_adds(self):
        self.read(
            '{"8086": {"name": Intel, "products": '
            '{"QAT": {"4948": 6xxx}}}, "ac3e": {"name": ACME}}'
        )
        self.assertEqual(
            catalogue.Product('QAT', 'Intel', '6xxx'),
            catalogue.look_up('8086', '4948'),
        )
        self.assertEqual(
            catalogue.Product('QAT', 'Intel', 'C62x VF'),
            catalogue.look_up('8086', '37c9'),
        )
        self.assertEqual(
            catalogue.Product(vendor='ACME'), catalogue.look_up('ac3e', '0001')
        )

    def test_overrules(self):
        self.read(
            '{"8086": {"name": Old Intel, "products": '
            '{"AICHIP": {"37c9": Fast}}}}'
        )
        self.assertEqual(
            catalogue.Product('AICHIP', 'Old Intel', 'Fast'),
            catalogue.look_up('8086', '37c9'),
        )
        self.assertEqual(
            catalogue.Product('QAT', 'Old Intel', 'C62x'),
            catalogue.look_up('8086', '37c8'),
        )

    def test_adds_a_board(self):
        self.read(
            '{"8086": {"name": Intel, "products": '
            '{"FPGA": {"bcce/8086:0001": Devkit}}}}'
        )
        for board, name in (
            ('0001', 'Devkit'),
            ('1771', 'N6001'),
            ('0000', 'DFL FPGA'),
        ):
            self.assertEqual(
                name,
                catalogue.look_up(
                    '8086', 'bcce', subsystem.Subsystem('8086', board)
                ).product,
            )

    def test_overrules_all_boards_of_an_id(self):
        """So a device can keep the name that it had."""
        self.read(
            '{"10de": {"name": NVIDIA, "products": '
            '{"GPU": {"25b6": A2 or A16}}}}'
        )
        self.assertEqual(
            catalogue.Product('GPU', 'NVIDIA', 'A2 or A16'),
            catalogue.look_up(
                '10de', '25b6', subsystem.Subsystem('10de', '157e')
            ),
        )

    def test_unusable(self):
        self.read('{8086: {"name": Intel}}')
        error = self.assertRaises(
            exceptions.ConfigurationError, catalogue.entries
        )
        self.assertIn('catalogue_file', str(error))
