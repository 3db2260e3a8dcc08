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

import dataclasses
import json

import testscenarios
import testtools

from nova_accel.drivers import answers
from nova_accel.host import libvirt_devices
from nova_accel.model import attach_handle
from nova_accel.model import bounds
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import programmable
from nova_accel.testing import fake_fpga
from unit import call_count
from unit.drivers import base

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
CARD = '0000:3d:00.0'

(FUNCTION, *VIRTUAL) = base.sriov(CARD, '8086', '09c4', '09c5', 2)
(SPEC,) = device_spec.parse(
    [json.dumps({'vendor_id': '8086', 'driver': 'fake'})], ['fake']
)
DEVICE = fake_fpga.FakeFpgaDriver(None, None, NODE_UUID).discover(
    FUNCTION, SPEC, libvirt_devices.HostDevices({FUNCTION.address: FUNCTION})
)
PART = DEVICE.deployables[0]
(HANDLE,) = PART.handles


def changed(**fields):
    return dataclasses.replace(DEVICE, **fields)


def with_part(**fields):
    return changed(
        deployables=(
            dataclasses.replace(PART, **fields),
            *DEVICE.deployables[1:],
        )
    )


def with_handle(**fields):
    return with_part(handles=(dataclasses.replace(HANDLE, **fields),))


def _traits(amount):
    return frozenset(f'CUSTOM_{number}' for number in range(amount))


class TestDevice(testscenarios.WithScenarios, testtools.TestCase):
    """What would fail for the whole host is refused."""

    scenarios = [
        (name, {'found': found, 'texts': texts})
        for (name, found, *texts) in (
            ('no device', 'a card', 'the device', 'a card'),
            ('a number', 7, 'the device', '7'),
            (
                'another name',
                changed(name='pci_0000_3e_00_0'),
                'name',
                'pci_0000_3e_00_0',
            ),
            (
                'another address',
                changed(address=pci_address.PciAddress(0, 0x3E, 0, 0)),
                'address',
                'bus=62',
            ),
            ('another driver', changed(driver='pci'), 'driver', 'pci'),
            ('an unknown type', changed(type='TOASTER'), 'TOASTER'),
            ('a fault that is none', changed(fault=KeyError('x')), 'fault'),
            ('no text', changed(vendor=None), 'vendor', 'None'),
            ('a flag', changed(numa_node=True), 'numa_node', 'True'),
            (
                'no tuple',
                changed(deployables=list(DEVICE.deployables)),
                'deployables',
            ),
            ('no deployable', changed(deployables=('region0',)), 'region0'),
            ('attributes', changed(attributes={'firmware': 7}), 'firmware'),
            ('no attributes', changed(attributes=None), 'attributes'),
            (
                'twice the same part',
                changed(deployables=(PART, PART)),
                'it has two deployables region0',
            ),
            (
                'twice the same handle',
                with_part(handles=(HANDLE, HANDLE)),
                'it has two attach handles',
            ),
            (
                'twice the same region',
                changed(
                    regions=(
                        programmable.Region('region0'),
                        programmable.Region('region0'),
                    )
                ),
                'it has two regions',
            ),
            ('an unknown region', with_part(region='region9'), 'region9'),
            ('no name', with_part(name=''), 'no name of a deployable'),
            (
                'a long name',
                with_part(name='x' * 256),
                'no name of a deployable',
            ),
            ('a line feed', with_part(name='a\nb'), 'no name of a deployable'),
            (
                'a set that may change',
                with_part(traits={'CUSTOM_X'}),
                'traits',
            ),
            ('no trait', with_part(traits=frozenset({'---'})), "'---'"),
            ('a long trait', with_part(traits=frozenset({'A' * 256})), 'AAA'),
            (
                'very many traits',
                with_part(traits=_traits(bounds.MAX_TRAITS + 1)),
                'different traits, more than 1024',
            ),
            (
                'many parts with many traits',
                changed(
                    deployables=tuple(
                        dataclasses.replace(
                            PART,
                            name=f'{number}',
                            traits=_traits(1000),
                            handles=(),
                        )
                        for number in range(20)
                    )
                ),
                'deployables, regions, attributes, units and traits',
            ),
            (
                'very many attributes',
                changed(
                    attributes={
                        f'{number}': ''
                        for number in range(bounds.MAX_PARTS + 1)
                    }
                ),
                'more than 16384',
            ),
            ('no resource class', with_part(resource_class='f p'), "'f p'"),
            ('no uuid', with_handle(uuid='first'), "'first'"),
            ('no address', with_handle(address=CARD), 'address', CARD),
            (
                'an address of texts',
                with_handle(
                    address=pci_address.PciAddress('0', '3d', '0', '0')
                ),
                'domain',
            ),
            ('no function', with_handle(further_functions=(CARD,)), CARD),
        )
    ]

    def test_it_is_refused(self):
        error = self.assertRaises(
            ValueError, answers.device, self.found, FUNCTION, SPEC
        )
        for text in self.texts:
            self.assertIn(text, str(error))


class TestWork(testtools.TestCase):
    def test_each_part_is_looked_at_once(self):
        calls = [self.calls(parts) for parts in (20, 40, 80)]
        self.assertLess(calls[2], 4.2 * calls[0] + 1000, calls)

    def calls(self, parts):
        """How many functions are called to check so many regions."""
        names = [f'region{number}' for number in range(parts)]
        found = changed(
            regions=tuple(map(programmable.Region, names)),
            deployables=tuple(
                dataclasses.replace(
                    PART, name=name, region=name, handles=(), traits=_traits(9)
                )
                for name in names
            ),
        )
        return call_count.calls_of(
            lambda: answers.device(found, FUNCTION, SPEC)
        )


class TestAnswers(testtools.TestCase):
    def test_a_device(self):
        self.assertIs(DEVICE, answers.device(DEVICE, FUNCTION, SPEC))

    def test_its_functions_alone(self):
        self.assertIsNone(answers.device(None, FUNCTION, SPEC))

    def test_a_mediated_device(self):
        handle = attach_handle.AttachHandle(
            HANDLE.uuid, HANDLE.address, mdev_type='nvidia-11'
        )
        found = with_part(handles=(handle,))
        self.assertIs(found, answers.device(found, FUNCTION, SPEC))

    def test_what_a_region_says(self):
        self.assertEqual('6f2a', answers.text('6f2a'))
        for said in (None, b'6f2a', 7, 'x' * 4097):
            self.assertRaises(ValueError, answers.text, said)
