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
import string
import uuid

from hypothesis import given
from hypothesis import strategies as st
import os_resource_classes
import os_traits
import testtools

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice
from unit.model import pci_addresses

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'

LEGAL = re.compile(r'CUSTOM_[A-Z0-9_]+')

ALNUM = string.ascii_letters + string.digits

#: Any text in which there is something to make a name of.
WORDS = st.builds(
    lambda head, core, tail: head + core + tail,
    st.text(max_size=9),
    st.sampled_from(ALNUM),
    st.text(max_size=9),
)

NODES = st.from_regex(r'[a-z0-9]([a-z0-9.-]{0,60}[a-z0-9])?', fullmatch=True)


class TestTraits(testtools.TestCase):
    def test_forms_of_the_specs(self):
        region = 'd5ca2f11-3108-4426-a11c-a959987565df'
        self.assertEqual(
            'CUSTOM_FPGA_INTEL_PAC_ARRIA10',
            naming.device_trait('FPGA', 'Intel', 'PAC Arria10'),
        )
        self.assertEqual(
            'CUSTOM_FPGA_INTEL_REGION_D5CA2F11_3108_4426_A11C_A959987565DF',
            naming.region_trait('FPGA', 'Intel', region),
        )
        self.assertEqual(
            'CUSTOM_FPGA_INTEL_FUNCTION_D5CA2F11_3108_4426_A11C_A959987565DF',
            naming.function_trait('FPGA', 'Intel', region),
        )
        self.assertEqual(
            'CUSTOM_NVIDIA_1DB4_NVIDIA_11',
            naming.vgpu_trait('nvidia', '1db4', 'nvidia-11'),
        )
        self.assertEqual(
            'CUSTOM_PHYSNET_PHYSNET_1', naming.network_trait('physnet-1')
        )
        self.assertEqual(
            'CUSTOM_NOVA_ACCEL_NVLINK_4', naming.link_trait('nvlink', 4)
        )

    def test_the_name_of_a_vgpu_type_as_cyborg_has_it(self):
        for name, word in (
            ('GRID T4-2B', 'T4_2B'),
            ('NVIDIA A40-12Q', 'A40_12Q'),
            ('GRID\tT4-2B\n', 'T4_2B'),
            ('T4-2B', 'T4_2B'),
            (
                'NVIDIA RTX Pro 6000 Blackwell-1-24Q',
                'RTX_PRO_6000_BLACKWELL_1_24Q',
            ),
        ):
            self.assertEqual(
                {
                    'CUSTOM_NVIDIA_1EB8_NVIDIA_223',
                    f'CUSTOM_NVIDIA_1EB8_{word}',
                },
                naming.vgpu_traits('NVIDIA', '1eb8', 'nvidia-223', name),
            )

    @given(
        st.none()
        | st.text(st.characters(codec='ascii')).filter(
            lambda text: not set(text) & set(ALNUM)
        )
        | st.integers(256, 5000).map('x'.__mul__)
    )
    def test_a_vgpu_type_without_a_usable_name(self, name):
        """Never the trait of the whole card, which Cyborg has, too."""
        self.assertEqual(
            {'CUSTOM_NVIDIA_1EB8_NVIDIA_223'},
            naming.vgpu_traits('NVIDIA', '1eb8', 'nvidia-223', name),
        )

    @given(st.text())
    def test_any_name_of_a_vgpu_type(self, name):
        for trait in naming.vgpu_traits('NVIDIA', '1eb8', 'a', name):
            self.assertIsNotNone(LEGAL.fullmatch(trait), trait)
            self.assertLessEqual(len(trait), 255)

    @given(WORDS, WORDS, st.uuids())
    def test_a_trait_that_names_a_uuid_is_told_by_its_kind(
        self, type_, vendor, uuid
    ):
        region = naming.region_trait(type_, vendor, str(uuid))
        function = naming.function_trait(type_, vendor, str(uuid))
        self.assertEqual(
            [True, False],
            [naming.is_region_trait(trait) for trait in (region, function)],
        )
        self.assertEqual(
            [False, True],
            [naming.is_function_trait(trait) for trait in (region, function)],
        )

    def test_what_an_operator_calls_region_or_function_is_none(self):
        for trait in ('CUSTOM_FPGA_REGION_EAST', 'CUSTOM_X_FUNCTION_GZIP'):
            self.assertFalse(naming.is_region_trait(trait))
            self.assertFalse(naming.is_function_trait(trait))

    @given(st.lists(WORDS, min_size=1, max_size=4))
    def test_every_name_is_legal_in_placement(self, words):
        name = naming.custom_trait(*words)
        self.assertIsNotNone(LEGAL.fullmatch(name), name)
        self.assertTrue(os_traits.is_custom(name))
        self.assertLessEqual(len(name), 255)

    @given(st.lists(WORDS, min_size=1, max_size=4))
    def test_what_is_normal_stays(self, words):
        name = naming.custom_trait(*words)
        self.assertEqual(name, naming.custom_trait(*words))
        self.assertEqual(
            name, naming.custom_trait(name.removeprefix('CUSTOM_'))
        )

    @given(
        st.lists(
            st.text(ALNUM, min_size=1, max_size=9), min_size=1, max_size=9
        )
    )
    def test_plain_words_are_kept(self, words):
        self.assertEqual(
            'CUSTOM_' + '_'.join(words).upper(), naming.custom_trait(*words)
        )

    @given(WORDS, st.text().filter(lambda text: not set(text) & set(ALNUM)))
    def test_a_word_of_nothing_is_refused(self, word, nothing):
        for words in ((nothing,), (word, nothing), (nothing, word)):
            self.assertRaises(
                exceptions.InvalidName, naming.custom_trait, *words
            )

    def test_no_word_at_all_is_refused(self):
        self.assertRaises(exceptions.InvalidName, naming.custom_trait)

    def test_length(self):
        word = 'x' * (255 - len('CUSTOM_'))
        self.assertEqual('CUSTOM_' + word.upper(), naming.custom_trait(word))
        error = self.assertRaises(
            exceptions.InvalidName, naming.custom_trait, word + 'x'
        )
        self.assertIn(word.upper() + 'X', str(error))
        self.assertIn('255', str(error))


