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

import collections

from hypothesis import example
from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.model import naming
from nova_accel.model.profiles import device_profile

#: What Cyborg 17 answered to groups that it refused.
REFUSED_BY_CYBORG = (
    (
        {'foo:FPGA': '1'},
        'Device profile group keys must be of the form '
        '^(resources:|trait:|accel:)',
    ),
    ({'resources:FPGA': 'x'}, 'Resources number x is invalid'),
    ({'resources:VCPU': '1'}, 'Unsupported resource class VCPU'),
    (
        {'resources:FPGA': '1', 'trait:HW_X': 'required'},
        'Unsupported trait name format HW_X, should start with CUSTOM_',
    ),
    (
        {'resources:FPGA': '1', 'trait:CUSTOM_X': 'maybe'},
        'Unsupported trait value maybe, the value must be one among '
        "['required', 'forbidden']",
    ),
)

#: A malformed key or value of a group, and what the error has to name.
MALFORMED = (
    ('resources', '1', '|accel:): resources'),
    ('trait', 'required', '|accel:): trait'),
    ('accel', 'x', '|accel:): accel'),
    ('', '1', '(resources:|trait:|accel:)'),
    (':FPGA', '1', ':FPGA'),
    ('Resources:FPGA', '1', 'Resources:FPGA'),
    (' resources:FPGA', '1', ' resources:FPGA'),
    ('resources1:FPGA', '1', 'resources1:FPGA'),
    ('resources:', '1', 'resource class'),
    ('resources:MEMORY_MB', '1', 'MEMORY_MB'),
    ('resources:fpga', '1', 'fpga'),
    ('resources:FPGA ', '1', 'FPGA '),
    ('resources:CUSTOM_', '1', 'CUSTOM_'),
    ('resources:CUSTOM_qat', '1', 'CUSTOM_qat'),
    ('resources:CUSTOM_A-B', '1', 'CUSTOM_A-B'),
    ('resources:CUSTOM_A\n', '1', 'CUSTOM_A\n'),
    ('resources:CUSTOM_Ä', '1', 'CUSTOM_Ä'),
    ('resources:CUSTOM_' + 'X' * 249, '1', 'X' * 249),
    ('trait:', 'required', 'CUSTOM_'),
    ('trait:HW_CPU_X86_AVX', 'required', 'HW_CPU_X86_AVX'),
    ('trait:custom_x', 'required', 'custom_x'),
    ('trait:CUSTOM_', 'required', 'CUSTOM_'),
    ('trait:CUSTOM_x', 'required', 'CUSTOM_x'),
    ('trait:CUSTOM_X\n', 'required', 'CUSTOM_X\n'),
    ('trait:CUSTOM_' + 'X' * 249, 'required', 'X' * 249),
    ('trait:CUSTOM_X', '', 'CUSTOM_X'),
    ('trait:CUSTOM_X', 'Required', 'Required'),
    ('accel:', 'x', 'accel:'),
    ('accel:bitstream', 'x', 'accel:bitstream'),
    ('accel:Bitstream_id', 'x', 'accel:Bitstream_id'),
    # A key is not believed for its value.
    (
        'accel:image_id',
        'd5ca2f11-3108-4426-a11c-a959987565df',
        'keys are bitstream_id, function_id, function_name, link, '
        'numa_affinity, prefetch, shape, single_numa_node',
    ),
    ('accel:bitstream_id', '', 'accel:bitstream_id, it must be a uuid'),
    ('accel:function_id', '../../etc/passwd', 'accel:function_id'),
    ('accel:function_name', ' ', 'accel:function_name, it must be a name'),
    ('accel:prefetch', 'yes', 'accel:prefetch'),
    ('accel:single_numa_node', '0', 'accel:single_numa_node'),
    ('accel:numa_affinity', 'true', 'it must be required or preferred'),
    ('accel:numa_affinity', 'Required', 'it must be required or preferred'),
    ('accel:link', '', 'accel:link, it must be one of nvlink, pcie, numa'),
    ('accel:link', 'root', 'accel:link, it must be one of'),
    ('accel:link', 'NVLINK', 'accel:link, it must be one of'),
    ('accel:prefetch', 'true', 'is for a group with accel:bitstream_id'),
    ('accel:shape', '', "Invalid value '' of accel:shape"),
    ('accel:shape', 'mig:*', 'accel:shape, it must be whole, or such as mig'),
    ('accel:shape', 'mig:3g.40GB', 'accel:shape, it must be'),
    ('accel:shape', 'mig:3g.40gb\n', 'accel:shape, it must be'),
    ('accel:shape', 'vgpu:', 'accel:shape, it must be'),
    ('accel:shape', 'whole', 'alone, not for VGPU'),
    ('resources:CUSTOM_SHAPE_WHOLE', '1', 'use accel:shape with the name'),
    ('resources:CUSTOM_CARD_SHARE', '1', 'use accel:shape with the name'),
)

