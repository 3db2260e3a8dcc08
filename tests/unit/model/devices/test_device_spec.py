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

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model import link_sets
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import device_spec_keys
from nova_accel.model.devices import offered_functions
from nova_accel.model.devices import subsystem

DRIVERS = ('pci', 'mdev')

BITSTREAM = '6a8ee9d1-5d0f-4f5e-9f5b-2a4d1f0a7c33'

GOOD = {
    'vendor_id': '8086',
    'product_id': '37c9',
    'subsystem_vendor_id': '8086',
    'subsystem_product_id': '17D4',
    'address': '0000:3d:*.*',
    'driver': 'pci',
    'type': 'QAT',
    'resource_class': 'CUSTOM_QAT_GEN4',
    'traits': ['CUSTOM_RACK_7'],
    'pool': 'link',
    'links': {'nvlink': [['0000:3d:00.0', '0000:3E:00.0']], 'pcie': []},
    'module_ids': {'0000:3D:00.0': 1, '0000:3e:00.0': None},
    'mdev_type': 'nvidia-11',
    'unit': 'slot',
    'sriov_numvfs': 8,
    'mdev_types': {'nvidia-12': 1, 'nvidia-11': 2},
    'vgpu_types': {'558': 4.0},
    'vgpu_params': 'frame_rate_limiter=0, disable_vnc=1',
    'whole': True,
    'clean': 'command',
    'clean_command': ['/bin/wipe', '-v'],
    'physical_network': 'physnet-1',
    'contents_attribute': 'labfpga_loaded',
    'live_migratable': 'yes',
}

#: What replaces the value of a key of GOOD and must be refused.
MALFORMED = {
    'vendor_id': (
        '',
        '808',
        '80866',
        '0x80',
        '808g',
        '8086\n',
        '80*',
        8086,
        None,
        '٣٣٣٣',
    ),
    'product_id': ('', '37c', '37c9\n', 37, ['37c9']),
    'subsystem_vendor_id': ('', '0x8086', 8086, None),
    'subsystem_product_id': ('', '17d', '8086:17d4', 1774, ['17d4']),
    'address': (
        '',
        '*',
        '3d',
        '0000:3d',
        '0000:3d:00',
        '0000:3d:00.0\n',
        '0000:3d:00.8',
        '0000:3d:20.0',
        '0000:3d:00.00',
        '000:3d:00.0',
        '0000:3:00.0',
        '0000:3d:00.0 ',
        '0000:3*:00.0',
        {'bus': '3d'},
        None,
    ),
    'driver': ('', 'PCI', 'unheard_of', None, 1),
    'type': ('', 'qat', 'TPU', None),
    'resource_class': (
        '',
        'VGPU',
        'CUSTOM_',
        'CUSTOM_a',
        'CUSTOM_A\n',
        'CUSTOM_A-B',
        'CUSTOM_' + 'X' * 249,
        None,
    ),
    'traits': (
        'CUSTOM_A',
        ['HW_CPU_X86_AVX'],
        ['CUSTOM_'],
        ['CUSTOM_a'],
        ['CUSTOM_A\n'],
        ['CUSTOM_A', 'CUSTOM_A'],
        [1],
        ['CUSTOM_' + 'X' * 249],
        None,
    ),
    'pool': ('true', 'NUMA', 0, 1, None),
    'links': (
        {},
        [],
        {'nvlink': None},
        {'root': [['0000:3d:00.0', '0000:3e:00.0']]},
        {'pcie': [['0000:3d:00.0']]},
        {'pcie': [['0000:3d:00.0', '3e:00.0']]},
        {'pcie': [['0000:3d:00.0', '0000:3e:00.0\n']]},
        {'pcie': [['0000:3d:00.0'] * 65]},
        {'numa': [['0000:3d:00.0', '0000:3e:00.0']] * 65},
        None,
    ),
    'module_ids': (
        {},
        [],
        {'0000:3d:00.*': 1},
        {'0000:3d:00.0': -1},
        {'0000:3d:00.0': 256},
        {'0000:3d:00.0': '1'},
        {'0000:3d:00.0': 1, '0000:3e:00.0': 1},
        None,
    ),
    'mdev_type': ('', None, 11),
    'mdev_types': (
        {},
        ['nvidia-11'],
        {'nvidia-11': 0},
        {'nvidia-11': '1'},
        {'nvidia-11': 1.5},
        {'nvidia-11': 1025},
        None,
    ),
    'vgpu_types': (
        {},
        ['558'],
        {'NVIDIA A40-12Q': 1},
        {'558\n': 1},
        {'558': 0},
        {'558': None},
        None,
    ),
    'vgpu_params': (
        '',
        ' ',
        'enable_uvm',
        'enable_uvm=',
        '=1',
        'enable_uvm=1,',
        'enable_uvm=1 disable_vnc=1',
        'enable_uvm=1\n',
        'enable_uvm=1\ndisable_vnc=1',
        'enable_uvm=ü',
        'enable_uvm=$(id)',
        'vgpu_type_id=558',
        'enable_uvm=1, vgpu_type_id=558',
        f'a={959 * "1"}',
        ['enable_uvm=1'],
        {'enable_uvm': 1},
        None,
    ),
    'whole': ('true', 1, None),
    'contents_attribute': (
        '',
        '/etc/passwd',
        '../x',
        'a/../b',
        'a\n',
        'a b',
        'x' * 201,
        None,
    ),
    'clean': ('', 'wipe', 'none ', True, None),
    'clean_command': (
        '/bin/wipe',
        [],
        ['wipe'],
        ['bin/wipe'],
        ['/bin/wipe', 1],
        None,
    ),
    'physical_network': ('', None, 1, '-', 'a\n', 'ü', 'a' * 201),
    'live_migratable': ('', 'maybe', None, 1, 0),
    'unit': ('', 'Slot', 'card', None, 1),
    'sriov_numvfs': (0, -1, 65536, 1.5, '8', True, None),
    'shapes': (
        'whole',
        [],
        [''],
        ['*'],
        ['whole:*'],
        ['Whole'],
        ['whole\n'],
        ['mig'],
        ['mig:'],
        ['mig:3g'],
        ['mig:3g.40GB'],
        ['mig:3g.40gb\n'],
        ['mig:1g.5gb+me'],
        ['mig:0g.5gb'],
        ['mig:3*'],
        ['vgpu:'],
        ['vgpu: NVIDIA A40-12Q'],
        ['vgpu:NVIDIA A40-12Q\n'],
        ['vgpu:NVIDIA Ä'],
        [f'vgpu:{201 * "x"}'],
        ['whole', 'whole'],
        ['whole', 7],
        [f'mig:1g.{number}gb' for number in range(1, 66)],
        None,
    ),
}

