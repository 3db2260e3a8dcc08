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

"""What the tests of all drivers share: a few cards, and the conformance."""

import testtools

from nova_accel import exceptions
from nova_accel.host import sysfs_tree
from nova_accel.testing import driver_conformance

a_function = driver_conformance.a_function


def the_address(number, bus='3d'):
    """That of a virtual function."""
    return f'0000:{bus}:{number // 8:02x}.{number % 8}'


def sriov(address, vendor_id, product_id, virtual_id, units, **more):
    """A card and its virtual functions."""
    virtual = [
        the_address(number + 1, address[5:7]) for number in range(units)
    ]
    return [
        a_function(address, vendor_id, product_id, virtual=virtual, **more),
        *(
            a_function(each, vendor_id, virtual_id, parent=address)
            for each in virtual
        ),
    ]


class DriverTestCase(driver_conformance.DriverConformance, testtools.TestCase):
    """Its subclasses are asked to set what the mixin wants."""

    CARD = '0000:3d:00.0'
    address = CARD

    def assert_refused(self, *texts, address=None, **keys):
        error = self.assertRaises(
            exceptions.DeviceError, self.discover, address, **keys
        )
        for text in texts:
            self.assertIn(text, str(error))

    def assert_noted(self, *texts, **keys):
        """The card is offered, and one trouble of it is told."""
        with sysfs_tree.noting() as notes:
            device = self.discover(**keys)
        (note,) = notes.texts()
        for text in texts:
            self.assertIn(text, note)
        return device

    def assert_not_programmed(self, *texts, timeout_s=60, bitstream=None):
        """The first region of the device, with the first bitstream."""
        device, region, (first, _second) = self._to_program()
        if bitstream is not None:
            first = driver_conformance.cached(first.parent, bitstream)
        error = self.assertRaises(
            exceptions.DeviceError,
            self.a_driver().program,
            device,
            region,
            first,
            timeout_s,
        )
        for text in texts:
            self.assertIn(text, str(error))

    def handles(self, device):
        return [
            handle
            for deployable in device.deployables
            for handle in deployable.handles
        ]

    def addresses(self, device):
        return [str(handle.address) for handle in self.handles(device)]

    def traits(self, device):
        """Those of each deployable that not all of them have."""
        return [each.traits for each in device.deployables]