AMOUNTS = (
    '',
    '0',
    '00',
    '-1',
    '+1',
    '1.0',
    ' 1',
    '1 ',
    '1\n',
    '1_0',
    '65',
    '0x1',
    '٣',
    '²',
    '9' * 5000,
)

CLASSES = st.sampled_from(['CUSTOM_QAT', 'FPGA', 'PGPU', 'VGPU'])
TRAITS = st.from_regex(r'CUSTOM_[A-Z0-9_]{1,9}', fullmatch=True)

GROUPS = st.builds(
    lambda **fields: device_profile.Group(
        **fields, is_prefetched='bitstream_id' in fields['properties']
    ),
    resources=st.dictionaries(CLASSES, st.integers(1, 64), min_size=1),
    required=st.frozensets(TRAITS, max_size=3),
    properties=st.one_of(
        st.just({}),
        st.dictionaries(
            st.sampled_from(['bitstream_id', 'function_id']),
            st.uuids().map(str),
            min_size=1,
            max_size=1,
        ),
        st.fixed_dictionaries(
            {'function_name': st.text().map(str.strip).filter(bool)}
        ),
    ),
    forbidden=st.frozensets(
        TRAITS.map(lambda name: name + '_NOT'), max_size=3
    ),
    is_on_one_numa_node=st.booleans(),
)


def written(group):
    """The group as an admin writes it."""
    return {
        **{
            f'resources:{name}': str(amount)
            for name, amount in group.resources.items()
        },
        **{f'trait:{name}': 'forbidden' for name in group.forbidden},
        **{f'trait:{name}': 'required' for name in group.required},
        **{f'accel:{name}': value for name, value in group.properties.items()},
        **({'accel:prefetch': 'true'} if group.is_prefetched else {}),
        **(
            {'accel:single_numa_node': 'True'}
            if group.is_on_one_numa_node
            else {}
        ),
        **(
            {'accel:numa_affinity': str(group.numa_affinity)}
            if group.numa_affinity
            else {}
        ),
    }


