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

"""The cures that refusals of a line advise, each applied to its case.

A text that quotes a key of a line needs a case here, else
:meth:`TestCures.test_each_text_has_a_case` fails.
"""

import ast
import importlib
import pathlib
from typing import Any

import testtools

import nova_accel
from nova_accel import conf
from nova_accel import exceptions
from nova_accel.drivers import configured_lines
from nova_accel.model.devices import device_spec_keys
from nova_accel.testing import pci_functions
from unit.mistakes import discovered

CONF = conf.CONF
IMAGE = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'
CARD, PART, NEXT = '0000:3d:00.0', '0000:3d:00.1', '0000:3e:00.0'
REGION = 'fpga_region__region{0}__compat_id'

_function = pci_functions.function


def _alone(vendor_id: str, product_id: str, **facts: Any) -> list[Any]:
    return [_function(CARD, vendor_id, product_id, **facts)]


def _sharing(vendor_id: str, product_id: str, other: str) -> list[Any]:
    """Two functions in one IOMMU group."""
    return [
        _function(CARD, vendor_id, product_id, 7, [other]),
        _function(other, vendor_id, product_id, 7, [CARD]),
    ]


def _carved(vendor_id: str, product_id: str, count: int = 1) -> list[Any]:
    return pci_functions.virtual_functions(
        *_alone(vendor_id, product_id), count, product_id
    )


_VGPU = {
    PART: {
        'nvidia__current_vgpu_type': '0',
        'nvidia__creatable_vgpu_types': '558 : NVIDIA A40-8Q',
    }
}
_PORT = {'nvme__nvme3__model': 'X', 'nvme__nvme3__serial': 'S1'}
_MDEVS = {'nvidia-222': 4, 'nvidia-223': 2}
_TWO_REGIONS = {CARD: {REGION.format(0): '', REGION.format(1): ''}}

# Functions, their attributes, the line, a part of its refusal, the cure.
CASES: list[tuple[Any, dict[str, Any], dict[str, Any], str, Any]] = [
    (
        _alone('abcd', '0001'),
        {},
        {'driver': 'pci'},
        'must have a "type"',
        {'type': 'FPGA'},
    ),
    (
        _alone('abcd', '0001', class_code='088000'),
        {},
        {'driver': 'pci', 'type': 'QAT'},
        'the line must have its "product_id"',
        {'vendor_id': 'abcd', 'product_id': '0001'},
    ),
    (
        [*_alone('144d', 'a824'), _function(NEXT, '144d', 'a824')],
        {
            CARD: {**_PORT, 'nvme__nvme3__subsysnqn': 'nqn.x'},
            NEXT: {**_PORT, 'nvme__nvme3__subsysnqn': 'nqn.x'},
        },
        {'driver': 'nvme'},
        'Match only one of them by "address"',
        {'address': CARD},
    ),
    (
        _alone('10ee', '50b4'),
        {},
        {'driver': 'pci', 'type': 'FPGA', 'clean': 'sanitize'},
        '"clean": "sanitize" does not work with the driver pci',
        {'clean': 'reset'},
    ),
    (
        _alone('10ee', '50b4'),
        {CARD: {'vendor': '0x10ee'}},
        {'driver': 'pci', 'type': 'FPGA', 'clean': 'reset'},
        'remove "clean": "reset" from the line',
        {'clean': None},
    ),
    (
        _alone('10ee', '50b4'),
        {CARD: {'reset_method': 'pm'}},
        {'driver': 'pci', 'type': 'FPGA', 'clean': 'reset'},
        'in "clean_command"',
        {'clean': 'command', 'clean_command': ['/usr/bin/wipe']},
    ),
    (
        _sharing('10ee', '50b4', PART),
        {},
        {'driver': 'pci', 'type': 'FPGA'},
        '"unit": "slot" or',
        {'unit': 'slot'},
    ),
    (
        _sharing('10ee', '5004', PART),
        {},
        {'driver': 'pci'},
        'hands over the whole card',
        {'unit': 'slot'},
    ),
    (
        _sharing('10ee', '50b4', NEXT),
        {},
        {'driver': 'pci', 'type': 'FPGA'},
        '"unit": "iommu_group"',
        {'unit': 'iommu_group'},
    ),
    (
        _sharing('10de', '2235', NEXT),
        {},
        {'driver': 'nvidia_gpu', 'address': CARD},
        '"unit": "iommu_group"',
        {'unit': 'iommu_group'},
    ),
    (
        _sharing('10ee', '50b4', PART),
        {},
        {'driver': 'xrt', 'address': CARD},
        '"whole": true in the line',
        {'whole': True},
    ),
    (
        _alone('8086', '09c4'),
        {CARD: {REGION.format(0): ''}},
        {'driver': 'fpga_region'},
        'with "whole": true',
        {'whole': True},
    ),
    (
        _alone('8086', '09c4'),
        _TWO_REGIONS,
        {
            'driver': 'fpga_region',
            'whole': True,
            'clean': 'program',
            'clean_bitstream': IMAGE,
        },
        '"clean": "program" needs a region',
        {'clean': None, 'clean_bitstream': None},
    ),
    (
        _carved('8086', '09c4', 2),
        _TWO_REGIONS,
        {
            'driver': 'fpga_region',
            'address': CARD,
            'contents_attribute': 'loaded',
        },
        '"contents_attribute": "loaded" cannot tell',
        {'contents_attribute': None},
    ),
    (
        _alone('10de', '1eb8', mdev_types=_MDEVS),
        {},
        {'driver': 'mdev'},
        'must have an "mdev_type"',
        {'mdev_type': 'nvidia-222'},
    ),
    (
        _alone('10de', '1eb8', mdev_types=_MDEVS),
        {},
        {
            'driver': 'mdev',
            'mdev_type': 'nvidia-222',
            'mdev_types': {'nvidia-222': 1},
        },
        'both "mdev_type" and "mdev_types"',
        {'mdev_type': None},
    ),
    (
        _alone('15b3', '1018', class_code='020000'),
        {},
        {'driver': 'nic'},
        'must have the "physical_network"',
        {'physical_network': 'physnet1'},
    ),
    (
        _carved('10de', '2235'),
        _VGPU,
        {'driver': 'nvidia_vfio', 'address': CARD},
        'must have "vgpu_types"',
        {'vgpu_types': {'558': 1}},
    ),
    (
        _carved('10de', '2235'),
        _VGPU,
        {
            'driver': 'nvidia_vfio',
            'address': CARD,
            'vgpu_types': {'999': 1},
        },
        'none of the line\'s "vgpu_types"',
        {'vgpu_types': {'558': 1}},
    ),
    (
        _alone('10de', '2235', mdev_types={'nvidia-1': 1}),
        {},
        {'driver': 'mdev', 'shapes': ['whole', 'mig:*']},
        '"shapes" have "mig:*"',
        {'shapes': ['whole']},
    ),
    (
        _alone('10de', '2235', max_virtual_functions=16),
        {},
        {'driver': 'nvidia_gpu', 'sriov_numvfs': 16},
        'remove "sriov_numvfs" from the line',
        {'sriov_numvfs': None},
    ),
]


