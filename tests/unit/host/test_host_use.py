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

import testtools

from nova_accel import exceptions
from nova_accel.host import host_use
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs

ADDRESS = pci_address.PciAddress.parse('0000:3d:00.0')
OTHER = pci_address.PciAddress.parse('0000:3e:00.0')
ROUTES = (
    'Iface\tDestination\tGateway\tFlags\nlabnic0\t0000A8C0\t00000000\t0001\n'
)


class HostUseTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        self.fake.set(ADDRESS)
        self.fake.set(OTHER)

    def proc(self, path, text):
        file = self.fake.proc / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def member(self, class_, path):
        """An object of a class, by its path below the function."""
        directory = self.fake.root / 'devices/pci0000:00' / str(ADDRESS) / path
        directory.mkdir(parents=True, exist_ok=True)
        self.link(
            self.fake.root / 'class' / class_ / directory.name, directory
        )
        return directory

    def link(self, path, target):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def bind(self, driver):
        self.link(
            self.fake.root / 'bus/pci/devices' / str(ADDRESS) / 'driver',
            pathlib.Path('/drivers', driver),
        )

    def reason(self):
        """It is the function's alone."""
        use = host_use.HostUse(self.fake.sysfs)
        self.assertIsNone(use.reason(OTHER))
        return use.reason(ADDRESS)

    def assert_used(self, *texts):
        reason = self.reason() or ''
        for text in (str(ADDRESS), *texts):
            self.assertIn(text, reason)


class TestDisplay(HostUseTestCase):
    def test_the_display_of_the_boot(self):
        self.fake.set(ADDRESS, boot_vga='0')
        self.assertIsNone(self.reason())
        self.fake.set(ADDRESS, boot_vga='1')
        self.assert_used('booted with')

    def test_given_up_by_the_host(self):
        """As by vfio-pci.ids, on hosts whose only display is for guests."""
        self.fake.set(ADDRESS, boot_vga='1')
        self.bind('vfio-pci')
        self.assertIsNone(self.reason())

    def test_framebuffer(self):
        self.member('graphics', 'graphics/fbcon')
        self.assertIsNone(self.reason())
        self.member('graphics', 'simple-framebuffer.0/graphics/fb0')
        self.assert_used('fb0')


class TestFirmware(HostUseTestCase):
    """Frame buffers that stay when vfio-pci has the GPU."""

    def assert_frame_buffer(self):
        for driver in ('nvidia', 'vfio-pci', 'nvgrace_gpu_vfio_pci'):
            self.fake.bind(ADDRESS, driver)
            self.assert_used('initcall_blacklist=sysfb_init')

    def test_memory(self):
        for name in ('BOOTFB', 'efifb', 'vesafb', 'simplefb', 'simpledrm'):
            self.proc(
                'iomem',
                '00000000-00000000 : System RAM\n'
                '00000000-00000000 : PCI Bus 0000:3c\n'
                f'  00000000-00000000 : {OTHER}\n'
                f'  00000000-00000000 : {ADDRESS}\n'
                f'    00000000-00000000 : {name}\n'
                '  00000000-00000000 : 0000:3f:00.0\n',
            )
            self.assert_frame_buffer()
        for name in ('vfio-pci', 'nvidia', 'BOOTFB2', ''):
            self.proc('iomem', f'0-0 : {ADDRESS}\n  0-0 : {name}\nx\n')
            self.assertIsNone(self.reason())

    def test_a_card_below_the_function(self):
        for number, name in enumerate(
            ('simple-framebuffer.0', 'efi-framebuffer.0')
        ):
            card = self.member('drm', f'{name}/drm/card{number}')
            self.assert_frame_buffer()
            (self.fake.root / 'class/drm' / card.name).unlink()
        self.fake.bind(ADDRESS, 'vfio-pci')
        self.member('drm', 'drm/card5')
        self.assertIsNone(self.reason())

    def test_a_card_of_the_display_of_the_boot(self):
        """Older kernels do not tell to which function it belongs."""
        self.fake.set(ADDRESS, boot_vga='1')
        self.fake.set(OTHER, boot_vga='0')
        platform = self.fake.root / 'devices/platform'
        (platform / 'serial8250/drm/card0').mkdir(parents=True)
        (platform / 'simple-framebuffer.0/drm').mkdir(parents=True)
        self.fake.bind(ADDRESS, 'vfio-pci')
        self.assertIsNone(self.reason())
        (platform / 'simple-framebuffer.0/drm/card0').mkdir()
        self.assert_used('initcall_blacklist=sysfb_init')