class TestParseGroups(testtools.TestCase):
    def refused(self, *groups):
        return str(
            self.assertRaises(
                exceptions.InvalidDeviceProfile,
                device_profile.parse_groups,
                groups,
            )
        )

    def test_the_spec_s_example(self):
        bitstream = 'd5ca2f11-3108-4426-a11c-a959987565df'
        self.assertEqual(
            (
                device_profile.Group(
                    {'FPGA': 1},
                    frozenset({'CUSTOM_FPGA_INTEL_PAC'}),
                    frozenset({'CUSTOM_SLOW'}),
                    {'bitstream_id': bitstream},
                ),
            ),
            device_profile.parse_groups(
                [
                    {
                        'resources:FPGA': '1',
                        'trait:CUSTOM_SLOW': 'forbidden',
                        'trait:CUSTOM_FPGA_INTEL_PAC': 'required',
                        'accel:bitstream_id': bitstream,
                    }
                ]
            ),
        )

    @given(st.lists(GROUPS, min_size=1, max_size=4))
    def test_what_is_written_is_read_in_order(self, groups):
        self.assertEqual(
            tuple(groups),
            device_profile.parse_groups([written(each) for each in groups]),
        )

    @given(GROUPS, st.randoms())
    def test_the_order_of_keys_does_not_matter(self, group, random):
        items = list(written(group).items())
        random.shuffle(items)
        self.assertEqual((group,), device_profile.parse_groups([dict(items)]))

    def test_each_type_of_device_can_be_asked_for(self):
        for name in naming.RESOURCE_CLASSES.values():
            [group] = device_profile.parse_groups([{f'resources:{name}': '1'}])
            self.assertEqual({name: 1}, group.resources)

    def test_the_longest_names(self):
        name = 'CUSTOM_' + 'X' * 248
        [group] = device_profile.parse_groups(
            [{f'resources:{name}': '1', f'trait:{name}': 'required'}]
        )
        self.assertEqual({name: 1}, group.resources)
        self.assertEqual({name}, group.required)

    def test_cyborg_s_texts(self):
        for group, text in REFUSED_BY_CYBORG:
            self.assertIn(text, self.refused(group))

    def test_the_wrong_key_or_value_is_named(self):
        for key, value, named in MALFORMED:
            # A right group before it and right keys beside it do not help.
            text = self.refused(
                {'resources:FPGA': '1'}, {'resources:VGPU': '1', key: value}
            )
            self.assertIn(reason.printable(named), text)

    def test_amounts(self):
        for value in AMOUNTS:
            text = self.refused({'resources:CUSTOM_QAT': value})
            told = reason.printable(value)
            self.assertIn(f'Resources number {told} is invalid', text)
            self.assertIn('CUSTOM_QAT', text)
            self.assertIn('1 to 64', text)

    @given(st.integers(-3, 10**6))
    @example(1)
    @example(64)
    def test_amounts_have_both_bounds(self, amount):
        group = {'resources:FPGA': str(amount)}
        if 1 <= amount <= 64:
            [parsed] = device_profile.parse_groups([group])
            self.assertEqual({'FPGA': amount}, parsed.resources)
        else:
            self.assertIn(str(amount), self.refused(group))

    @given(GROUPS, st.text(max_size=9), st.text(max_size=9))
    def test_an_unknown_key_is_never_passed_over(self, group, kind, name):
        key = f'{kind}:{name}'
        if kind in ('resources', 'trait', 'accel'):
            return
        text = self.refused({**written(group), key: '1'})
        self.assertIn(reason.printable(key), text)

    def test_no_groups(self):
        self.assertIn('at least one group', self.refused())

    def test_one_thing_to_be_programmed(self):
        error = self.refused(
            {
                'resources:FPGA': '1',
                'accel:function_name': 'gzip',
                'accel:bitstream_id': 'd5ca2f11-3108-4426-a11c-a959987565df',
            }
        )
        self.assertIn('accel:bitstream_id, accel:function_name', error)

    def test_the_bitstream_of_a_stored_group(self):
        self.assertIsNone(
            device_profile.bitstream_id({'accel:function_name': 'fast'})
        )
        uuid = 'd5ca2f11-3108-4426-a11c-a959987565df'
        for value in (uuid, uuid.upper(), uuid.replace('-', '')):
            self.assertEqual(
                uuid,
                device_profile.bitstream_id({'accel:bitstream_id': value}),
            )

    def test_a_group_without_resources(self):
        for group in (
            {},
            {'trait:CUSTOM_X': 'required'},
            {'accel:function_name': 'x'},
        ):
            self.assertIn('resources:', self.refused(group))
            self.assertIn(
                'resources:', self.refused({'resources:FPGA': '1'}, group)
            )


class TestUnits(testtools.TestCase):
    def test_two_groups_of_some_make_n_times_m(self):
        groups = device_profile.parse_groups(
            [{'resources:FPGA': '2'}, {'resources:FPGA': '1'}]
        )
        self.assertEqual(
            [['FPGA', 'FPGA'], ['FPGA']],
            [list(group.units()) for group in groups],
        )

    @given(GROUPS)
    def test_as_many_of_each_class_as_asked_for(self, group):
        units = list(group.units())
        self.assertEqual(dict(group.resources), collections.Counter(units))
        self.assertEqual(sorted(units), units)

    @given(st.integers(1, 9), st.integers(1, 64))
    def test_n_groups_of_m(self, groups, amount):
        parsed = device_profile.parse_groups(
            [{'resources:VGPU': str(amount)}] * groups
        )
        self.assertEqual(
            groups * amount, sum(len(list(group.units())) for group in parsed)
        )


