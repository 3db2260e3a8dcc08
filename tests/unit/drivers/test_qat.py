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

import fixtures

from nova_accel.drivers import qat
from nova_accel.host import sysfs_tree
from nova_accel.testing import simulated_mdevs
from unit.drivers import base


class TestQat(base.DriverTestCase):
    driver = qat.QatDriver
    spec = {'vendor_id': '8086', 'product_id': '4941'}
    address = base.the_address(1)

    def setUp(self):
        super().setUp()
        self.asked = []
        self.status = '0'
        self.now = 0
        qat._heartbeat.cache_clear()
        for name, fake in (
            ('nova_accel.privileged.qat.heartbeat', self.heartbeat),
            ('time.monotonic', lambda: self.now),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, fake))

    def heartbeat(self, address):
        self.asked.append(address)
        if isinstance(self.status, Exception):
            raise self.status
        return self.status

    def functions(self):
        self.sysfs.set(
            self.CARD, qat__cfg_services='sym;asym', qat__state='up'
        )
        return base.sriov(self.CARD, '8086', '4940', '4941', 2)

    def test_virtual_function(self):
        device = self.discover()
        self.assertEqual(
            ('QAT', True, None), (device.type, device.pooled, device.fault)
        )
        self.assertEqual({'services': 'sym;asym'}, device.attributes)
        (traits,) = self.traits(device)
        self.assertEqual(
            {
                'CUSTOM_QAT_INTEL_4XXX_VF',
                'CUSTOM_QAT_SERVICE_SYM',
                'CUSTOM_QAT_SERVICE_ASYM',
            },
            traits,
        )

    def test_other_services_are_another_pool(self):
        before = self.discover()
        self.sysfs.set(self.CARD, qat__cfg_services='dc')
        self.assertNotEqual(
            before.operator_traits, self.discover().operator_traits
        )

    def test_a_card_that_says_nothing(self):
        self.sysfs.remove(self.CARD)
        device = self.discover()
        self.assertEqual((None, {}), (device.fault, device.attributes))
        # Its kernel has no heartbeat, and no process of root is asked.
        self.assertEqual([], self.asked)

    def test_a_card_that_is_stopped(self):
        self.sysfs.set(self.CARD, qat__state='down')
        self.assertIn('qat/state', self.discover().fault)

    def test_a_heartbeat_that_has_stopped(self):
        """It counts for a while, for all virtual functions of the card."""
        self.assertIsNone(self.discover().fault)
        self.status = '-1'
        self.assertIsNone(self.discover().fault)
        self.assertEqual([self.CARD], self.asked)
        for status, is_faulty in (('-1', True), (None, False), ('0', False)):
            self.status = status
            self.now += 30
            fault = self.discover().fault
            self.assertEqual(is_faulty, fault is not None)
            if is_faulty:
                self.assertIn(f'{self.CARD} does not answer', fault)

    def test_a_heartbeat_that_cannot_be_read(self):
        self.status = PermissionError(1, 'Operation not permitted')
        with sysfs_tree.noting() as notes:
            self.assertIsNone(self.discover().fault)
        self.assertIn('not permitted', notes.texts()[0])

    def test_a_card_with_virtual_functions(self):
        self.assert_refused('2 virtual functions', address=self.CARD)

    def test_a_card_that_vfio_pci_refuses(self):
        """A C62x is one, unless the operator allows it."""
        self.sysfs.allow_denied('N')
        card = base.a_function('0000:4d:00.0', '8086', '37c8')
        self.node_devices = simulated_mdevs.SimulatedMdevs([card])
        address = str(card.address)
        self.assertIn(
            'disable_denylist', self.discover(address, product_id='37c8').fault
        )
        self.sysfs.allow_denied('Y')
        self.assertIsNone(self.discover(address, product_id='37c8').fault)