class TestShapes(testtools.TestCase):
    def test_classes(self):
        for shape, resource_class in (
            ('whole', 'CUSTOM_SHAPE_WHOLE'),
            ('mig:3g.40gb', 'CUSTOM_SHAPE_MIG_3G_40GB'),
            ('vgpu:NVIDIA A40-12Q', 'CUSTOM_SHAPE_VGPU_NVIDIA_A40_12Q'),
        ):
            self.assertEqual(resource_class, naming.shape_class(shape))

    @given(st.from_regex(re.compile(card_slice.SHAPE_PATTERN), fullmatch=True))
    def test_each_is_legal_and_known_by_it(self, shape):
        resource_class = naming.shape_class(shape)
        self.assertIsNotNone(LEGAL.fullmatch(resource_class), resource_class)
        self.assertLessEqual(len(resource_class), 255)
        self.assertTrue(naming.is_shape_class(resource_class))

    def test_other_classes(self):
        for resource_class in (
            *naming.RESOURCE_CLASSES.values(),
            naming.CARD_SHARE,
            'CUSTOM_SHAPE',
            'CUSTOM_SHAPELY',
            'CUSTOM_MY_SHAPE_WHOLE',
        ):
            self.assertFalse(
                naming.is_shape_class(resource_class), resource_class
            )

    def test_a_shape_of_nothing(self):
        self.assertRaises(exceptions.InvalidName, naming.shape_class, '')