class TestDisk(HostUseTestCase):
    def setUp(self):
        super().setUp()
        self.disk = self.member('block', 'nvme/nvme3/nvme3n1')
        self.part = self.member('block', 'nvme/nvme3/nvme3n1/nvme3n1p2')
        (self.disk / 'dev').write_text('259:0\n')
        (self.part / 'dev').write_text('259:2\n')

    def assert_disk_used(self, *texts):
        self.assert_used(*texts)
        error = self.assertRaises(
            exceptions.DeviceError,
            host_use.HostUse(self.fake.sysfs).check_disks,
            [OTHER, ADDRESS],
        )
        for text in texts:
            self.assertIn(text, str(error))

    def test_free(self):
        self.proc('self/mountinfo', '22 1 8:1 / / rw - ext4 /dev/sda1 rw\n')
        self.proc(
            'swaps',
            'Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n',
        )
        for directory in (self.disk, self.part):
            (directory / 'holders').mkdir()
        self.assertIsNone(self.reason())
        host_use.HostUse(self.fake.sysfs).check_disks([ADDRESS, OTHER])

    def test_mounted(self):
        line = '22 1 259:{} / {} rw,noatime shared:1 - xfs /dev/x rw\n'
        for number, name, process in (
            (0, 'nvme3n1', 'self'),
            (2, 'nvme3n1p2', '1'),
        ):
            self.proc(f'{process}/mountinfo', line.format(number, '/srv'))
            self.assert_disk_used(f'{name} is mounted at /srv')
            self.proc(f'{process}/mountinfo', line.format(7, '/srv'))

    def test_held(self):
        """By LVM, MD, device mapper and bcache."""
        for directory in (self.disk, self.part):
            (directory / 'holders/dm-3').mkdir(parents=True)
            self.assert_disk_used(f'{directory.name} is a part of dm-3')
            (directory / 'holders/dm-3').rmdir()
        self.assertIsNone(self.reason())

    def test_swap(self):
        self.proc(
            'swaps',
            'Filename Type Size Used Priority\n'
            '/dev/nvme3n1p2 partition 1 0 -2\n',
        )
        self.assert_disk_used('nvme3n1p2 is swap')

    def test_btrfs(self):
        self.link(
            self.fake.root / 'fs/btrfs/a-uuid/devices/nvme3n1p2', self.part
        )
        self.assert_disk_used('nvme3n1p2', 'btrfs')

    def test_several_paths(self):
        """What is mounted is below the subsystem, not below a controller."""
        subsystem = (
            self.fake.root / 'devices/virtual/nvme-subsystem/nvme-subsys3'
        )
        head = subsystem / 'nvme3n2'
        part = head / 'nvme3n2p1'
        part.mkdir(parents=True)
        (part / 'dev').write_text('259:9\n')
        for directory in (head, part):
            self.link(
                self.fake.root / 'class/block' / directory.name, directory
            )
        self.proc('self/mountinfo', '22 1 259:9 / /srv rw - xfs /dev/x rw\n')
        controller = (
            self.fake.root / 'devices/pci0000:00' / str(ADDRESS) / 'nvme/nvme3'
        )
        self.link(subsystem / 'nvme3', controller)
        # It has a path to another disk of the subsystem.
        (controller / 'nvme3c3n7').mkdir()
        self.assertIsNone(self.reason())
        (controller / 'nvme3c3n2').mkdir()
        self.assert_disk_used('nvme3n2p1 is mounted')

    def test_it_cannot_be_read(self):
        (self.disk / 'holders').mkdir()
        (self.disk / 'dev').unlink()
        (self.disk / 'dev').mkdir()
        error = self.assertRaises(exceptions.DeviceError, self.reason)
        self.assertIn('cannot find out', str(error))

    def test_it_is_malformed(self):
        self.proc('self/mountinfo', 'nonsense\n')
        error = self.assertRaises(exceptions.DeviceError, self.reason)
        self.assertIn('cannot find out', str(error))


class TestInterface(HostUseTestCase):
    def setUp(self):
        super().setUp()
        self.interface = self.member('net', 'net/labnic0')
        (self.interface / 'flags').write_text('0x1003\n')

    def test_up_alone(self):
        """With the address that it gives to itself."""
        self.proc('net/route', 'Iface\tDestination\n')
        self.proc(
            'net/if_inet6',
            'fe80 03 40 20 80 labnic0\n2001 04 40 00 80 other\n',
        )
        self.assertIsNone(self.reason())

    def test_a_route_or_an_address(self):
        for path, text in (
            ('net/route', ROUTES),
            ('net/if_inet6', '2001 03 40 00 80 labnic0\n'),
        ):
            self.proc(path, text)
            self.assert_used('labnic0', 'address')
            (self.fake.proc / path).unlink()

    def test_a_part_of_something(self):
        upper = self.fake.root / 'devices/virtual/net/bond0'
        upper.mkdir(parents=True)
        for name, text in (
            ('master', 'a part of bond0'),
            ('upper_bond0.7', 'below bond0.7'),
        ):
            self.link(self.interface / name, upper)
            self.assert_used(text)
            (self.interface / name).unlink()

    def test_down(self):
        self.proc('net/route', ROUTES)
        (self.interface / 'flags').write_text('0x1002\n')
        self.assertIsNone(self.reason())

    def test_bound_to_vfio(self):
        self.proc('net/route', ROUTES)
        self.bind('mlx5_vfio_pci')
        self.assertIsNone(self.reason())
