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

import pathlib

import fixtures
import testtools

ADDRESS = '0000:3d:00.0'


class TreeTestCase(testtools.TestCase):
    """Has a PCI function in a sysfs of its own.

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
