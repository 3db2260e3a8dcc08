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

import re
import unittest

from hypothesis import given
from hypothesis import strategies as st

from nova_accel import exceptions
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import extra_specs
from nova_accel.model.profiles import provider_allocation

SPECS = {
    'resources:FPGA': '2',
    'resources:VCPU': '4',
    'FPGA': 'x',
    'trait:CUSTOM_A': 'required',
    'trait:CUSTOM_B': 'forbidden',
    'trait:HW_CPU_X86_AVX2': 'required',
    'hw:cpu_policy': 'dedicated',
    'accel:function_name': 'gzip',
    'accel:device_profile': 'gold',
}


class TestExtraSpecs(unittest.TestCase):
    def test_profile(self) -> None:
        ours = {'nova_accel:device_profile': 'silver'}
        for specs, name in (
            (SPECS, 'gold'),
            (ours, 'silver'),
            ({**SPECS, **ours}, 'silver'),
            ({}, None),
        ):
            self.assertEqual(name, extra_specs.profile(specs))

    def test_alternatives(self) -> None:
        for value, names in (
            ('gold', ('gold',)),
            ('h200, a100-2 ,gold', ('h200', 'a100-2', 'gold')),
            ('gold,gold', ('gold',)),
        ):
            self.assertEqual(names, extra_specs.alternatives(value))
            self.assertIsNotNone(
                re.fullmatch(extra_specs.PROFILES_PATTERN, value)
            )
        for value, text in (
            ('gold,', "is 'gold,': a name is missing"),
            (' ', "is ' ': a name is missing"),
            (','.join('abcdefghi'), 'names 9 device profiles: it can name 8'),
        ):
            with self.assertRaisesRegex(
                exceptions.InvalidDeviceProfile,
                f'nova_accel:device_profile {text}',
            ):
                extra_specs.alternatives(value)
            self.assertIsNone(
                re.fullmatch(extra_specs.PROFILES_PATTERN, value)
            )

    def test_profiles(self) -> None:
        for key in ('nova_accel:device_profile', 'accel:device_profile'):
            for value, names in (
                ('gold', ('gold',)),
                ('gold, silver', ('gold', 'silver')),
                ('gold,', ()),
                ('', ()),
            ):
                self.assertEqual(names, extra_specs.profiles({key: value}))
        self.assertEqual((), extra_specs.profiles({'hw:cpu_policy': 'x'}))

    def test_programming(self) -> None:
        self.assertEqual(
            {'accel:function_name': 'gzip'},
            extra_specs.programming({**SPECS, 'accel:function_id': ' '}),
        )

    def test_group(self) -> None:
        group = extra_specs.group(SPECS, {'FPGA'})
        self.assertEqual(
            {
                'resources:FPGA': '2',
                'trait:CUSTOM_A': 'required',
                'trait:CUSTOM_B': 'forbidden',
                'accel:function_name': 'gzip',
            },
            group,
        )
        self.assertEqual([group], device_profile.checked_groups([group]))

    def test_nothing_is_asked_for(self) -> None:
        self.assertEqual({}, extra_specs.group(SPECS, {'CUSTOM_QAT'}))

    def test_what_is_asked_of_a_provider(self) -> None:
        fpga = provider_allocation.ProviderAllocation(
            'rp', {'FPGA': 2}, frozenset()
        )
        self.assertEqual('gold', extra_specs.get_requested('vm', SPECS, fpga))
        group = {'resources:FPGA': '2'}
        self.assertEqual(
            [group],
            extra_specs.get_requested(
                'vm', {**group, 'resources:VCPU': '4'}, fpga
            ),
        )

    def test_nothing_is_asked_of_a_provider(self) -> None:
        for resources, words in (
            ({'FPGA': 2, 'CUSTOM_QAT': 1}, 'CUSTOM_QAT, FPGA'),
            ({}, 'nothing'),
        ):
            allocation = provider_allocation.ProviderAllocation(
                'rp', resources, frozenset()
            )
            with self.assertRaises(exceptions.InvalidRequest) as raised:
                extra_specs.get_requested(
                    'vm', {'resources:VCPU': '4'}, allocation
                )
            self.assertIn('the flavor of vm', str(raised.exception))
            self.assertIn(
                f'{words}, which resource provider rp has allocated',
                str(raised.exception),
            )

    @given(
        st.dictionaries(st.sampled_from(sorted(SPECS)), st.text()),
        st.sets(st.sampled_from(['FPGA', 'VCPU', 'CUSTOM_QAT'])),
    )
    def test_a_group_has_what_the_flavor_says(
        self, specs: dict[str, str], allocated: set[str]
    ) -> None:
        group = extra_specs.group(specs, allocated)
        self.assertLessEqual(group.items(), specs.items())
        self.assertEqual(
            {f'resources:{name}' for name in allocated} & specs.keys(),
            {key for key in group if key.startswith('resources:')},
        )


class TestPciTopology(unittest.TestCase):
    def wanted(self, flavor=None, image=None, default='flat'):
        def of(value):
            return {} if value is None else {'nova_accel:pci_topology': value}

        return extra_specs.pci_topology(of(flavor), of(image), default)

    def test_the_flavor_comes_before_the_image(self):
        for flavor, image, default, wanted in (
            (None, None, 'flat', 'flat'),
            (None, None, 'host', 'host'),
            ('host', 'flat', 'flat', 'host'),
            ('flat', 'host', 'host', 'flat'),
            (None, 'host', 'flat', 'host'),
            ('', 'host', 'flat', 'host'),
            ('', '', 'host', 'host'),
        ):
            self.assertEqual(wanted, self.wanted(flavor, image, default))

    def test_no_such_tree(self):
        for values, source in (
            (('HOST', None), 'flavor'),
            ((None, 'x' * 9999), 'image'),
        ):
            with self.assertRaises(exceptions.InvalidRequest) as raised:
                self.wanted(*values)
            error = raised.exception
            self.assertEqual(str(error), error.public)
            self.assertIn(
                f'nova_accel:pci_topology of the {source} is', str(error)
            )
            self.assertIn('it can be flat or host', str(error))
            self.assertLess(len(str(error)), 255)