#: Vendor, product, domain, bus, slot and function, as sysfs writes them.
PARTS = (
    ('8086', '10de'),
    ('37c9', '09c4'),
    ('0000', '0001', '10000'),
    ('3d', '81'),
    ('00', '1f'),
    ('0', '7'),
)

FUNCTIONS = st.tuples(*map(st.sampled_from, PARTS))


@st.composite
def lines_and_a_function(draw):
    """What a few lines say, part by part, and a function near to it."""
    function = draw(FUNCTIONS)

    def part(number):
        has = function[number]
        values = [
            '*',
            '*',
            has,
            has.upper(),
            draw(st.sampled_from(PARTS[number])),
        ]
        if number == 2:
            values += [None, has.zfill(8)]
        return draw(st.sampled_from(values))

    lines = [
        tuple(map(part, range(6))) for _line in range(draw(st.integers(0, 5)))
    ]
    return lines, function


def line(pattern, **more):
    vendor_id, product_id, domain, bus, slot, function = pattern
    prefix = '' if domain is None else f'{domain}:'
    return json.dumps(
        {
            'vendor_id': vendor_id,
            'product_id': product_id,
            'driver': 'pci',
            'address': f'{prefix}{bus}:{slot}.{function}',
            **more,
        }
    )


def a_line(**keys):
    return json.dumps({'vendor_id': '*', 'driver': 'pci', **keys})


def found(specs, function):
    vendor_id, product_id, *parts = function
    address = pci_address.PciAddress(*(int(text, 16) for text in parts))
    return device_spec.first_match(
        specs,
        offered_functions.Function(address, vendor_id, product_id),
    )


def matches(pattern, function):
    """Part by part, as numbers; a domain that is left out is any."""
    wanted = ['*' if text is None else text for text in pattern]
    return all(
        each == '*' or int(each, 16) == int(has, 16)
        for each, has in zip(wanted, function, strict=True)
    )


def address(bus):
    return pci_address.PciAddress(0, bus, 0, 0)


