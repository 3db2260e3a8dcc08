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

"""An NVMe drive in the place of ``nova_accel.privileged.nvme``."""

import struct

import fixtures
from oslo_concurrency import processutils

#: Bits of Identify Controller.
CRYPTO, BLOCKS, OVERWRITE = 1, 2, 4
SHARED, VIRTUAL = 2, 4
FORMAT, MANAGES = 2, 8
FORMATS_ALL, ERASES_ALL = 1, 2


SERIAL = 'S4C9NF0M500037'
NUMBER = 7


class FakeNvme(fixtures.Fixture):
    """A drive ``nvme3`` with two namespaces, which have data in them.

    Lists are tuples, as they come from a process of oslo.privsep.

    :ivar calls: what it was told
    :ivar statuses: of sanitizing, as the log has them one after the other
    :ivar progress: of sanitizing, likewise
    :ivar estimates: the seconds to overwrite, erase blocks and delete the key
    :ivar formats: of the namespaces, with their protection
    :ivar formats_after_sanitize: those that a sanitize changes
    :ivar forgets_formats: whether it formats in its own way
    :ivar keeps: namespaces that keep their data, whatever they are told
    :ivar controllers_listed: the subsystem's, None if it has no list
    :ivar others: of the drive's other controllers, address -> id
    :ivar asked: the addresses of the controllers that were asked
    :ivar serial: of the drive that is there, by what is asked as root
    """

    def __init__(
        self, fake_sysfs, address, sanicap=0, cmic=0, oacs=FORMAT, fna=0
    ):
        self.sysfs, self.address = fake_sysfs, address
        self.fields = {
            328: (sanicap, 4),
            76: (cmic, 1),
            256: (oacs, 2),
            524: (fna, 1),
            78: (NUMBER, 2),
        }
        self.calls = []
        self.statuses = [0]
        self.progress = [0xFFFF]
        self.estimates = (0xFFFFFFFF,) * 3
        self.action = 0
        self.formats = {1: (0, 0), 2: (0, 0)}
        self.formats_after_sanitize = {}
        self.forgets_formats = False
        self.keeps = set()
        self.data = {1, 2}
        self.allocated = [1, 2]
        self.controllers_listed = [3, NUMBER]
        self.serial = SERIAL
        self.others = {}
        self.asked = set()

    def _setUp(self):
        self.sysfs.set(
            self.address,
            nvme__nvme3__state='live',
            nvme__nvme3__model='X',
            nvme__nvme3__serial=SERIAL,
            nvme__nvme3__nvme3n1__nsid='1',
            nvme__nvme3__nvme3c3n2__nsid='2',
        )
        for name in (
            'identify',
            'sanitize_log',
            'sanitize',
            'format_namespace',
            'is_blank',
            'block_format',
            'allocated_namespaces',
            'controllers',
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.privileged.nvme.{name}', getattr(self, name)
                )
            )

    def connect(self, address, number=3, **attributes):
        """Have another controller of it on this host."""
        self.others[address] = number
        told = {'subsysnqn': 'nqn.x', 'model': 'X', 'serial': SERIAL}
        for name, text in (told | attributes).items():
            self.sysfs.set(
                self.address, **{f'nvme__nvme3__{name}': told[name]}
            )
            self.sysfs.set(address, **{f'nvme__nvme4__{name}': text})
        self.sysfs.set(
            address,
            nvme__nvme4__nvme4n1__nsid='1',
            nvme__nvme4__nvme3c4n2__nsid='2',
        )
        driver = self.sysfs.root / 'bus/pci/drivers/nvme'
        driver.mkdir(parents=True, exist_ok=True)
        (driver / 'bind').touch()
        for each in (self.address, address):
            link = driver / str(each)
            if not link.is_symlink():
                link.symlink_to(f'../../devices/{each}')

    def check(self, address, serial):
        assert address in (str(self.address), *self.others)
        self.asked.add(address)
        if serial != self.serial:
            raise ValueError(f'there is {self.serial}, not {serial}')

    def identify(self, address, serial):
        self.check(address, serial)
        data = bytearray(4096)
        for offset, (value, size) in self.fields.items():
            data[offset : offset + size] = value.to_bytes(size, 'little')
        if address in self.others:
            data[78:80] = self.others[address].to_bytes(2, 'little')
        return bytes(data)

    def allocated_namespaces(self, address, serial):
        self.check(address, serial)
        return tuple(self.allocated)

    def controllers(self, address, serial):
        self.check(address, serial)
        if self.controllers_listed is None:
            raise processutils.ProcessExecutionError(stderr='no list')
        return tuple(self.controllers_listed)

    def sanitize_log(self, address, serial):
        self.check(address, serial)
        status = self.statuses[0]
        if len(self.statuses) > 1:
            del self.statuses[0]
        progress = self.progress[0]
        if len(self.progress) > 1:
            del self.progress[0]
        # The bits above are how often it has overwritten.
        return (
            struct.pack('<HBBI', progress, 0b1000 | status, 1, self.action)
            + struct.pack('<3I', *self.estimates)
            + bytes(492)
        )

    def sanitize(self, address, serial, action):
        self.check(address, serial)
        self.calls.append(('sanitize', action))
        self.action = action
        self.statuses = [2, 2, 1] if self.statuses == [0] else self.statuses
        self.formats |= self.formats_after_sanitize

    def block_format(self, address, serial, namespace_id):
        self.check(address, serial)
        return self.formats[namespace_id]

    def format_namespace(self, address, serial, namespace_id, flbas, dps):
        self.check(address, serial)
        if namespace_id not in self.data:
            raise processutils.ProcessExecutionError(stderr='no such')
        self.calls.append(('format', namespace_id))
        self.data -= {namespace_id} - self.keeps
        formatted = (
            self.formats
            if self.fields[524][0] & FORMATS_ALL
            else (namespace_id,)
        )
        self.formats |= dict.fromkeys(
            formatted, (0, 0) if self.forgets_formats else (flbas, dps)
        )

    def is_blank(self, address, serial, namespace_id):
        self.check(address, serial)
        return namespace_id not in self.data
