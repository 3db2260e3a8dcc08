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

"""``tools/record-host`` makes recordings that name no machine and no one."""

import contextlib
import errno
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import sys
import tarfile

import fixtures
import testtools

from nova_accel.model import pci_address
from recorded import recordings

_SCRIPT = pathlib.Path(__file__).parents[2] / 'tools/record-host'

_GPU = pci_address.PciAddress.parse('0000:08:00.0')

_SERIAL = '1654823001729'
_MAC = 'ac:1f:6b:3c:4d:5e'
_UUID = '4c4c4544-0047-3510-8052-b4c04f4d3132'
_HOST = 'compute-rack7-03'
_PERSON = 'jane.doe@operator.example'
_NQN = 'nqn.1994-11.com.samsung:nvme:PM1733:S4YNNE0N8017'
_GUID = '9803:9b03:0042:1a2c'
_AFU = 'd8424dc4a4a3c413f89e433683f9040b'

_PLANTED = (_SERIAL, _MAC, _UUID, _HOST, _PERSON, _NQN, _GUID, '10.76.1.23')

_NODE_DEVICE = f"""<device>
  <name>pci_0000_08_00_0</name>
  <path>/sys/devices/pci0000:00/0000:08:00.0</path>
  <parent>computer</parent>
  <driver><name>nvidia</name></driver>
  <capability type='pci'>
    <class>0x030200</class>
    <domain>0</domain><bus>8</bus><slot>0</slot><function>0</function>
    <product id='0x25b6'/><vendor id='0x10de'/>
    <capability type='vpd'><fields access='readonly'>
      <serial_number>{_SERIAL}</serial_number></fields></capability>
  </capability>
</device>"""


def _loaded():
    loader = importlib.machinery.SourceFileLoader('record_host', str(_SCRIPT))
    spec = importlib.util.spec_from_loader('record_host', loader)
    module = importlib.util.module_from_spec(spec)
    is_written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = is_written
    return module


class TestRecordHost(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.archive = self.root / 'recorded.tar.xz'
        self.gpu = self.root / 'sys/devices/pci0000:00' / str(_GPU)
        self.write('sys/devices/virtual/dmi/id/product_serial', _SERIAL)
        self.write('proc/sys/kernel/hostname', _HOST)
        for name, text in (
            ('vendor', '0x10de'),
            ('device', '0x25b6'),
            ('class', '0x030200'),
            ('serial', _SERIAL),
            ('vpd', _SERIAL),
            ('power_state', 'D0'),
            ('fpga_region/region0/compat_id', _AFU),
            (f'net/enx{_MAC.replace(":", "")}/address', _MAC),
            (f'net/enx{_MAC.replace(":", "")}/flags', '0x1003'),
            ('infiniband/mlx5_0/node_guid', _GUID),
            ('infiniband/mlx5_0/board_id', f'{_HOST} {_GUID} {_MAC.upper()}'),
            ('nvme/nvme0/model', f'{_NQN} {_SERIAL} {_PERSON} 10.76.1.23'),
            (f'{_UUID}/mdev_type/name', f'{_UUID} on {_HOST}.example.org'),
        ):
            self.write(self.gpu / name, text)
        (self.gpu / 'config').write_bytes(b'abcd' * 64)
        os.mkfifo(self.gpu / 'state')
        with (self.gpu / 'description').open('wb') as endless:
            endless.truncate(1 << 30)
        self.write('sys/bus/pci/drivers/nvidia/module', '')
        (self.gpu / 'driver').symlink_to('../../../bus/pci/drivers/nvidia')
        functions = self.root / 'sys/bus/pci/devices'
        functions.mkdir(parents=True)
        (functions / str(_GPU)).symlink_to(
            f'../../../devices/pci0000:00/{_GPU}'
        )
        self.program(
            'virsh',
            'case "$*" in\n'
            '*--cap\\ pci) echo pci_0000_08_00_0;;\n'
            f'*dumpxml*) cat <<END\n{_NODE_DEVICE}\nEND\n;;\nesac',
        )
        self.program(
            'nvidia-smi',
            f'echo "<log><serial>{_SERIAL}</serial><uuid>GPU-{_UUID}</uuid>'
            f'<processes>{_PERSON}/python3</processes></log>"',
        )
        self.program('lspci', 'exit 1')

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{text}\n')

    def program(self, name, script):
        path = self.root / 'bin' / name
        self.write(path, f'#!/bin/sh\n{script}')
        path.chmod(0o755)
        self.useFixture(
            fixtures.EnvironmentVariable(
                'PATH', f'{path.parent}:{os.defpath}:/bin'
            )
        )

    def record(self):
        self.useFixture(
            fixtures.MonkeyPatch(
                'sys.argv',
                ['', '--root', str(self.root), str(self.archive)],
            )
        )
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            _loaded().main()
        return told.getvalue()

    def contents(self):
        with tarfile.open(self.archive) as tar:
            return {
                member.name: (
                    tar.extractfile(member).read().decode()
                    if member.isreg()
                    else member.linkname
                )
                for member in tar
            }

    def test_names_no_machine_and_nobody(self):
        self.record()
        everything = str(self.contents()).lower()
        for planted in _PLANTED:
            for form in (planted, planted.replace(':', '')):
                self.assertNotIn(form.lower(), everything)
        self.assertNotIn('python3', everything)

    def test_equal_ones_stay_equal(self):
        self.record()
        contents = self.contents()
        below = f'sys/devices/pci0000:00/{_GPU}'
        [mdev] = [path for path in contents if path.endswith('mdev_type/name')]
        uuid = mdev.split('/')[4]
        self.assertEqual(f'{uuid} on host1.example.org\n', contents[mdev])
        self.assertIn(f'GPU-{uuid}<', contents['text/nvidia-smi-q-x.xml'])
        # The type of a region is that of all its like.
        self.assertEqual(
            f'{_AFU}\n', contents[f'{below}/fpga_region/region0/compat_id']
        )

    def test_the_suite_reads_it(self):
        self.record()
        host = recordings.unpacked(self.archive)
        function = host.devices.functions[_GPU]
        self.assertEqual(
            ('10de', '25b6', 'nvidia'),
            (function.vendor_id, function.product_id, function.driver),
        )
        self.assertEqual('nvidia', host.sysfs.link(_GPU, 'driver'))
        self.assertEqual('D0', host.sysfs.read(_GPU, 'power_state'))
        self.assertIsNone(host.sysfs.read(_GPU, 'vpd'))

    def test_is_bounded(self):
        self.record()
        contents = self.contents()
        below = f'sys/devices/pci0000:00/{_GPU}'
        self.assertEqual(1 << 16, len(contents[f'{below}/description']))
        self.assertNotIn(f'{below}/state', contents)
        self.assertEqual(64, len(contents[f'{below}/config']))

    def test_tells_what_is_missing(self):
        real = os.open

        def failing(path, *arguments, **more):
            if str(path).endswith('power_state'):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(path, *arguments, **more)

        self.useFixture(fixtures.MonkeyPatch('os.open', failing))
        told = self.record()
        self.assertIn(
            f'Input/output error: sys/devices/pci0000:00/{_GPU}/power_state',
            told,
        )
        self.assertIn('exit status 1: lspci', told)
        self.assertIn(f'sys/devices/pci0000:00/{_GPU}/vendor', self.contents())
