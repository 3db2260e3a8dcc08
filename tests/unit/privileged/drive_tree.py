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

"""A sysfs with an NVMe drive in it, and its nodes."""

import shutil

import fixtures

from unit.privileged import tree

ADDRESS = tree.ADDRESS
SERIAL = 'S4C9NF0M500037'


class DriveTestCase(tree.TreeTestCase):
    """A drive ``nvme0`` with a namespace, which has data in it.

    :ivar devices: the directory of nodes
    """

    def setUp(self):
        super().setUp()
        self.devices = self.root / 'dev'
        self.devices.mkdir()
        for name, path in (('SYSFS', self.root), ('DEVICES', self.devices)):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.privileged.nvme_drive.{name}', path
                )
            )
        self._kept = 0
        self.plug(ADDRESS)
        self.namespace(b'secret')

    def plug(self, address, serial=SERIAL):
        """Have the kernel make a drive anew; it gets the same name."""
        directory = self.function.parent / address / 'nvme/nvme0'
        if directory.exists():
            # The number of a directory that is gone could be given again.
            self._kept += 1
            directory.rename(self.root / f'gone-{self._kept}')
        (directory / 'nvme0c0n1').mkdir(parents=True)
        (directory / 'nvme0c0n1/nsid').write_text('1\n')
        (directory / 'hwmon4').mkdir()
        (directory / 'serial').write_text(f'{serial}   \n')

    def unplug(self, address):
        shutil.rmtree(self.function.parent / address / 'nvme')

    def namespace(self, content):
        with (self.devices / 'nvme0n1').open('wb') as file:
            file.write(content)
            file.truncate(1 << 21)