class TestParse(testtools.TestCase):
    def test_a_full_line(self):
        text = json.dumps(GOOD)
        self.assertEqual(
            (
                device_spec.DeviceSpec(
                    text=text,
                    driver='pci',
                    vendor_id='8086',
                    product_id='37c9',
                    subsystem_vendor_id='8086',
                    subsystem_product_id='17d4',
                    address='0000:3d:*.*',
                    type='QAT',
                    resource_class='CUSTOM_QAT_GEN4',
                    traits=frozenset(
                        {
                            'HW_PCI_LIVE_MIGRATABLE',
                            'CUSTOM_RACK_7',
                            'CUSTOM_PHYSNET_PHYSNET_1',
                        }
                    ),
                    pool=True,
                    pool_by_links=True,
                    links=(
                        (
                            link_sets.Kind.NVLINK,
                            (frozenset({address(0x3D), address(0x3E)}),),
                        ),
                        (link_sets.Kind.PCIE, ()),
                    ),
                    module_ids=((address(0x3D), 1), (address(0x3E), None)),
                    mdev_type='nvidia-11',
                    unit=device_spec_keys.UnitKind.SLOT,
                    sriov_numvfs=8,
                    mdev_types=(('nvidia-12', 1), ('nvidia-11', 2)),
                    vgpu_types=(('558', 4),),
                    vgpu_params='frame_rate_limiter=0,disable_vnc=1',
                    whole=True,
                    contents_attribute='labfpga_loaded',
                    clean='command',
                    clean_command=('/bin/wipe', '-v'),
                    physical_network='physnet-1',
                    live_migratable=True,
                ),
            ),
            device_spec.parse([text], DRIVERS),
        )

    def test_live_migration_is_told_as_in_nova(self):
        for value, told in (
            (True, True),
            ('yes', True),
            (False, False),
            ('no', False),
        ):
            line = json.dumps(
                {
                    'vendor_id': '15b3',
                    'driver': 'pci',
                    'live_migratable': value,
                }
            )
            (spec,) = device_spec.parse([line], DRIVERS)
            self.assertIs(told, spec.live_migratable)
            self.assertEqual(
                {'HW_PCI_LIVE_MIGRATABLE'} if told else set(), spec.traits
            )

    def test_a_line_with_two_faults_names_both(self):
        """A key that is mistyped is missing too."""
        error = self.assertRaises(
            exceptions.InvalidDeviceSpec,
            device_spec.parse,
            ['{"vendor_id": "10ee", "drivr": "pci"}'],
            DRIVERS,
        )
        self.assertIn(
            'unknown key "drivr" (did you mean "driver"?)', str(error)
        )
        self.assertIn('"driver" is needed', str(error))

    def test_a_fault_is_told_in_words(self):
        for key, values in MALFORMED.items():
            for value in values:
                line = json.dumps({**GOOD, key: value})
                error = self.assertRaises(
                    exceptions.InvalidDeviceSpec,
                    device_spec.parse,
                    [line],
                    DRIVERS,
                )
                _option, _line, fault = str(error).partition(line)
                self.assertRegex(
                    fault, f'"{key}" has .*, and must be|unknown driver|same'
                )
                for raw in ('does not match', '\\Z', 'is not of type'):
                    self.assertNotIn(raw, fault)

    def test_keys_that_only_some_drivers_read(self):
        [spec] = device_spec.parse([json.dumps(GOOD)], DRIVERS)
        self.assertEqual(
            device_spec_keys.OF_SOME_DRIVERS - {'shapes'},
            spec.keys_of_some_drivers,
        )
        [spec] = device_spec.parse([a_line(shapes=['whole'])], DRIVERS)
        self.assertEqual({'shapes'}, spec.keys_of_some_drivers)
        [spec] = device_spec.parse(
            [
                json.dumps(
                    {
                        'vendor_id': '8086',
                        'driver': 'pci',
                        'unit': 'function',
                        'whole': False,
                    }
                )
            ],
            DRIVERS,
        )
        self.assertEqual(frozenset(), spec.keys_of_some_drivers)

    def test_short_lines(self):
        by_id, by_address = device_spec.parse(
            [
                '{"vendor_id": "10DE", "driver": "mdev"}',
                '{"address": "3D:00.0", "driver": "pci"}',
            ],
            DRIVERS,
        )
        self.assertEqual(
            ('10de', '*', None),
            (by_id.vendor_id, by_id.product_id, by_id.pool),
        )
        self.assertEqual(
            ('*', '*', frozenset()),
            (by_address.vendor_id, by_address.product_id, by_address.traits),
        )
        self.assertFalse(by_id.whole)

    def test_pools(self):
        line = {key: value for key, value in GOOD.items() if key != 'links'}
        for value, expected in (
            (False, (False, False, False)),
            (True, (True, False, False)),
            ('numa', (True, True, False)),
            ('link', (True, False, True)),
        ):
            [spec] = device_spec.parse(
                [json.dumps({**line, 'pool': value})], DRIVERS
            )
            self.assertEqual(
                expected,
                (spec.pool, spec.pool_by_numa_node, spec.pool_by_links),
            )

    def test_the_least_and_the_greatest_values(self):
        for numvfs in (1, 65535):
            [spec] = device_spec.parse(
                [
                    json.dumps(
                        {
                            'vendor_id': '8086',
                            'driver': 'p',
                            'mdev_type': 'x',
                            'sriov_numvfs': numvfs,
                            'clean': 'command',
                            'clean_command': ['/wipe'],
                        }
                    )
                ],
                ['p'],
            )
            self.assertEqual(
                ('p', 'x', numvfs, ('/wipe',)),
                (
                    spec.driver,
                    spec.mdev_type,
                    spec.sriov_numvfs,
                    spec.clean_command,
                ),
            )

    def test_a_number_of_functions_that_json_writes_as_a_fraction(self):
        [spec] = device_spec.parse(
            [
                json.dumps(
                    {'vendor_id': '8086', 'driver': 'pci', 'sriov_numvfs': 8.0}
                )
            ],
            DRIVERS,
        )
        self.assertEqual('8', str(spec.sriov_numvfs))

    def test_a_unit_is_not_a_text(self):
        [spec] = device_spec.parse([json.dumps(GOOD)], DRIVERS)
        self.assertIs(device_spec_keys.UnitKind.SLOT, spec.unit)

    def test_each_type_is_known(self):
        for type_ in naming.RESOURCE_CLASSES:
            [spec] = device_spec.parse(
                [json.dumps({**GOOD, 'type': type_})], DRIVERS
            )
            self.assertEqual(type_, spec.type)

    def test_no_lines(self):
        self.assertEqual((), device_spec.parse([], DRIVERS))

    @given(lines_and_a_function())
    def test_lines_keep_their_order(self, drawn):
        lines = [line(pattern) for pattern in drawn[0]]
        self.assertEqual(
            lines, [spec.text for spec in device_spec.parse(lines, DRIVERS)]
        )


