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

from nova_accel import exceptions
from nova_accel.drivers import facts
from nova_accel.host import pci_function
from nova_accel.model import device_spec
from nova_accel.model import pci_address


def a_function(vendor_id='8086', product_id='37c9', **more):
    address = pci_address.PciAddress(0, 0x3d, 1, 0)
    return pci_function.PciFunction(
        address.node_device, address, vendor_id, product_id, **more)


def a_spec(**keys):
    return device_spec.parse(
        [json.dumps({'vendor_id': '*', 'driver': 'pci', **keys})],
        ['pci'])[0]


def a_device(function, spec):
    known = facts.of(function, spec)
    device = known.device([known.deployable('function', ())])
    return device, device.deployables[0]


class TestFacts(testtools.TestCase):

    def test_known_device(self):
        device, deployable = a_device(
            a_function(vendor='Intel Corp.', product='QAT', numa_node=1),
            a_spec())
        self.assertEqual(
            ('QAT', 'Intel', 'C62x VF', 1, 'pci', 'pci_0000_3d_01_0'),
            (device.type, device.vendor, device.product, device.numa_node,
             device.driver, device.name))
        self.assertEqual('CUSTOM_QAT', deployable.resource_class)
        self.assertEqual({'CUSTOM_QAT_INTEL_C62X_VF'}, deployable.traits)
        self.assertEqual(frozenset(), device.operator_traits)

    def test_operators_line_overrules(self):
        device, deployable = a_device(a_function(), a_spec(
            type='FPGA', resource_class='CUSTOM_RC', pool=True,
            traits=['CUSTOM_RACK_7']))
        self.assertEqual(('FPGA', True), (device.type, device.pooled))
        self.assertEqual('CUSTOM_RC', deployable.resource_class)
        self.assertEqual({'CUSTOM_FPGA_INTEL_C62X_VF', 'CUSTOM_RACK_7'},
                         deployable.traits)
        self.assertEqual({'CUSTOM_RACK_7'}, device.operator_traits)

    def test_unknown_device_has_its_ids_in_the_trait(self):
        """The host's own names differ from host to host."""
        device, deployable = a_device(
            a_function('beef', '0001', vendor='Beef Inc.', product='X [1]'),
            a_spec(type='GPU'))
        self.assertEqual(('Beef Inc.', 'X [1]'),
                         (device.vendor, device.product))
        self.assertEqual({'CUSTOM_GPU_BEEF_0001'}, deployable.traits)

    def test_nameless_device(self):
        device, _deployable = a_device(
            a_function('8086', '0001'), a_spec(type='GPU'))
        self.assertEqual(('Intel', '0001'), (device.vendor, device.product))

    def test_unknown_type(self):
        error = self.assertRaises(
            exceptions.DeviceError, facts.of, a_function('beef', '0001'),
            a_spec())
        self.assertIn('beef:0001', str(error))
        self.assertIn('"type"', str(error))

    def test_further_traits(self):
        known = facts.of(a_function(), a_spec())
        self.assertEqual(
            {'CUSTOM_QAT_INTEL_C62X_VF', 'CUSTOM_A', 'CUSTOM_B'},
            known.deployable('one', (), 'CUSTOM_A', 'CUSTOM_B').traits)