class TestNames(testtools.TestCase):
    def test_good(self):
        for name in ('a', 'gzip-dp_77BC', '0', '-', 'x' * 255):
            device_profile.check_name(name)

    def test_bad(self):
        for name in (
            '',
            'a b!',
            'a\n',
            '\na',
            'ä',
            '٣',
            'a.b',
            'a/b',
            'a,b',
            'x' * 256,
        ):
            text = str(
                self.assertRaises(
                    exceptions.InvalidDeviceProfile,
                    device_profile.check_name,
                    name,
                )
            )
            self.assertIn(
                'Device profile name must be of the form ^[a-zA-Z0-9-_]+$',
                text,
            )
            self.assertIn(repr(name), text)

    def test_requester_ids_are_nova_s(self):
        self.assertEqual(
            ['device_profile_0', 'device_profile_1'],
            [device_profile.requester_id(n) for n in range(2)],
        )

    def test_requester_ids_of_parts(self):
        self.assertEqual(
            ['device_profile_2_0', 'device_profile_2_1'],
            [device_profile.requester_id(2, part=n) for n in range(2)],
        )


class TestCheckedGroups(testtools.TestCase):
    def test_numbers_and_blanks(self) -> None:
        self.assertEqual(
            [
                {'resources:FPGA': '1', 'trait:CUSTOM_A': 'required'},
                {'resources:FPGA': '2'},
            ],
            device_profile.checked_groups(
                [
                    {'resources: FPGA': 1, 'trait:CUSTOM_A ': 'required'},
                    {'resources:FPGA': 2.0},
                ]
            ),
        )

    def test_a_group_that_asks_for_nothing(self) -> None:
        self.assertRaises(
            exceptions.InvalidDeviceProfile,
            device_profile.checked_groups,
            [{}],
        )

    def test_a_key_that_is_there_twice(self) -> None:
        error = self.assertRaises(
            exceptions.InvalidDeviceProfile,
            device_profile.checked_groups,
            [{'resources:FPGA': '1', 'resources: FPGA': '1'}],
        )
        self.assertIn('resources:FPGA', str(error))


class TestShapes(testtools.TestCase):
    def refused(self, **keys: str) -> str:
        return str(
            self.assertRaises(
                exceptions.InvalidDeviceProfile,
                device_profile.checked_groups,
                [{f'accel:{name}': value for name, value in keys.items()}],
            )
        )

    def test_a_group_gets_the_class_of_its_shape(self) -> None:
        for shape, resource_class in (
            ('whole', 'CUSTOM_SHAPE_WHOLE'),
            ('mig:3g.40gb', 'CUSTOM_SHAPE_MIG_3G_40GB'),
            ('vgpu:NVIDIA A40-12Q', 'CUSTOM_SHAPE_VGPU_NVIDIA_A40_12Q'),
        ):
            raw = {'accel:shape': shape, 'trait:CUSTOM_A': 'forbidden'}
            stored = raw | {f'resources:{resource_class}': '1'}
            self.assertEqual([stored], device_profile.checked_groups([raw]))
            # What is stored stays as it is.
            self.assertEqual([stored], device_profile.checked_groups([stored]))
            expected = device_profile.Group(
                {resource_class: 1}, forbidden=frozenset({'CUSTOM_A'})
            )
            for group in (raw, stored):
                self.assertEqual(expected, device_profile.parse_group(group))

    def test_several_units(self) -> None:
        several = {
            'accel:shape': 'whole',
            'resources:CUSTOM_SHAPE_WHOLE': '2',
        }
        self.assertEqual([several], device_profile.checked_groups([several]))
        self.assertEqual(
            {'CUSTOM_SHAPE_WHOLE': 2},
            device_profile.parse_group(several).resources,
        )

    def test_no_shape(self) -> None:
        for shape in ('', 'Whole', 'mig:*', 'mig:3g', 'vgpu:', 'VGPU'):
            text = self.refused(shape=shape)
            self.assertIn(f'Invalid value {shape!r} of accel:shape', text)
            self.assertIn('vgpu:NVIDIA A40-12Q', text)

    def test_units_of_its_shape_alone(self) -> None:
        other = 'resources:CUSTOM_SHAPE_MIG_1G_10GB'
        for more, named in (
            ({other: '1'}, 'CUSTOM_SHAPE_MIG_1G_10GB'),
            ({'resources:CUSTOM_CARD_SHARE': '1'}, 'CUSTOM_CARD_SHARE'),
            (
                {'resources:VGPU': '1', 'resources:FPGA': '1'},
                'not for FPGA, VGPU',
            ),
            ({'accel:link': 'pcie'}, 'not for accel:link'),
            ({'accel:function_name': 'gzip'}, 'not for accel:function_name'),
            (
                {'accel:bitstream_id': 'd5ca2f11-3108-4426-a11c-a959987565df'},
                'not for accel:bitstream_id',
            ),
        ):
            error = self.assertRaises(
                exceptions.InvalidDeviceProfile,
                device_profile.checked_groups,
                [{'accel:shape': 'whole', **more}],
            )
            self.assertIn(named, str(error))

    def test_its_class_needs_the_shape(self) -> None:
        for resource_class in ('CUSTOM_SHAPE_WHOLE', 'CUSTOM_CARD_SHARE'):
            error = self.assertRaises(
                exceptions.InvalidDeviceProfile,
                device_profile.parse_group,
                {f'resources:{resource_class}': '1'},
            )
            self.assertIn(
                f'{resource_class}, use accel:shape with the name', str(error)
            )


