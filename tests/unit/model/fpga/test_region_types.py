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

import testtools

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.fpga import region_types

TYPE = 'ce489693-98f0-5f33-946d-560708be108a'
OTHER_TYPE = '69528db6-eb31-577a-8c36-68f9faa081f6'


def a_card(bus, product, *types, product_id='09c4', traits=()):
    address = pci_address.PciAddress(0, bus, 0, 0)
    return hardware.Device(
        address.node_device,
        'FPGA',
        '8086',
        product_id,
        'Intel',
        product,
        address,
        'fpga_dfl',
        tuple(
            hardware.Deployable(
                f'region{index}',
                'FPGA',
                frozenset(
                    {naming.region_trait('FPGA', 'Intel', type_), *traits}
                ),
                (),
            )
            for index, type_ in enumerate(types)
        ),
    )


class TestCheck(testtools.TestCase):
    def test_one_product_may_have_several_ids_and_types(self):
        region_types.check(
            a_card(1, 'PAC', TYPE, OTHER_TYPE),
            [
                a_card(2, 'PAC', TYPE, product_id='09c5'),
                a_card(3, 'PAC', OTHER_TYPE),
            ],
        )

    def test_other_products_have_others(self):
        region_types.check(
            a_card(1, 'PAC', TYPE),
            [a_card(2, 'D5005'), a_card(3, 'N3000', OTHER_TYPE)],
        )

    def test_boards_with_the_same_ids(self):
        region_types.check(
            a_card(1, 'N6000', TYPE), [a_card(2, 'N6001', TYPE)]
        )

    def test_two_products_of_one_type(self):
        error = self.assertRaises(
            exceptions.DeviceError,
            region_types.check,
            a_card(1, 'PAC', OTHER_TYPE, TYPE),
            [a_card(2, 'D5005', TYPE, product_id='0b2b')],
        )
        for text in (
            '0000:02:00.0',
            'Intel D5005',
            'Intel PAC',
            'REGION_CE489693',
        ):
            self.assertIn(text, str(error))

    def test_an_operators_trait_is_no_region_type(self):
        region_types.check(
            a_card(1, 'PAC', TYPE, traits=['CUSTOM_MY_REGION_EAST']),
            [a_card(2, 'D5005', OTHER_TYPE, traits=['CUSTOM_MY_REGION_EAST'])],
        )
