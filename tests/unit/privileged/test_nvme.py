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

import contextlib
import errno
import os
import pathlib
import struct

import fixtures
from oslo_concurrency import processutils
import testtools

from nova_accel import privileged
from nova_accel.privileged import nvme
from nova_accel.privileged import vendor_tool
from unit.privileged import drive_tree

DRIVE = (drive_tree.ADDRESS, drive_tree.SERIAL)

EVERY = (
    (nvme.identify,),
    (nvme.allocated_namespaces,),
    (nvme.controllers,),
    (nvme.sanitize_log,),
    (nvme.sanitize, 2),
    (nvme.block_format, 1),
    (nvme.format_namespace, 1, 0, 0),
)

SCRIPT = '''#!/bin/sh
echo "$@" >>{log}
cat {output}
exit $(cat {status})
'''


class NvmeTestCase(drive_tree.DriveTestCase):
    """Instead of nvme-cli there is a script, and no privileged process."""

    def setUp(self):
        super().setUp()
        self.log, self.output, self.status = (
            self.root / name for name in ('log', 'output', 'status')
        )
        self.output.write_bytes(b'')
        self.status.write_text('0')
        script = self.root / 'nvme'
        script.write_text(SCRIPT.format(**vars(self)))
        script.chmod(0o755)
        self.useFixture(
            fixtures.EnvironmentVariable(
                'PATH', f'{self.root}:{os.environ["PATH"]}'
            )
        )
        self.addCleanup(privileged.nvme_pctxt.set_client_mode, True)
        privileged.nvme_pctxt.set_client_mode(False)

    def assert_called(self, *lines):
        called = self.log.read_text() if self.log.exists() else ''
        self.assertEqual(
            list(lines), called.replace(f'{self.devices}/', '').splitlines()
        )


class TestCommands(NvmeTestCase):
    def test_raw_pages(self):
        self.output.write_bytes(bytes(range(256)) * 16)
        self.assertEqual(self.output.read_bytes(), nvme.identify(*DRIVE))
        self.assertEqual(b'\x00\x01\x02\x03', nvme.sanitize_log(*DRIVE)[:4])
        self.assert_called(
            'id-ctrl nvme0 --raw-binary', 'sanitize-log nvme0 --raw-binary'
        )

    def test_lists(self):
        self.output.write_bytes(struct.pack('<3I', 1, 7, 0) + bytes(4096))
        self.assertEqual([1, 7], nvme.allocated_namespaces(*DRIVE))
        self.output.write_bytes(struct.pack('<4H', 2, 0, 5, 9) + bytes(4096))
        self.assertEqual([0, 5], nvme.controllers(*DRIVE))
        self.assert_called(
            *(
                f'admin-passthru nvme0 --opcode=0x06 --cdw10={structure} '
                '--data-len=4096 --read --raw-binary'
                for structure in ('0x10', '0x13')
            )
        )

    def test_pages_that_are_cut_off(self):
        self.output.write_bytes(b'NVMe')
        error = self.assertRaises(ValueError, nvme.identify, *DRIVE)
        self.assertIn('4 bytes', str(error))

    def test_erasing(self):
        nvme.sanitize(*DRIVE, 2)
        nvme.format_namespace(*DRIVE, 1, 0, 0)
        nvme.format_namespace(*DRIVE, 1, 0x31, 0x9)
        nvme.format_namespace(*DRIVE, 1, 0x7F, 0xF)
        self.assert_called(
            'sanitize nvme0 --sanact=2',
            *(
                f'format nvme0 --namespace-id=1 {layout} --ses=1 --force'
                for layout in (
                    '--lbaf=0 --ms=0 --pi=0 --pil=0',
                    '--lbaf=17 --ms=1 --pi=1 --pil=1',
                    '--lbaf=63 --ms=1 --pi=7 --pil=1',
                )
            ),
        )

    def test_block_format(self):
        data = bytearray(4096)
        data[26], data[29] = 0xB1, 0xF9
        self.output.write_bytes(data)
        self.assertEqual((0x31, 0x9), nvme.block_format(*DRIVE, 1))
        self.assert_called('id-ns nvme0 --namespace-id=1 --raw-binary')

    def test_is_blank(self):
        self.assertFalse(nvme.is_blank(*DRIVE, 1))
        self.namespace(b'')
        self.assertTrue(nvme.is_blank(*DRIVE, 1))
        self.assertRaises(ValueError, nvme.is_blank, *DRIVE, 2)

    def test_refused(self):
        self.status.write_text('1')
        for method, *arguments in EVERY:
            self.assertRaises(
                processutils.ProcessExecutionError, method, *DRIVE, *arguments
            )

    def test_it_hangs(self):
        self.useFixture(fixtures.MonkeyPatch(f'{nvme.__name__}._COMMAND_S', 1))
        (self.root / 'nvme').write_text('#!/bin/sh\nsleep 60\n')
        error = self.assertRaises(
            processutils.ProcessExecutionError, nvme.sanitize, *DRIVE, 2
        )
        self.assertIn(error.exit_code, vendor_tool.TIMED_OUT)


