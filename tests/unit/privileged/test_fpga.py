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

import fcntl
import mmap
import os
import pathlib
import stat
import struct

import fixtures
from oslo_concurrency import processutils
import testtools

from nova_accel.privileged import fpga
from nova_accel.privileged import vendor_tool
from nova_accel.testing import driver_conformance
from nova_accel.testing import fake_sysfs
from unit.drivers import fake_fpga
from unit.privileged import tree

CARD = '0000:3d:00.0'

#: The other cards, each bound to the driver whose tool programs it.
DFL, USER, MANAGEMENT = '0000:3e:00.0', '0000:3f:00.1', '0000:3f:00.0'


class TestFpga(testtools.TestCase):
    """Who calls may have been taken over."""

    def setUp(self):
        super().setUp()
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        self.sysfs.set(
            CARD,
            fpga_manager__fpga0__firmware='',
            fpga_manager__fpga0__state='unknown',
        )
        self.tools = self.useFixture(fake_fpga.Tools(self.sysfs.root))
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for address, driver in (
            (CARD, 'acme-fpga'),
            (DFL, 'dfl-pci'),
            (USER, 'xocl'),
            (MANAGEMENT, 'xclmgmt'),
        ):
            self.sysfs.set(address)
            self.sysfs.identify(address, '10ee', '5004')
            self.sysfs.bind(address, driver)
        tree.offer(self, {'vendor_id': '10ee'})
        tree.configure(self, bitstream_cache_directory=str(self.directory))
        self.bitstream = self.cached(b'LABF first')

    def cached(self, content):
        return driver_conformance.cached(self.directory, content)

    def assert_nothing_done(self, errors, address, *arguments):
        for method, card, *more in (
            (fpga.load_firmware, CARD, 'fpga0'),
            (fpga.fpgasupdate, DFL),
            (fpga.xbutil, USER),
            (fpga.xbmgmt, MANAGEMENT),
        ):
            self.assertRaises(
                errors,
                method,
                card if address is None else address,
                *more,
                *arguments,
            )
        self.assertEqual([], self.tools.log)
        self.assertEqual([], list(self.tools.firmware.iterdir()))
        self.assertEqual([], list(fpga.RUN.iterdir()))

    def test_each_by_its_driver_alone(self):
        """Each is taken to the check of its file, and no other."""
        for method, its in (
            (fpga.fpgasupdate, DFL),
            (fpga.xbutil, USER),
            (fpga.xbmgmt, MANAGEMENT),
        ):
            for card in (CARD, DFL, USER, MANAGEMENT):
                error = self.assertRaises(
                    ValueError, method, card, str(self.bitstream), 60
                )
                self.assertIn(
                    'the file is no' if card == its else 'its driver is',
                    str(error),
                )
        self.assertEqual([], list(fpga.RUN.iterdir()))

    def test_cards_that_no_line_offers(self):
        tree.offer(self, {'vendor_id': '8086'})
        self.assert_nothing_done(ValueError, None, str(self.bitstream), 60)

    def test_another_path_of_firmware(self):
        other = self.directory / 'other'
        self.tools.firmware.rename(other)
        self.tools.firmware.symlink_to(other)
        parameter = self.sysfs.root / 'module/firmware_class/parameters/path'
        parameter.parent.mkdir(parents=True)
        parameter.write_text(f'{other}\n')
        fpga.load_firmware(CARD, 'fpga0', str(self.bitstream), 60)
        self.assertEqual('600', self.tools.mode)
        self.assertEqual([], list(other.iterdir()))

    def test_a_file_that_a_killed_process_left(self):
        left = self.tools.firmware / f'nova_accel-{CARD}-fpga0.bin'
        left.write_text('left')
        fpga.load_firmware(CARD, 'fpga0', str(self.bitstream), 60)
        self.assertFalse(left.exists())

    def test_a_host_without_firmware(self):
        self.tools.firmware.rmdir()
        fpga.load_firmware(CARD, 'fpga0', str(self.bitstream), 60)
        self.assertEqual('600', self.tools.mode)

    def test_nobody_else_may_write(self):
        """The daemon of privsep has no umask."""
        self.addCleanup(os.umask, os.umask(0))
        self.tools.firmware.rmdir()
        fpga.load_firmware(CARD, 'fpga0', str(self.bitstream), 60)
        lock = fpga.RUN / f'nova_accel-{CARD}.lock'
        self.assertEqual(
            [0o755, 0o600],
            [
                stat.S_IMODE(path.stat().st_mode)
                for path in (self.tools.firmware, lock)
            ],
        )

    def test_a_file_of_the_next_process(self):
        """What a killed nova-compute left ends while the next one begins."""
        firmware = self.tools.firmware / f'nova_accel-{CARD}-fpga0.bin'
        run = fpga._run

        def then_another(*arguments, **options):
            run(*arguments, **options)
            firmware.unlink()
            firmware.write_text('the next')

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.fpga._run', then_another
            )
        )
        fpga.load_firmware(CARD, 'fpga0', str(self.bitstream), 60)
        self.assertEqual('the next', firmware.read_text())

    def test_a_fault_names_its_file(self):
        """Also when it has been through privsep, which copies the args."""
        missing = str(self.directory / (64 * '0'))
        for method, *more in (
            (fpga.load_firmware, CARD, 'fpga0'),
            (fpga.fpgasupdate, DFL),
            (fpga.xbutil, USER),
        ):
            error = self.assertRaises(
                FileNotFoundError, method, *more, missing, 60
            )
            self.assertIn(missing, error.args[1])

    def fail_within(self, seconds, kind=processutils.ProcessExecutionError):
        """The fault of a load that may take so long."""
        return self.assertRaises(
            kind,
            fpga.load_firmware,
            CARD,
            'fpga0',
            str(self.bitstream),
            seconds,
        )

    def test_one_at_a_time(self):
        """What a killed process has left is waited for, but not for ever."""
        lock = os.open(
            fpga.RUN / f'nova_accel-{CARD}.lock', os.O_CREAT | os.O_RDWR
        )
        self.addCleanup(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        error = self.fail_within(0.1)
        self.assertEqual(vendor_tool.BUSY, error.exit_code)
        self.assertEqual([], self.tools.log)
        fcntl.flock(lock, fcntl.LOCK_UN)
        fpga.load_firmware(CARD, 'fpga0', str(self.bitstream), 60)

    def test_addresses(self):
        for bad in (
            '',
            '3d:00.0/..',
            '../0000:3d:00.0',
            '0000:3d:00.0\n',
            '-a',
        ):
            self.assert_nothing_done(ValueError, bad, str(self.bitstream), 60)

    def test_managers(self):
        for bad in ('', 'fpga', '../fpga0', 'fpga0/..', 'fpga0\n'):
            self.assertRaises(
                ValueError,
                fpga.load_firmware,
                CARD,
                bad,
                str(self.bitstream),
                60,
            )
        self.assertRaises(
            FileNotFoundError,
            fpga.load_firmware,
            CARD,
            'fpga1',
            str(self.bitstream),
            60,
        )
        self.assertEqual([], self.tools.log)

    def test_a_link_out_of_sysfs(self):
        attribute = (
            self.sysfs.root
            / 'devices/pci0000:00'
            / CARD
            / 'fpga_manager/fpga0/firmware'
        )
        attribute.unlink()
        attribute.symlink_to(self.bitstream)
        self.fail_within(60, ValueError)
        self.assertEqual(b'LABF first', self.bitstream.read_bytes())

    def test_time_limits(self):
        for bad in (0, -1, 10**9, float('nan')):
            self.fail_within(bad, ValueError)

    def test_images_of_other_kinds(self):
        signed = fake_fpga.gbs(CARD, signed=True)
        for image in (
            b'',
            signed.replace(b'\x02', b'\x01', 1),
            signed[:1024] + bytes(64),
        ):
            for method, card in ((fpga.fpgasupdate, DFL), (fpga.xbutil, USER)):
                self.assertRaises(
                    ValueError, method, card, str(self.cached(image)), 60
                )
        self.assertEqual([], self.tools.log)

    def test_whose_memory_is_read(self):
        """BAR 0 of a function that is offered, while no guest has it."""
        bar = self.sysfs.root / 'bus/pci/devices' / DFL / 'resource0'
        header = struct.pack('<3Q', 1 << 60, 2, 1)
        bar.write_bytes(header.ljust(mmap.PAGESIZE, b'-'))
        self.assertEqual(
            '00000000-0000-0001-0000-000000000002', fpga.afu_id(DFL)
        )
        self.sysfs.bind(DFL, 'vfio-pci')
        error = self.assertRaises(ValueError, fpga.afu_id, DFL)
        self.assertIn('a guest may have it', str(error))
        self.sysfs.bind(DFL, 'dfl-pci')
        tree.offer(self, {'vendor_id': '8086'})
        error = self.assertRaises(ValueError, fpga.afu_id, DFL)
        self.assertIn('device_spec', str(error))

    def test_a_tool_that_hangs_lets_the_next_one_in(self):
        self.tools.fail('hang')
        error = self.fail_within(0.1)
        self.assertIn(error.exit_code, vendor_tool.TIMED_OUT)
        fpga.load_firmware(CARD, 'fpga0', str(self.bitstream), 60)