# The line with which nova-compute does not start, a part of the error, the
# cure.
CASES_OF_THE_START: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({'driver': 'pci'}, '"vendor_id" or "address"', {'address': CARD}),
    (
        {'driver': 'pci', 'address': CARD, 'clean': 'command'},
        '"clean": "command" and "clean_command" need each other',
        {'clean_command': ['/usr/bin/wipe']},
    ),
    (
        {'driver': 'pci', 'address': CARD, 'links': {'numa': [[CARD, NEXT]]}},
        '"links" needs "pool": "link"',
        {'pool': 'link'},
    ),
    (
        {
            'driver': 'pci',
            'address': CARD,
            'module_ids': {CARD: 1, NEXT: 1},
        },
        'two devices of "module_ids"',
        {'module_ids': {CARD: 1, NEXT: 2}},
    ),
    (
        {'driver': 'nvidia_vfio', 'address': CARD, 'shapes': ['mig:3g']},
        'a list of different shapes',
        {'shapes': ['mig:3g.40gb']},
    ),
    (
        {'driver': 'nvidia_vfio', 'address': CARD, 'shapes': ['mig:*'] * 2},
        'a list of different shapes',
        {'shapes': ['mig:*']},
    ),
    (
        {
            'driver': 'nvidia_vfio',
            'address': CARD,
            'shapes': ['mig:*', 'mig:3g.40gb'],
        },
        '"shapes" has "mig:3g.40gb", which "mig:*" has, too',
        {'shapes': ['mig:*']},
    ),
    (
        {
            'driver': 'nvidia_vfio',
            'address': CARD,
            'shapes': ['mig:*'],
            'vgpu_types': {'558': 1},
        },
        '"shapes" does not go with "vgpu_types"',
        {'vgpu_types': None},
    ),
    (
        {'driver': 'pci', 'address': CARD, 'resource_class': 'FPGA'},
        'leave it out for the standard class of the "type"',
        {'resource_class': None, 'type': 'FPGA'},
    ),
    (
        {'driver': 'nvme', 'address': CARD, 'type': 'GPU'},
        'it has "type": "GPU", but the driver nvme',
        {'type': None},
    ),
    (
        {'driver': 'nvme', 'vendor_id': '10de', 'product_id': '2235'},
        'name another driver',
        {'driver': 'nvidia_gpu'},
    ),
    (
        {
            'driver': 'pci',
            'vendor_id': '10de',
            'product_id': '2235',
            'type': 'NIC',
        },
        'it has "type": "NIC", but in the catalogue',
        {'type': None},
    ),
]


