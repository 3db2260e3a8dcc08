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

from nova_accel import exceptions
from nova_accel.drivers import nvme
from unit.drivers import base
from unit.drivers import fake_nvme


class NvmeTests:
    driver = nvme.NvmeDriver
    spec = {'vendor_id': '1b36'}
    takes_any = True

    def drive(self, address, **abilities):
        return self.useFixture(
            fake_nvme.FakeNvme(self.sysfs, address, **abilities)
        )

    def clean(self, **keys):
        (handle,) = self.handles(self.discover(**keys))
        self.a_driver().clean(handle)


class TestCard(NvmeTests, base.DriverTestCase):
    def functions(self):
        return [
            base.a_function(self.CARD, '1b36', '0010'),
            base.a_function(
                '0000:03:00.0', '1000', '0016', class_code='010400'
            ),
        ]

    def test_a_raid_controller(self):
        self.assert_refused('no NVMe controller', address='0000:03:00.0')

    def test_card(self):
        self.drive(self.CARD)
        device = self.discover()
        self.assertEqual(
            ('SSD', True, None, {'model': 'X', 'serial': fake_nvme.SERIAL}),
            (device.type, device.pooled, device.fault, device.attributes),
        )
        self.assertTrue(device.deployables[0].is_cleaned)

    def test_the_drive_that_is_there(self):
        drive = self.drive(self.CARD)
        (handle,) = self.handles(self.discover())
        self.assertEqual(fake_nvme.SERIAL, handle.identity)
        self.a_driver().plug(handle)
        # It was pulled out, and another one put in.
        drive.serial = 'S2'
        self.sysfs.set(self.CARD, nvme__nvme3__serial='S2')
        for method in (self.a_driver().plug, self.a_driver().clean):
            error = self.assertRaises(exceptions.DeviceError, method, handle)
            for text in ('S2', fake_nvme.SERIAL):
                self.assertIn(text, str(error))
        self.assertEqual([], drive.calls)
        # A guest has it: libvirt has taken it from its driver.
        directory = self.sysfs.root / 'devices/pci0000:00' / self.CARD
        (directory / 'nvme').rename(directory / 'gone')
        (silent,) = self.handles(self.discover())
        self.assertIsNone(silent.identity)
        self.a_driver().plug(handle)

    def test_the_drive_behind_the_controller(self):
        self.drive(self.CARD)
        self.sysfs.set(self.CARD, nvme__nvme3__subsysnqn='nqn.x')
        self.assertEqual(
            f'nqn.x X {fake_nvme.SERIAL}', self.discover().subsystem
        )

    def test_both_ports_are_here(self):
        drive = self.drive(
            self.CARD, sanicap=fake_nvme.BLOCKS, cmic=fake_nvme.SHARED
        )
        drive.connect('0000:3e:00.0')
        self.clean()
        self.assertEqual([('sanitize', 2)], drive.calls)

    def test_the_other_port_is_in_a_guest(self):
        drive = self.drive(
            self.CARD, sanicap=fake_nvme.BLOCKS, cmic=fake_nvme.SHARED
        )
        drive.connect('0000:3e:00.0')
        (self.sysfs.root / 'bus/pci/drivers/nvme/0000:3e:00.0').unlink()
        error = self.assertRaises(
            exceptions.DeviceError, self.clean, clean='sanitize'
        )
        self.assertIn('does not have', str(error))
        self.assertEqual([], drive.calls)

    def test_the_host_uses_it_by_the_other_port(self):
        drive = self.drive(
            self.CARD, sanicap=fake_nvme.BLOCKS, cmic=fake_nvme.SHARED
        )
        drive.connect('0000:3e:00.0')
        self.mount('0000:3e:00.0', 'nvme/nvme4/nvme4n1')
        error = self.assertRaises(exceptions.DeviceError, self.clean)
        self.assertIn('0000:3e:00.0', str(error))
        self.assertIn('mounted at /srv', str(error))
        self.assertEqual([], drive.calls)

    def mount(self, address, path):
        disk = self.sysfs.root / 'devices/pci0000:00' / address / path
        (disk / 'dev').write_text('259:0')
        members = self.sysfs.root / 'class/block'
        members.mkdir(parents=True)
        (members / disk.name).symlink_to(disk)
        mounts = self.sysfs.proc / 'self/mountinfo'
        mounts.parent.mkdir(parents=True)
        mounts.write_text(f'22 1 259:0 / /srv rw - xfs /dev/{disk.name} rw\n')

    def test_a_dead_one(self):
        self.sysfs.set(self.CARD, nvme__nvme3__state='dead')
        self.assertIn('nvme3 is dead', self.discover().fault)

    def test_sanitized_by_default(self):
        drive = self.drive(self.CARD, sanicap=fake_nvme.BLOCKS)
        self.clean()
        self.assertEqual([('sanitize', 2)], drive.calls)

    def test_formatted_if_it_cannot_be_sanitized(self):
        for abilities in (
            {},
            {'sanicap': fake_nvme.BLOCKS, 'cmic': fake_nvme.SHARED},
        ):
            drive = self.drive(self.CARD, **abilities)
            self.clean()
            self.assertEqual([('format', 2), ('format', 1)], drive.calls)

    def test_as_the_line_says(self):
        drive = self.drive(self.CARD, sanicap=fake_nvme.BLOCKS)
        self.clean(clean='format')
        self.clean(clean='sanitize')
        self.assertEqual(
            [('format', 2), ('format', 1), ('sanitize', 2)], drive.calls
        )

    def test_the_hosts_own_is_neither_erased_nor_given_away(self):
        drive = self.drive(self.CARD, sanicap=fake_nvme.BLOCKS)
        self.mount(self.CARD, 'nvme/nvme3/nvme3n1')
        (handle,) = self.handles(self.discover())
        for method in (self.a_driver().plug, self.a_driver().clean):
            error = self.assertRaises(exceptions.DeviceError, method, handle)
            self.assertIn('mounted at /srv', str(error))
        self.assertEqual([], drive.calls)

    def test_with_the_operators_command(self):
        drive = self.drive(self.CARD, sanicap=fake_nvme.BLOCKS)
        self.assertRaises(
            exceptions.DeviceError,
            self.clean,
            clean='command',
            clean_command=['/bin/false'],
        )
        self.clean(clean='command', clean_command=['/bin/true'])
        self.assertEqual([], drive.calls)


class TestVirtualFunction(NvmeTests, base.DriverTestCase):
    address = base.the_address(1)

    def functions(self):
        self.sysfs.set(self.address)
        path = self.sysfs.root / 'bus/pci/devices' / self.address / 'physfn'
        path.symlink_to(f'../{self.CARD}')
        return base.sriov(self.CARD, '1b36', '0010', '0010', 2)

    def test_a_card_with_virtual_functions(self):
        self.assert_refused('2 virtual functions', address=self.CARD)

    def test_it_shares_its_drive(self):
        """Its namespaces are its own."""
        self.drive(self.address)
        self.assertIsNone(self.discover().subsystem)

    def test_never_sanitized(self):
        """It would erase what the other functions have."""
        drive = self.drive(self.address, sanicap=fake_nvme.BLOCKS, cmic=0)
        self.assertRaises(exceptions.DeviceError, self.clean, clean='sanitize')
        self.assertEqual([], drive.calls)
        self.clean()
        self.assertEqual([('format', 2), ('format', 1)], drive.calls)