class TestLinks(testtools.TestCase):
    def parsed(self, *groups):
        return [
            group.link
            for group in device_profile.parse_groups(
                [
                    {
                        f'resources:{name}': str(amount),
                        **({} if link is None else {'accel:link': link}),
                    }
                    for name, amount, link in groups
                ]
            )
        ]

    def refused(self, *groups):
        return str(
            self.assertRaises(
                exceptions.InvalidDeviceProfile, self.parsed, *groups
            )
        )

    def test_several_units(self):
        for link in ('nvlink', 'pcie', 'numa'):
            self.assertEqual([link], self.parsed(('PGPU', 2, link)))
        self.assertEqual([None], self.parsed(('PGPU', 2, None)))

    def test_two_groups(self):
        self.assertEqual(
            ['pcie', 'pcie'],
            self.parsed(('PGPU', 1, 'pcie'), ('CUSTOM_NIC', 1, 'pcie')),
        )

    def test_one_unit_alone(self):
        for others in ([], [('PGPU', 1, None)], [('PGPU', 2, 'numa')]):
            self.assertIn(
                'accel:link=pcie joins two units or more',
                self.refused(('PGPU', 1, 'pcie'), *others),
            )

    def test_more_than_a_set_has(self):
        self.parsed(('PGPU', 32, 'numa'), ('CUSTOM_NIC', 32, 'numa'))
        self.assertIn(
            'joins 64 units at most, and the profile asks for 65',
            self.refused(('PGPU', 33, 'numa'), ('CUSTOM_NIC', 32, 'numa')),
        )

    def test_nvlink_joins_units_of_one_class(self):
        self.parsed(('PGPU', 1, 'nvlink'), ('PGPU', 1, 'nvlink'))
        self.assertIn(
            'asks for CUSTOM_NIC and PGPU',
            self.refused(('PGPU', 1, 'nvlink'), ('CUSTOM_NIC', 1, 'nvlink')),
        )

    def test_one_numa_node(self):
        error = self.assertRaises(
            exceptions.InvalidDeviceProfile,
            device_profile.parse_groups,
            [
                {
                    'resources:PGPU': '2',
                    'accel:link': 'nvlink',
                    'accel:single_numa_node': 'true',
                }
            ],
        )
        self.assertIn('accel:link=numa', str(error))

    def test_ids(self):
        self.assertEqual(
            'device_profile_3_set', device_profile.set_requester_id(3)
        )
        self.assertEqual(
            'device_profile_0_setport',
            device_profile.set_requester_id(0, 'port'),
        )