class TestConstants(testtools.TestCase):
    def test_classes_are_standard_or_custom(self):
        for resource_class in naming.RESOURCE_CLASSES.values():
            self.assertTrue(
                resource_class in os_resource_classes.STANDARDS
                or LEGAL.fullmatch(resource_class),
                resource_class,
            )

    def test_a_type_with_a_standard_class_has_it(self):
        for type_, resource_class in naming.RESOURCE_CLASSES.items():
            if type_ in os_resource_classes.STANDARDS:
                self.assertEqual(type_, resource_class)
        self.assertEqual('PGPU', naming.RESOURCE_CLASSES['GPU'])

    def test_the_types_of_the_specs(self):
        """Flavors and device lines name them."""
        self.assertEqual(
            {'AICHIP', 'FPGA', 'GPU', 'NIC', 'QAT', 'SSD', 'TIME', 'VGPU'},
            naming.RESOURCE_CLASSES.keys(),
        )

    def test_owners(self):
        self.assertEqual('OWNER_CYBORG', naming.OWNER_TRAIT)
        self.assertIn(naming.OWNER_TRAIT, os_traits.get_traits())
        self.assertIsNotNone(LEGAL.fullmatch(naming.OWNERSHIP_TRAIT))


class TestProviderName(testtools.TestCase):
    def test_form(self):
        self.assertEqual(
            'c1.example.org_accel_pci_0000_81_00_0_region0',
            naming.provider_name(
                'c1.example.org', 'pci_0000_81_00_0', 'region0'
            ),
        )

    @given(NODES, pci_addresses.ANY, st.sampled_from([(), ('region0',)]))
    def test_nova_takes_none_for_its_own(self, node, address, more):
        for part in (str(address), address.node_device, str(address).upper()):
            name = naming.provider_name(node, part, *more)
            # What Nova cuts off to get the parent device of a vGPU.
            device = name.removeprefix(node + '_')
            self.assertNotEqual(name, device)
            for parse in (
                pci_address.PciAddress.parse,
                pci_address.PciAddress.parse_node_device,
            ):
                self.assertRaises(exceptions.InvalidName, parse, device)
            self.assertFalse(device.startswith('pci_'))

    @given(NODES)
    def test_ours_are_known_by_it(self, node):
        name = naming.provider_name(node, 'pci_0000_81_00_0')
        self.assertTrue(naming.is_provider_name(name, node))
        for foreign in (
            node,
            f'{node}_pci_0000_81_00_0',
            f'0{name}',
            f'{node}_0000:81:00.0',
            f'{node}0_accel_x',
        ):
            self.assertFalse(naming.is_provider_name(foreign, node))

    @given(NODES)
    def test_length(self, node):
        part = 'x' * (200 - len(f'{node}_accel_'))
        wanted = f'{node}_accel_{part}'
        self.assertEqual(wanted, naming.provider_name(node, part))
        error = self.assertRaises(
            exceptions.InvalidName, naming.provider_name, node, part + 'x'
        )
        self.assertIn(wanted + 'x', str(error))
        self.assertIn('200', str(error))


class TestDerivedUuid(testtools.TestCase):
    def test_it_is_stable_between_releases(self):
        self.assertEqual(
            'f934b4d7-6c7e-5983-a431-31e7385a6e99',
            naming.derived_uuid(NODE_UUID, 'provider', 'pci_0000_81_00_0'),
        )

    @given(st.uuids(), st.lists(st.text()))
    def test_it_is_a_uuid_and_does_not_change(self, node, parts):
        found = naming.derived_uuid(str(node), *parts)
        self.assertEqual(found, str(uuid.UUID(found)))
        self.assertEqual(found, naming.derived_uuid(str(node), *parts))
        self.assertEqual(found, naming.derived_uuid(str(node).upper(), *parts))

    @given(
        st.lists(
            st.tuples(
                st.sampled_from([NODE_UUID, NODE_UUID[:-1] + '2']),
                st.lists(
                    st.text('abc_01', min_size=1), min_size=1, max_size=3
                ).map(tuple),
            ),
            unique=True,
        )
    )
    def test_different_things_have_different_ones(self, things):
        self.assertEqual(
            len(things),
            len({naming.derived_uuid(node, *parts) for node, parts in things}),
        )
