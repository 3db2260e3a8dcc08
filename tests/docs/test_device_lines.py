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

"""The lines of ``device_spec`` and the options that the manual shows.

Each line is read as nova-compute does, and finds an imitated device that it
could be about. ``unit.mistakes.test_cures`` does the same with the cures in
texts of the code.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import json
import pathlib
import re
from typing import Any

import fixtures
from nova.conf import CONF as NOVA_CONF
from oslo_config import cfg
import testtools
from unit.mistakes import discovered

from docs import pages
from nova_accel import conf
from nova_accel.conf import opts
from nova_accel.drivers import configured_lines
from nova_accel.drivers import loading
from nova_accel.host import nvidia_smi
from nova_accel.host import pci_function
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import device_spec_keys
from nova_accel.model.devices import subsystem
from nova_accel.testing import pci_functions

_SECTION = re.compile(r'\[([\w-]+)\]')

# The driver that a page teaches to write.
_OF_A_READER = ('acme',)

_OURS = 'nova_accel'

_FRAGMENT = re.compile(r'"(?P<key>[a-z_]+)": (?P<value>.+)')

# What a key needs beside itself.
_WITH: dict[str, dict[str, Any]] = {
    '"clean": "command"': {'clean_command': ['/usr/bin/wipe']},
    '"clean": "program"': {
        'clean_bitstream': '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'
    },
}

# Driver -> a device of it, if the line does not name one, and its class.
_DEVICES = {
    'ascend': ('19e5', 'd802', '120000'),
    'fpga_dfl': ('8086', '09c4', '120000'),
    'fpga_region': ('8086', '09c4', '120000'),
    'mdev': ('10de', '1eb8', '030200'),
    'nic': ('15b3', '1021', '020000'),
    'nvidia_gpu': ('10de', '2331', '030200'),
    'nvidia_vfio': ('10de', '2235', '030200'),
    'nvme': ('144d', 'a824', '010802'),
    'pci': ('8086', '37c9', '0b4000'),
    'qat': ('8086', '4940', '0b4000'),
}

_OF_DRIVERS = {
    'fpga_dfl': {
        'fpga_region__region0__dfl-fme.0__dfl-fme-region.1'
        '__fpga_region__region1__compat_id': ''
    },
    'fpga_region': {'fpga_region__region0__compat_id': ''},
}

_OF_PARTS = {
    'nvidia_vfio': {
        'nvidia__current_vgpu_type': '0',
        'nvidia__creatable_vgpu_types': '558 : NVIDIA A40-12Q',
    }
}


def _options() -> Iterator[tuple[str, str, str, str]]:
    """Place, section, name and value of each option in a block."""
    for page in pages.all_pages().values():
        for line, text in page.blocks('ini'):
            # Without one, a line continues a block before, or is of another
            # program.
            section = ''
            for each in text.splitlines():
                title = _SECTION.fullmatch(each.strip())
                name, equals, value = map(str.strip, each.partition('='))
                if title is not None:
                    section = title[1]
                elif equals and not each.startswith('#'):
                    yield f'{page.name}:{line}', section, name, value


def _lines() -> Iterator[tuple[str, str]]:
    for place, section, name, value in _options():
        if name == 'device_spec' and section in ('', _OURS):
            yield place, value


def _imitated(
    line: dict[str, Any],
) -> tuple[list[pci_function.PciFunction], dict[str, dict[str, str]]]:
    """A host with a device of a line: its functions and their attributes."""
    driver = line['driver']
    vendor_id, product_id, class_code = _DEVICES[driver]
    address = line.get('address', '0000:3d:00.0')
    card = pci_functions.function(
        address,
        line.get('vendor_id', vendor_id),
        line.get('product_id', product_id),
        class_code=class_code,
        mdev_types={line['mdev_type']: 1} if 'mdev_type' in line else {},
        subsystem=subsystem.of(vendor_id, line.get('subsystem_product_id')),
    )
    count = line.get('sriov_numvfs', sum(line.get('vgpu_types', {}).values()))
    if driver == 'nvidia_vfio' and 'shapes' in line:
        count = 16
    functions = [card]
    if count:
        functions = pci_functions.virtual_functions(
            card, count, card.product_id, class_code=class_code
        )
    attributes = {
        str(part.address): _OF_PARTS.get(driver, {}) for part in functions
    }
    return functions, attributes | {address: _OF_DRIVERS.get(driver, {})}


class DeviceLinesTest(testtools.TestCase):
    def test_nova_compute_starts_with_each(self) -> None:
        known = loading.names()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.drivers.loading.names',
                lambda: [*known, *_OF_A_READER],
            )
        )
        lines = list(_lines())
        self.assertGreater(len(lines), 20)
        for place, line in lines:
            conf.CONF.set_override('device_spec', [line], _OURS)
            self.addCleanup(conf.CONF.clear_override, 'device_spec', _OURS)
            [spec] = configured_lines.read()
            self.assertEqual(line, spec.text, place)

    def test_each_finds_its_device(self) -> None:
        for place, text in _lines():
            line = json.loads(text)
            self.tell_of_card(line.get('shapes', ()))
            if line['driver'] not in _OF_A_READER:
                functions, attributes = _imitated(line)
                self.assertEqual(
                    '',
                    discovered.refusals(self, functions, attributes, line),
                    f'{place}: {text}',
                )

    def tell_of_card(self, shapes: Iterable[str]) -> None:
        """Have NVIDIA's tool tell of a card that is not in MIG mode."""
        types = tuple(
            nvidia_smi.VgpuType('558', shape.partition(':')[2], 1)
            for shape in shapes
            if shape.startswith('vgpu:')
        )
        for name, told in (
            ('mig.MigCard.profiles', None),
            ('nvidia_smi.vgpu_types', types),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.host.{name}', lambda *_card, told=told: told
                )
            )

    def test_the_text_names_keys_with_values_that_they_may_have(self) -> None:
        tried = 0
        for page in pages.all_pages().values():
            for literal in page.literals():
                found = _FRAGMENT.fullmatch(literal)
                if (
                    found
                    and found['key'] in device_spec_keys.SCHEMA['properties']
                ):
                    tried += 1
                    line = {
                        'driver': 'pci',
                        'address': '0000:3d:00.0',
                        found['key']: json.loads(found['value']),
                        **_WITH.get(literal, {}),
                    }
                    device_spec.parse([json.dumps(line)], ['pci'])
        self.assertGreater(tried, 20)

    def test_each_key_is_described(self) -> None:
        """On the page of the lines, and in the help of the option."""
        [help_] = [
            each.help
            for _, ours in opts.list_opts()
            for each in ours
            if each.dest == 'device_spec'
        ]
        for text in (
            (pages.SOURCE / 'admin/devices.rst').read_text(),
            help_,
        ):
            self.assertEqual(
                [],
                [
                    key
                    for key in device_spec_keys.SCHEMA['properties']
                    if f'``{key}``' not in text
                ],
            )


class OptionsTest(testtools.TestCase):
    def test_each_is_read(self) -> None:
        """Ours with their values; Nova's own exist."""
        known = {
            (group, each.dest): each
            for group, ours in opts.list_opts()
            for each in ours
        }
        path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'nova.conf'
        )
        for place, section, name, value in _options():
            if section.startswith(_OURS):
                self.assertIn((section, name), known, place)
                options = cfg.ConfigOpts()
                options.register_opt(known[section, name], section)
                path.write_text(f'[{section}]\n{name} = {value}\n')
                options(['--config-file', str(path)], 'nova')
                self.assertIsNotNone(options[section][name], place)
            elif section in NOVA_CONF:
                self.assertIn(name, NOVA_CONF[section], place)
