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
from nova_accel.host import pci_function
from nova_accel.model import pci_address
from nova_accel.testing import driver_conformance
from nova_accel.testing import simulated_mdevs

CARD = pci_address.PciAddress.parse('0000:3d:00.0')
ONE, TWO = (
    f'0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e{number}' for number in (10, 11)
)


class TestSimulatedMdevs(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.host = simulated_mdevs.SimulatedMdevs(
            [
                driver_conformance.a_function(
                    str(CARD),
                    '10de',
                    '13f2',
                    mdev_types={'small': 3, 'large': 2},
                )
            ]
        )

    def left(self):
        return dict(self.host.function(CARD).mdev_types)

    def test_types_share_the_parent(self):
        for _time in range(2):
            self.host.create_mdev(ONE, CARD, 'small')
        self.assertEqual({'small': 2, 'large': 1}, self.left())
        self.host.create_mdev(TWO, CARD, 'large')
        self.assertEqual({'small': 0, 'large': 0}, self.left())
        self.assertEqual(
            {
                pci_function.Mdev(ONE, 'small', CARD),
                pci_function.Mdev(TWO, 'large', CARD),
            },
            set(self.host.mdevs()),
        )
        self.assertRaises(
            exceptions.DeviceError,
            self.host.create_mdev,
            'another',
            CARD,
            'small',
        )
        for _time in range(2):
            self.host.destroy_mdev(ONE)
        self.assertEqual({'small': 1, 'large': 1}, self.left())

    def test_what_is_not_there(self):
        self.assertRaises(
            exceptions.DeviceError,
            self.host.function,
            pci_address.PciAddress(0, 1, 0, 0),
        )
        self.host.create_mdev(ONE, CARD, 'small')
        self.assertRaises(
            exceptions.DeviceError, self.host.create_mdev, ONE, CARD, 'large'
        )

    def test_locked(self):
        self.host.is_locked = True
        self.assertRaises(AssertionError, self.host.mdevs)
        self.assertRaises(AssertionError, self.host.function, CARD)
        self.assertEqual({CARD}, set(self.host.look().functions))
