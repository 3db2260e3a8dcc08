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

from nova_accel.drivers import nic
from unit.drivers import base


class TestNic(base.DriverTestCase):
    driver = nic.NicDriver
    spec = {'vendor_id': '15b3', 'physical_network': 'physnet1'}
    address = base.the_address(1)
    takes_any = True

    def functions(self):
        self.sysfs.set(self.CARD, net__ens1f0__operstate='up')
        return base.sriov(self.CARD, '15b3', '101d', '101e', 2)

    def test_virtual_function(self):
        device = self.discover()
        self.assertEqual(
            ('NIC', True, {'uplink': 'ens1f0'}),
            (device.type, device.pooled, device.attributes),
        )
        (handle,) = self.handles(device)
        self.assertEqual('physnet1', handle.physical_network)
        self.assertIn('CUSTOM_PHYSNET_PHYSNET1', self.traits(device)[0])

    def test_a_card_with_virtual_functions(self):
        self.assert_refused('2 virtual functions', address=self.CARD)

    def test_without_a_network(self):
        self.assert_refused('"physical_network"', physical_network=None)


class TestCard(base.DriverTestCase):
    """Without virtual functions, and not in the catalogue."""

    driver = nic.NicDriver
    spec = {'physical_network': 'physnet1'}
    takes_any = True

    def functions(self):
        return [base.a_function(self.CARD, 'ac3e', '0001')]

    def test_card(self):
        device = self.discover()
        self.assertEqual(('NIC', {}), (device.type, device.attributes))
