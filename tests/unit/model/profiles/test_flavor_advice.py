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

from collections.abc import Mapping

import hypothesis
from hypothesis import strategies
import testtools

from nova_accel.model.profiles import flavor_advice

_GIB = 1 << 10
_TIB = 1 << 20

PROFILES = {
    'one': [{'resources:PGPU': '1'}],
    'eight': [
        {'resources:PGPU': '4', 'trait:CUSTOM_H100': 'required'},
        {'resources:PGPU': '4'},
    ],
    'own-class': [{'resources:CUSTOM_H100': '4'}],
    'vgpu': [{'resources:VGPU': '2'}],
    'fpga': [{'resources:FPGA': '8'}],
}


def flavor(memory_mib: int, specs: Mapping[str, str]) -> flavor_advice.Flavor:
    return flavor_advice.Flavor('flavor', memory_mib, specs)


class TestLacksAddresses(testtools.TestCase):
    def lacks(self, memory_mib: int, **specs: str) -> bool:
        return flavor_advice.lacks_addresses(
            flavor(
                memory_mib,
                {
                    key.replace('__', ':', 1): value
                    for key, value in specs.items()
                },
            ),
            PROFILES,
            {'CUSTOM_H100', 'VGPU'},
        )

    def test_whole_gpus_and_memory(self) -> None:
        for key in ('nova_accel__device_profile', 'accel__device_profile'):
            for memory_mib, profile, expected in (
                (256 * _GIB, 'one', False),
                (767 * _GIB, 'one', False),
                (768 * _GIB, 'one', True),
                (64, 'eight', True),
                (64, 'own-class', True),
                (_TIB, 'fpga', False),
                (_TIB, 'no-such-profile', False),
            ):
                self.assertIs(
                    expected, self.lacks(memory_mib, **{key: profile})
                )

    def test_one_of_several_profiles(self) -> None:
        for names, expected in (('fpga,one', False), ('one, eight', True)):
            self.assertIs(
                expected, self.lacks(64, nova_accel__device_profile=names)
            )

    def test_vgpus_have_small_registers(self) -> None:
        specs = {'nova_accel__device_profile': 'vgpu'}
        self.assertFalse(self.lacks(_TIB - 1, **specs))
        self.assertTrue(self.lacks(_TIB, **specs))

    def test_without_a_profile(self) -> None:
        for key in ('resources:PGPU', 'resources1:PGPU', 'resources_a:PGPU'):
            self.assertTrue(self.lacks(64, **{key: '4'}), key)
        for key in ('resources:MEMORY_MB', 'trait:PGPU'):
            self.assertFalse(self.lacks(_TIB, **{key: '4'}), key)

    def test_an_amount_that_is_no_number(self) -> None:
        self.assertFalse(self.lacks(_TIB, resources__PGPU='all'))

    def test_a_flavor_that_says_the_width(self) -> None:
        self.assertFalse(
            self.lacks(
                _TIB,
                nova_accel__device_profile='eight',
                hw__maxphysaddr_mode='passthrough',
            )
        )

    def test_with_the_tree_of_the_host_guests_get_the_width(self) -> None:
        for tree, expected in (('host', False), ('flat', True)):
            self.assertIs(
                expected,
                self.lacks(
                    64,
                    nova_accel__device_profile='eight',
                    nova_accel__pci_topology=tree,
                ),
            )

    @hypothesis.given(
        strategies.integers(0, 2 * _TIB),
        strategies.integers(0, 2 * _TIB),
        strategies.integers(1, 16),
        strategies.integers(0, 16),
    )
    def test_more_never_needs_less(
        self, memory_mib: int, memory: int, gpus: int, more: int
    ) -> None:
        if self.lacks(memory_mib, resources__PGPU=str(gpus)):
            self.assertTrue(
                self.lacks(
                    memory_mib + memory, resources__PGPU=str(gpus + more)
                )
            )


_IS_NONE = 'is none of nova_accel:device_profile, nova_accel:pci_topology'


class TestMisspelt(testtools.TestCase):
    def told(self, key: str, value: str = 'a') -> list[str]:
        return list(flavor_advice.misspelt({key: value}))

    def test_what_is_meant(self) -> None:
        for key, meant in (
            ('nova-accel:device_profile', 'nova_accel:device_profile'),
            ('nova-accel:device-profile', 'nova_accel:device_profile'),
            ('nova_accel:device-profile', 'nova_accel:device_profile'),
            ('nova_accel:device_profiles', 'nova_accel:device_profile'),
            ('nova_accel:profile', 'nova_accel:device_profile'),
            ('nova_acel:device_profile', 'nova_accel:device_profile'),
            ('nova_accell:device_profile', 'nova_accel:device_profile'),
            ('nova_accelerator:device_profile', 'nova_accel:device_profile'),
            ('novaaccel:device_profile', 'nova_accel:device_profile'),
            ('Nova_Accel:Device_Profile', 'nova_accel:device_profile'),
            ('nova_accel_device_profile', 'nova_accel:device_profile'),
            ('accel:device-profile', 'accel:device_profile'),
            ('accel:device_profiles', 'accel:device_profile'),
            ('Accel:device_profile', 'accel:device_profile'),
            ('nova_accel:pci-topology', 'nova_accel:pci_topology'),
            ('nova_accel:topology', 'nova_accel:pci_topology'),
        ):
            self.assertEqual(
                [f'{key}, which is to be {meant}'], self.told(key)
            )

    def test_what_no_one_knows(self) -> None:
        for key in ('nova_accel:count', 'nova_accel:', 'nova_accel'):
            self.assertEqual([f'{key}, which {_IS_NONE}'], self.told(key))

    def test_values(self) -> None:
        for value in ('host', 'flat', ''):
            self.assertEqual([], self.told('nova_accel:pci_topology', value))
        self.assertEqual(
            ['nova_accel:pci_topology=hots, which can be flat or host'],
            self.told('nova_accel:pci_topology', 'hots'),
        )

    def test_keys_of_others(self) -> None:
        for key in (
            'nova_accel:device_profile',
            'accel:device_profile',
            'accel:function_id',
            'hw:cpu-policy',
            'nova:device_profile',
            'nova_cell:device_profile',
            'nova_access:device_profile',
            'accelerator:device_profile',
            'resources:PGPU',
            'no',
            '',
        ):
            self.assertEqual([], self.told(key), key)

    def test_a_text_is_bounded(self) -> None:
        for key, value in (
            (f'nova_accel:{"x" * 244}', 'a'),
            ('nova_accel:pci_topology', 'x' * 255),
        ):
            [text] = self.told(key, value)
            self.assertLess(len(text), 160)