class TestMalformed(testtools.TestCase):
    def refused(self, text):
        # The lines beside it are right: the error must name the wrong one.
        beside = [
            '{"vendor_id": "1af4", "driver": "pci"}',
            '{"vendor_id": "1af5", "driver": "mdev"}',
        ]
        error = str(
            self.assertRaises(
                exceptions.InvalidDeviceSpec,
                device_spec.parse,
                [beside[0], text, beside[1]],
                DRIVERS,
            )
        )
        self.assertIn(f'[nova_accel] device_spec = {text}: ', error)
        for other in beside:
            self.assertNotIn(other, error)
        return error.removeprefix(f'[nova_accel] device_spec = {text}: ')

    def test_the_key_of_a_wrong_value_is_named(self):
        self.assertEqual({*GOOD, 'shapes'}, set(MALFORMED))
        for key, values in MALFORMED.items():
            for value in values:
                self.assertIn(
                    key, self.refused(json.dumps({**GOOD, key: value}))
                )

    def test_the_schema_knows_the_keys_that_are_tested(self):
        self.assertEqual(
            {*GOOD, 'clean_bitstream', 'shapes'},
            set(device_spec_keys.SCHEMA['properties']),
        )

    def test_links_need_pools_by_links(self):
        for pool in (True, False, 'numa'):
            reason = self.refused(json.dumps({**GOOD, 'pool': pool}))
            self.assertIn('"links" needs "pool": "link"', reason)

    def test_a_card_of_many_shapes_has_its_own_provider_and_classes(self):
        for key in (
            'mdev_type',
            'mdev_types',
            'pool',
            'resource_class',
            'vgpu_types',
        ):
            reason = self.refused(
                a_line(shapes=['vgpu:*'], **{key: GOOD[key]})
            )
            self.assertEqual(f'"shapes" does not go with "{key}"', reason)

    def test_an_unknown_driver_and_those_installed_are_named(self):
        reason = self.refused(json.dumps({**GOOD, 'driver': 'xilinx'}))
        self.assertIn("'xilinx'", reason)
        self.assertIn('mdev, pci', reason)

    @given(st.text(min_size=1).filter(lambda key: key not in GOOD))
    def test_an_unknown_key_is_named(self, key):
        reason = self.refused(json.dumps({**GOOD, key: 'x'}))
        self.assertIn(json.dumps(key), reason)

    def test_a_command_that_nothing_runs_and_the_reverse(self):
        for line in (
            {**GOOD, 'clean': 'reset'},
            {key: value for key, value in GOOD.items() if key != 'clean'},
            {
                key: value
                for key, value in GOOD.items()
                if key != 'clean_command'
            },
        ):
            self.assertIn('clean_command', self.refused(json.dumps(line)))

    def test_a_bitstream_that_nothing_loads_and_the_reverse(self):
        line = {'vendor_id': '8086', 'driver': 'pci'}
        for more in (
            {'clean': 'program'},
            {'clean_bitstream': BITSTREAM},
            {'clean': 'reset', 'clean_bitstream': BITSTREAM},
            *(
                {'clean': 'program', 'clean_bitstream': bad}
                for bad in ('', 'blank', None, 1, BITSTREAM + '\n')
            ),
        ):
            self.assertIn(
                'clean_bitstream', self.refused(json.dumps({**line, **more}))
            )
        (spec,) = device_spec.parse(
            [
                json.dumps(
                    {**line, 'clean': 'program', 'clean_bitstream': BITSTREAM}
                )
            ],
            DRIVERS,
        )
        self.assertEqual(BITSTREAM, spec.clean_bitstream)

    def test_a_way_of_cleaning_that_is_unknown(self):
        self.assertIn(
            'clean',
            self.refused(
                '{"vendor_id": "8086", "driver": "pci", "clean": "wipe"}'
            ),
        )

    def test_no_driver(self):
        self.assertIn('driver', self.refused('{"vendor_id": "8086"}'))

    def test_nothing_to_know_the_device_by(self):
        for text in (
            '{"driver": "pci"}',
            '{"driver": "pci", "product_id": "37c9"}',
        ):
            reason = self.refused(text)
            self.assertIn('vendor_id', reason)
            self.assertIn('address', reason)

    def test_a_key_twice(self):
        """JSON would take the last value without a word."""
        for line, named in (
            (
                '{"vendor_id": "8086", "driver": "pci", "vendor_id": "10de"}',
                '"vendor_id"',
            ),
            (
                '{"vendor_id": "10de", "driver": "pci", '
                '"mdev_types": {"nvidia-1": 2, "nvidia-1": 4}}',
                '"nvidia-1"',
            ),
        ):
            error = self.assertRaises(
                exceptions.InvalidDeviceSpec, device_spec.parse, [line], None
            )
            self.assertEqual(
                f'[nova_accel] device_spec = {line}: it has {named} twice, '
                'and each key has one value: remove one',
                str(error),
            )

    def test_a_key_in_two_objects(self):
        """It is there once in each."""
        (spec,) = device_spec.parse(
            [
                '{"vendor_id": "10de", "driver": "mdev", '
                '"mdev_types": {"driver": 2}}'
            ],
            None,
        )
        self.assertEqual('mdev', spec.driver)

    def test_not_json(self):
        for text in (
            '',
            '{',
            'pci',
            '8086:37c9',
            '{"driver": "pci",}',
            "{'driver': 'pci'}",
        ):
            self.assertIn('not JSON', self.refused(text))

    def test_not_an_object(self):
        for text in (
            '[]',
            '"pci"',
            '1',
            'null',
            'true',
            '[{"driver": "pci"}]',
        ):
            reason = self.refused(text)
            self.assertIn('object', reason)
            # No key is at fault.
            self.assertFalse(reason.startswith(':'), reason)


