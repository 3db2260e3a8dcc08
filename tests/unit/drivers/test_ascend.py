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

from nova_accel.drivers import ascend
from unit.drivers import base


class TestAscend(base.DriverTestCase):
    driver = ascend.AscendDriver
    spec = {'vendor_id': '19e5'}

    def functions(self):
        return [base.a_function(self.CARD, '19e5', 'd802')]

    def test_both_chips_of_a_card_at_one_address_are_one_unit(self):
        [handle] = self.discover().handles
        self.assertEqual([self.CARD], list(map(str, handle.functions)))

    def test_processor(self):
        device = self.discover()
        self.assertEqual(('AICHIP', True), (device.type, device.pooled))
        self.assertEqual(
            [{'CUSTOM_AICHIP_HUAWEI_ASCEND_910B'}], self.traits(device)
        )
