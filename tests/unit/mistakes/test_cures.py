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
import json
import pathlib
from typing import Any

import testtools

import nova_accel
from nova_accel.drivers import loading
from nova_accel.host import host_use
from nova_accel.host import libvirt_devices
from nova_accel.model import device_spec
from nova_accel.testing import fake_sysfs
from nova_accel.testing import pci_functions
from nova_accel.virt.holding import units_in_use
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import last_answers

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
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
        _alone('10de', '2235', max_virtual_functions=16),
        {},
        {'driver': 'nvidia_gpu', 'sriov_numvfs': 16},
        'remove "sriov_numvfs" from the line',
        {'sriov_numvfs': None},
    ),
]


# A part of a text that refuses no line -> the test that applies its cure.
ELSEWHERE = {
    '"live_migratable"': 'unit.drivers.test_pci.TestCheckMigratable',
    'different block formats': 'unit.drivers.test_nvme_erasure.TestFormat',
}


class _Claims:
    """As ``NovaClaims``, of a Nova that has nothing."""

    def on_functions(self, _addresses: Any, _host: Any) -> None:
        return None

    def on_device(self, _device: Any, _host: Any) -> None:
        return None


class _Host:
    """As ``NodeDevices``."""

    def __init__(self, functions: Any) -> None:
        self._functions = functions

    def look(self) -> libvirt_devices.HostDevices:
        return libvirt_devices.HostDevices(
            {each.address: each for each in self._functions}
        )


class TestCures(testtools.TestCase):
    def refusals(
        self, functions: Any, attributes: Any, line: dict[str, Any]
    ) -> str:
        """Why the line is refused, nothing if it is not."""
        fake = self.useFixture(fake_sysfs.FakeSysfs())
        for address, values in attributes.items():
            fake.set(address, **values)
        drivers = loading.load(None, fake.sysfs, NODE_UUID)
        text = json.dumps(
            {
                key: value
                for key, value in {'vendor_id': '*', **line}.items()
                if value is not None
            }
        )
        inventory = discovery.discover(
            _Host(functions),  # type: ignore[arg-type]
            drivers,
            device_spec.parse([text], drivers),
            _Claims(),  # type: ignore[arg-type]
            lambda _mdevs: units_in_use.Found({}),
            lambda: host_use.HostUse(fake.sysfs),
            last_answers.LastAnswers(),
        )
        return '\n'.join(each.replace(text, '') for each in inventory.refused)

    def test_each_cure_helps(self) -> None:
        for functions, attributes, line, why, cure in CASES:
            before = self.refusals(functions, attributes, line)
            self.assertIn(why, before, line)
            after = self.refusals(functions, attributes, {**line, **cure})
            self.assertEqual('', after, line)

    def test_each_text_has_a_case(self) -> None:
        told = '\n'.join(self.refusals(*case[:3]) for case in CASES)
        advising = _advising()
        self.assertGreater(len(advising), 10)
        self.assertEqual([], [text for text in advising if text not in told])


def _advising() -> list[str]:
    """The parts of texts that quote a key of a line."""
    keys = [f'"{key}"' for key in device_spec.SCHEMA['properties']]
    package = pathlib.Path(nova_accel.__file__).parent
    return [
        node.value
        for room in ('drivers', 'host')
        for path in sorted((package / room).glob('*.py'))
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