class TestCleaning(testtools.TestCase):
    def test_the_method_and_with_what(self):
        for more, cleaning in (
            ({}, ()),
            ({'clean': 'none'}, ()),
            *(
                ({'clean': method}, (method,))
                for method in ('format', 'reset', 'sanitize')
            ),
            (
                {'clean': 'command', 'clean_command': ['/bin/wipe', '-v']},
                ('command', '/bin/wipe', '-v'),
            ),
            (
                {'clean': 'program', 'clean_bitstream': BITSTREAM},
                ('program', BITSTREAM),
            ),
        ):
            [spec] = device_spec.parse(
                [json.dumps({'vendor_id': '8086', 'driver': 'pci', **more})],
                DRIVERS,
            )
            self.assertEqual(cleaning, spec.cleaning)


class TestShapes(testtools.TestCase):
    def parse(self, *texts):
        [spec] = device_spec.parse([a_line(shapes=texts)], DRIVERS)
        return spec.shapes

    def test_they_keep_their_order(self):
        for shapes in (
            ('whole', 'vgpu:*', 'mig:*'),
            ('mig:3g.40gb', 'vgpu:NVIDIA A40-12Q', 'whole'),
        ):
            self.assertEqual(shapes, self.parse(*shapes))

    def test_a_line_without_shapes(self):
        [spec] = device_spec.parse([a_line()], DRIVERS)
        self.assertEqual((), spec.shapes)

    def test_the_longest_names_and_lists(self):
        shapes = (
            f'vgpu:{200 * "x"}',
            'mig:9g.9999gb',
            *(f'mig:1g.{number}gb' for number in range(1, 63)),
        )
        self.assertEqual(shapes, self.parse(*shapes))

    def test_all_of_a_kind_and_one_of_them(self):
        self.parse('mig:*', 'vgpu:NVIDIA A40-12Q')
        error = self.assertRaises(
            exceptions.InvalidDeviceSpec, self.parse, 'mig:3g.40gb', 'mig:*'
        )
        self.assertIn(
            '"shapes" has "mig:3g.40gb", which "mig:*" has, too', str(error)
        )


