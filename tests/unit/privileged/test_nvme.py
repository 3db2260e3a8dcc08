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

import os
import pathlib

import fixtures
from oslo_concurrency import processutils
import testtools

from nova_accel import privileged
from nova_accel.privileged import nvme

SCRIPT = '''#!/bin/sh
echo "$@" >>{log}
cat {output}
exit $(cat {status})
'''


class NvmeTestCase(testtools.TestCase):
    """Instead of nvme-cli there is a script, and no privileged process."""

    def setUp(self):
        super().setUp()
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.log, self.output, self.status = (
            directory / name for name in ('log', 'output', 'status'))
        self.output.write_bytes(b'')
        self.status.write_text('0')
        script = directory / 'nvme'
        script.write_text(SCRIPT.format(**vars(self)))
        script.chmod(0o755)
        self.useFixture(fixtures.EnvironmentVariable(
            'PATH', f'{directory}:{os.environ["PATH"]}'))
        self.addCleanup(privileged.nvme_pctxt.set_client_mode, True)
        privileged.nvme_pctxt.set_client_mode(False)

    def assert_called(self, *lines):
        self.assertEqual(
            list(lines),
            self.log.read_text().splitlines() if self.log.exists() else [])


class TestCommands(NvmeTestCase):

    def test_raw_pages(self):
        self.output.write_bytes(bytes(range(256)) * 16)
        self.assertEqual(self.output.read_bytes(), nvme.identify('nvme0'))
        self.assertEqual(b'\x00\x01\x02\x03', nvme.sanitize_log('nvme0')[:4])
        self.assert_called('id-ctrl /dev/nvme0 --raw-binary',
                           'sanitize-log /dev/nvme0 --raw-binary')

    def test_pages_that_are_cut_off(self):
        self.output.write_bytes(b'NVMe')
        error = self.assertRaises(ValueError, nvme.identify, 'nvme0')
        self.assertIn('4 bytes', str(error))

    def test_erasing(self):
        nvme.sanitize('nvme0', 2)
        nvme.format_namespace('nvme0', 1)
        self.assert_called(
            'sanitize /dev/nvme0 --sanact=2',
            'format /dev/nvme0 --namespace-id=1 --ses=1 --force')

    def test_refused(self):
        self.status.write_text('1')
        for method, *arguments in (
                (nvme.identify, 'nvme0'), (nvme.sanitize_log, 'nvme0'),
                (nvme.sanitize, 'nvme0', 2),
                (nvme.format_namespace, 'nvme0', 1)):
            self.assertRaises(processutils.ProcessExecutionError,
                              method, *arguments)


class TestArguments(NvmeTestCase):
    """Who calls may have been taken over."""

    def test_devices(self):
        for bad in ('', 'nvme', 'nvme0n1', '../sda', 'nvme0/../sda',
                    'nvme0\n', '-a'):
            for method, *more in (
                    (nvme.identify,), (nvme.sanitize_log,),
                    (nvme.sanitize, 2), (nvme.format_namespace, 1)):
                self.assertRaises(ValueError, method, bad, *more)
        for bad in ('nvme0', 'sda', 'nvme0n1/..', 'nvme0n1p1'):
            self.assertRaises(ValueError, nvme.is_blank, bad)
        self.assert_called()

    def test_what_does_not_erase(self):
        for action in (0, 1, 5):
            self.assertRaises(ValueError, nvme.sanitize, 'nvme0', action)
        for namespace in (0, -1, 0xffffffff):
            self.assertRaises(
                ValueError, nvme.format_namespace, 'nvme0', namespace)
        self.assert_called()


class TestIsBlankFile(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.file = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'nvme0n1')

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