# A part of a text that refuses no line -> the test that applies its cure.
ELSEWHERE = {
    '"mdev_type" may be one of ': (
        'unit.virt.publishing.test_host_offers.TestHints.test_another_type'
    ),
    'choose the "vgpu_types"': (
        'unit.virt.publishing.test_host_offers.TestHints.test_more_vgpus'
    ),
    '"sriov_numvfs": ': (
        'unit.virt.publishing.test_host_offers.TestHints.test_more_functions'
    ),
    'its "shapes" need ': (
        'unit.drivers.test_nvidia_shapes.TestShapes.test_too_few_functions'
    ),
    'or remove "mig:" from its "shapes"': (
        'unit.drivers.test_nvidia_shapes.TestUnknownCard.test_in_its_modes'
    ),
    'must be a JSON object': 'unit.mistakes.test_device_spec.TestLine',
    '"live_migratable"': 'unit.drivers.test_pci.TestCheckMigratable',
    'different block formats': 'unit.drivers.test_nvme_erasure.TestFormat',
    'larger pool': (
        'unit.model.profiles.test_group_division.TestPlaceable.test_too_many_parts'
    ),
    'of all NUMA nodes share': (
        'unit.model.units.test_nearness.TestNearness.test_the_cures_of_none'
    ),
    '"module_ids" of [nova_accel]': (
        'unit.model.links.test_linked_devices.TestJoined'
    ),
    'set "clean": ': (
        'unit.virt.fpga.programming.test_private_circuits.TestTheNextServer'
        '.test_finds_the_blank_one'
    ),
}


class TestCures(testtools.TestCase):
    def test_each_cure_helps(self) -> None:
        for functions, attributes, line, why, cure in CASES:
            before = discovered.refusals(self, functions, attributes, line)
            self.assertIn(why, before, line)
            after = discovered.refusals(
                self, functions, attributes, {**line, **cure}
            )
            self.assertEqual('', after, line)

    def test_each_cure_lets_nova_compute_start(self) -> None:
        for line, why, cure in CASES_OF_THE_START:
            self.assertIn(why, self.fault(line), line)
            self.assertEqual('', self.fault({**line, **cure}), line)

    def fault(self, line: dict[str, Any]) -> str:
        """Why nova-compute does not start with a line, nothing if it does."""
        text = discovered.text(line)
        CONF.set_override('device_spec', [text], 'nova_accel')
        self.addCleanup(CONF.clear_override, 'device_spec', 'nova_accel')
        try:
            configured_lines.read()
        except exceptions.InvalidDeviceSpec as error:
            return str(error).replace(text, '')
        return ''

    def test_each_text_has_a_case(self) -> None:
        told = '\n'.join(
            [discovered.refusals(self, *case[:3]) for case in CASES]
            + [self.fault(line) for line, _why, _cure in CASES_OF_THE_START]
        )
        advising = _advising()
        self.assertGreater(len(advising), 20)
        self.assertEqual([], [text for text in advising if text not in told])

    def test_the_tests_elsewhere_exist(self) -> None:
        for name in ELSEWHERE.values():
            module, _, attribute = name.partition('.Test')
            case, *methods = f'Test{attribute}'.split('.')
            found = getattr(importlib.import_module(module), case)
            for method in methods:
                self.assertTrue(hasattr(found, method), name)


def _advising() -> list[str]:
    """The parts of texts that quote a key of a line."""
    keys = [f'"{key}"' for key in device_spec_keys.SCHEMA['properties']]
    package = pathlib.Path(nova_accel.__file__).parent
    return [
        node.value
        for room in ('drivers', 'host', 'model', 'virt')
        for path in sorted((package / room).rglob('*.py'))
        for node in _texts(ast.parse(path.read_text()))
        if any(key in node.value for key in keys)
        and not any(part in node.value for part in ELSEWHERE)
    ]


def _texts(tree: ast.AST) -> list[Any]:
    """The strings of a module, without its docstrings."""
    said = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
    }
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in said
    ]