class TestAnotherDrive(NvmeTestCase):
    """Nothing is said of a drive that was not meant."""

    def test_its_address_and_serial_number(self):
        for bad in (
            ('0000:3d:00.1', drive_tree.SERIAL),
            ('../0000:3d:00.0', drive_tree.SERIAL),
            ('nvme0', drive_tree.SERIAL),
            ('', ''),
            (drive_tree.ADDRESS, ''),
            (drive_tree.ADDRESS, 'S2'),
        ):
            for method, *arguments in (*EVERY, (nvme.is_blank, 1)):
                self.assertRaises(ValueError, method, *bad, *arguments)
        self.assert_called()

    def test_it_comes_meanwhile(self):
        """By the time that a command ends its name is another drive's."""
        self.output.write_bytes(bytes(4096))
        for method, *arguments in EVERY:
            self.plug('0000:3d:00.0')
            with self.hot_plugged():
                error = self.assertRaises(
                    ValueError, method, *DRIVE, *arguments
                )
            self.assertIn('taken away', str(error))

    @contextlib.contextmanager
    def hot_plugged(self):
        """nvme-cli takes so long that the drive is another one then.

        It looks the same: it is the first one, put in again.
        """
        run = vendor_tool.run

        def swapped(*arguments):
            answer = run(*arguments)
            self.plug('0000:3d:00.0')
            return answer

        with fixtures.MonkeyPatch(
            'nova_accel.privileged.vendor_tool.run', swapped
        ):
            yield


class TestUnused(NvmeTestCase):
    def test_what_the_host_uses_is_not_erased(self):
        """The kernel answers so for what is mounted, and for its whole."""
        os_open = os.open

        def busy(path, flags, *more):
            if flags & os.O_EXCL and str(path).startswith(str(self.devices)):
                raise OSError(errno.EBUSY, 'Device or resource busy')
            return os_open(path, flags, *more)

        self.useFixture(fixtures.MonkeyPatch('os.open', busy))
        for method, *more in (
            (nvme.sanitize, 2),
            (nvme.format_namespace, 1, 0, 0),
        ):
            error = self.assertRaises(ValueError, method, *DRIVE, *more)
            self.assertIn('the host itself uses', str(error))
        self.assert_called()

    def test_nothing_stays_open(self):
        before = os.listdir('/proc/self/fd')
        nvme.format_namespace(*DRIVE, 1, 0, 0)
        self.assertEqual(len(before), len(os.listdir('/proc/self/fd')))


class TestArguments(NvmeTestCase):
    """Who calls may have been taken over."""

    def test_what_does_not_erase(self):
        for action in (0, 1, 5):
            self.assertRaises(ValueError, nvme.sanitize, *DRIVE, action)
        for namespace in (0, -1, 0xFFFFFFFF):
            self.assertRaises(
                ValueError, nvme.format_namespace, *DRIVE, namespace, 0, 0
            )
        for layout in ((0x80, 0), (-1, 0), (0, 0x10), (0, -1)):
            self.assertRaises(
                ValueError, nvme.format_namespace, *DRIVE, 1, *layout
            )
        self.assert_called()


class TestIsBlankFile(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.file = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'nvme0n1'
        )

    def is_blank(self, begin, size, end=b''):
        with self.file.open('wb') as file:
            file.write(begin)
            file.truncate(size)
            file.seek(size - len(end))
            file.write(end)
        return nvme.is_blank_file(str(self.file))

    def test_zeroes(self):
        self.assertTrue(self.is_blank(b'', 1 << 30))
        self.assertTrue(self.is_blank(b'', 512))

    def test_ones(self):
        self.assertTrue(self.is_blank(b'\xff' * 4096, 4096))

    def test_data(self):
        self.assertFalse(self.is_blank(b'secret', 1 << 30))
        self.assertFalse(self.is_blank(b'', 1 << 30, b'secret'))
        self.assertFalse(self.is_blank(b'\xff', 4096))
        self.assertFalse(self.is_blank(b'\x07' * 4096, 4096))

    def test_nothing_to_read(self):
        """As of a namespace that the kernel could not read."""
        self.assertFalse(self.is_blank(b'', 0))
