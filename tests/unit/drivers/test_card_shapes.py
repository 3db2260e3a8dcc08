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

import testtools

from nova_accel import exceptions
from nova_accel.drivers import card_shapes
from nova_accel.drivers import facts
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice
from nova_accel.model.devices import device_spec

ADDRESS = pci_address.PciAddress(0, 0x81, 0, 0)
HALF = card_slice.WHOLE_CARD // 2


class TestIsOnInstance(testtools.TestCase):
    def test_a_vgpu_of_a_gpu_instance(self):
        for name in (
            'NVIDIA A100-3-20C',
            'GRID A100X-1-10C',
            'NVIDIA H100XM-7-80C',
            'NVIDIA RTX Pro 6000 Blackwell DC-1-24Q',
        ):
            self.assertTrue(card_shapes.is_on_instance(name), name)

    def test_a_vgpu_without_one(self):
        for name in (
            'NVIDIA A40-12Q',
            'GRID M60-0B',
            'NVIDIA A100-40C',
            'NVIDIA RTX6000-Ada-48Q',
            'NVIDIA A100-3-20C of old',
            '',
        ):
            self.assertFalse(card_shapes.is_on_instance(name), name)


class TestChosen(testtools.TestCase):
    KNOWN = ('NVIDIA A40-12Q', 'NVIDIA A40-24Q')

    def test_names_of_one_kind(self):
        for shapes, kind, expected in (
            (['whole', 'mig:1g.5gb', 'vgpu:NVIDIA A40-24Q'], 'vgpu', 1),
            (['vgpu:*', 'mig:1g.5gb'], 'vgpu', 2),
            (['whole', 'mig:*'], 'vgpu', 0),
        ):
            found = card_shapes.chosen(shapes, kind, self.KNOWN)
            self.assertEqual([*self.KNOWN[2 - expected :]], found)

    def test_what_the_card_does_not_know(self):
        error = self.assertRaises(
            exceptions.DeviceError,
            card_shapes.chosen,
            ['vgpu:NVIDIA A40-12Q', 'vgpu:NVIDIA A40-48Q'],
            'vgpu',
            self.KNOWN,
        )
        self.assertEqual(
            'it has no shape vgpu:NVIDIA A40-48Q, but NVIDIA A40-12Q, '
            'NVIDIA A40-24Q',
            str(error),
        )

    def test_all_of_a_kind_of_which_it_has_none(self):
        error = self.assertRaises(
            exceptions.DeviceError, card_shapes.chosen, ['mig:*'], 'mig', []
        )
        self.assertEqual(
            'it has no shape mig:*, but none of that kind', str(error)
        )


class TestVgpuSlices(testtools.TestCase):
    def test_they_divide_the_card(self):
        shape = 'vgpu:NVIDIA A40-24Q'
        self.assertEqual(
            [
                card_slice.CardSlice(shape, shape, start, HALF)
                for start in (0, HALF)
            ],
            card_shapes.vgpu_slices('NVIDIA A40-24Q', 2),
        )

    def test_those_of_two_types_exclude_each_other(self):
        [one, other], [another, *_rest] = (
            card_shapes.vgpu_slices(f'NVIDIA A40-{48 // most}Q', most)
            for most in (2, 4)
        )
        self.assertFalse(one.excludes(other))
        self.assertTrue(other.excludes(another))


class TestDevice(testtools.TestCase):
    def test_a_part_for_each_shape(self):
        [spec] = device_spec.parse(
            [
                json.dumps(
                    {
                        'vendor_id': '10de',
                        'driver': 'mdev',
                        'shapes': ['vgpu:*'],
                    }
                )
            ],
            ['mdev'],
        )
        known = facts.virtual(
            facts.of(
                pci_function.PciFunction(
                    ADDRESS.node_device, ADDRESS, '10de', '2235'
                ),
                spec,
            )
        )
        plain = [
            attach_handle.AttachHandle(
                f'{each.shape} {each.start}', ADDRESS, slice=each
            )
            for most in (2, 4)
            for each in card_shapes.vgpu_slices(
                f'NVIDIA A40-{48 // most}Q', most
            )
        ]
        alone = dataclasses.replace(plain[0], uuid='alone', slice=None)
        device = card_shapes.device(
            known, [*plain, alone], 'a node', libvirt_devices.HostDevices({})
        )
        halves, quarters = device.deployables
        self.assertEqual(
            ['vgpu:NVIDIA A40-24Q', 'vgpu:NVIDIA A40-12Q'],
            [halves.name, quarters.name],
        )
        self.assertEqual(
            [
                'CUSTOM_SHAPE_VGPU_NVIDIA_A40_24Q',
                'CUSTOM_SHAPE_VGPU_NVIDIA_A40_12Q',
            ],
            [halves.resource_class, quarters.resource_class],
        )
        self.assertEqual(plain[:2], list(halves.handles))
        self.assertEqual(plain[2:], list(quarters.handles))
