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
import pathlib

import fixtures
import testtools

from nova_accel import conf

ADDRESS = '0000:3d:00.0'

CONF = conf.CONF


def configure(case, **options):
    """Set options of ``[nova_accel]`` until the test ends."""
    for name, value in options.items():
        CONF.set_override(name, value, 'nova_accel')
        case.addCleanup(CONF.clear_override, name, 'nova_accel')


def offer(case, *lines):
    """Have these lines of ``device_spec``, whose driver is ``pci``."""
    configure(
        case,
        device_spec=[json.dumps({'driver': 'pci', **line}) for line in lines],
    )


class TreeTestCase(testtools.TestCase):
    """Has a PCI function in a sysfs of its own, which it offers to guests.

    :ivar root: of that
    :ivar function: its directory
    :ivar links: those of all functions
    """

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path
        ).resolve()
        self.function = self.root / 'devices/pci0000:3c' / ADDRESS
        self.function.mkdir(parents=True)
        self.links = self.root / 'bus/pci/devices'
        self.links.mkdir(parents=True)
        (self.links / ADDRESS).symlink_to(
            f'../../../devices/pci0000:3c/{ADDRESS}'
        )
        self.identify(self.function)
        offer(self, {'address': ADDRESS})

    def identify(self, function):
        for name, value in (('vendor', '0x144d'), ('device', '0xa824')):
            (function / name).write_text(f'{value}\n')

    def add(self, address, driver=None, physfn=None):
        """Add another function, and return its directory."""
        function = self.function.parent / address
        function.mkdir()
        (self.links / address).symlink_to(
            f'../../../devices/pci0000:3c/{address}'
        )
        self.identify(function)
        for name, target in (
            ('driver', driver and f'../../../bus/pci/drivers/{driver}'),
            ('physfn', physfn and f'../{physfn}'),
        ):
            if target is not None:
                (function / name).symlink_to(target)
        return function