class TestMatch(testtools.TestCase):
    @given(lines_and_a_function())
    def test_wildcards(self, drawn):
        patterns, function = drawn
        for pattern in patterns:
            specs = device_spec.parse([line(pattern)], DRIVERS)
            self.assertEqual(
                matches(pattern, function), found(specs, function) is not None
            )

    @given(lines_and_a_function())
    def test_the_first_that_matches_rules(self, drawn):
        patterns, function = drawn
        specs = device_spec.parse(
            [
                line(pattern, mdev_type=f'nvidia-{number}')
                for number, pattern in enumerate(patterns)
            ],
            DRIVERS,
        )
        wanted = next(
            (
                spec
                for spec, pattern in zip(specs, patterns, strict=True)
                if matches(pattern, function)
            ),
            None,
        )
        self.assertIs(wanted, found(specs, function))

    def test_what_is_left_out_matches_all(self):
        [spec] = device_spec.parse(
            ['{"vendor_id": "8086", "driver": "pci"}'], DRIVERS
        )
        address = pci_address.PciAddress(0xFFFFFFFF, 0xFF, 0x1F, 7)
        for board in (None, subsystem.Subsystem('8086', '0001')):
            for vendor_id in ('8086', '10de'):
                self.assertEqual(
                    vendor_id == '8086',
                    spec.matches(
                        offered_functions.Function(
                            address, vendor_id, '37c9', board
                        )
                    ),
                )

    def test_the_board(self):
        function = offered_functions.Function(
            address(0x3D), '8086', 'bcce', subsystem.Subsystem('8086', '17d4')
        )
        for keys, is_matched in (
            ({'subsystem_product_id': '17D4'}, True),
            ({'subsystem_product_id': '1771'}, False),
            ({'subsystem_vendor_id': '8086'}, True),
            ({'subsystem_vendor_id': '10de'}, False),
            ({'subsystem_vendor_id': '*', 'subsystem_product_id': '*'}, True),
        ):
            [spec] = device_spec.parse([a_line(**keys)], DRIVERS)
            self.assertEqual(is_matched, spec.matches(function), keys)

    def test_a_board_that_is_not_known(self):
        function = offered_functions.Function(address(0x3D), '8086', 'bcce')
        for keys, is_matched in (
            ({'subsystem_product_id': '17d4'}, False),
            ({'subsystem_vendor_id': '8086'}, False),
            ({'subsystem_vendor_id': '*', 'subsystem_product_id': '*'}, True),
        ):
            [spec] = device_spec.parse([a_line(**keys)], DRIVERS)
            self.assertEqual(is_matched, spec.matches(function), keys)
