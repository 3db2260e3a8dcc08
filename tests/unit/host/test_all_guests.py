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


import re

import fixtures
from lxml import etree
from nova import exception
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt.libvirt import config as vconfig
import testtools

from nova_accel import exceptions
from nova_accel.host import all_guests
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.testing import devices
from nova_accel.testing import libvirt

UUID = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'
MDEV = '3d1d35b1-4b0b-4b56-8a3a-d6f1f5d6a7c2'
DOMAIN = f'''
<domain type='qemu'>
  <name>guest</name><uuid>{UUID}</uuid><memory>1024</memory>
  <vcpu>1</vcpu><os><type>hvm</type></os>
  <devices>
    <hostdev mode='subsystem' type='mdev' model='vfio-pci'>
      <source><address uuid='{MDEV}'/></source>
    </hostdev>
    <hostdev mode='subsystem' type='pci' managed='yes'>
      <source>
        <address domain='0x0000' bus='0x82' slot='0x00' function='0x1'/>
      </source>
    </hostdev>
  </devices>
</domain>'''


class TestGuests(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.libvirt = self.useFixture(libvirt.Libvirt(devices.pci_info()))
        self.guests = all_guests.AllGuests(self.libvirt.host)

    def test_those_that_do_not_run_are_guests_too(self):
        self.assertEqual(frozenset(), self.guests.uuids())
        self.libvirt.connection.defineXML(DOMAIN)
        self.assertEqual({UUID}, self.guests.uuids())

    def test_those_that_run(self):
        # It has no devices, which it would have to find.
        domain = self.libvirt.connection.defineXML(
            re.sub(r'<hostdev.*</hostdev>', '', DOMAIN, flags=re.DOTALL)
        )
        self.assertEqual(frozenset(), self.guests.running())
        domain.createWithFlags(0)
        self.assertEqual({UUID}, self.guests.running())

    def test_libvirt_is_away(self):
        def fail(_host):
            raise exception.HypervisorUnavailable()

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.virt.libvirt.host.Host.get_connection', fail
            )
        )
        for ask in (
            self.guests.uuids,
            self.guests.running,
            self.guests.devices,
        ):
            fault = self.assertRaises(exceptions.DeviceError, ask)
            self.assertIn('libvirt does not list its guests', str(fault))

    def refuse(self, name):
        def raise_error(*_args, **_kwargs):
            raise libvirt.libvirt_error('away')

        self.useFixture(
            fixtures.MonkeyPatch(f'nova.virt.libvirt.{name}', raise_error)
        )

    def test_libvirt_does_not_answer(self):
        self.libvirt.connection.defineXML(DOMAIN)
        self.refuse('host.Host.list_guests')
        for ask in (
            self.guests.uuids,
            self.guests.devices,
            self.guests.look,
        ):
            self.assertRaises(exceptions.DeviceError, ask)

    def test_devices(self):
        self.assertEqual({}, self.guests.devices())
        self.libvirt.connection.defineXML(DOMAIN)
        self.assertEqual({UUID: {MDEV, '0000:82:00.1'}}, self.guests.devices())

    def test_check_unused(self):
        address = pci_address.PciAddress(0, 0x82, 0, 1)
        beside = pci_address.PciAddress(0, 0x82, 0, 2)
        used = (
            attach_handle.AttachHandle('1', address),
            attach_handle.AttachHandle(
                '2', beside, further_functions=(address,)
            ),
            attach_handle.AttachHandle(MDEV, beside, 'nvidia-35'),
        )
        unused = (
            attach_handle.AttachHandle('3', beside),
            attach_handle.AttachHandle('4', address, 'nvidia-35'),
        )
        for handle in used + unused:
            self.guests.check_unused(handle)
        self.libvirt.connection.defineXML(DOMAIN)
        for handle in unused:
            self.guests.check_unused(handle)
        for handle in used:
            error = self.assertRaises(
                exceptions.DeviceError, self.guests.check_unused, handle
            )
            self.assertEqual(
                f'{handle.address} is in guest {UUID}', str(error)
            )

    def test_use_any(self):
        """A guest that Nova makes anew has nothing while it is stopped."""
        handles = [
            attach_handle.AttachHandle(
                f'{function}', pci_address.PciAddress(0, 0x82, 0, function)
            )
            for function in (1, 2)
        ]
        self.assertFalse(self.guests.use_any(handles, 'another'))
        domain = self.libvirt.connection.defineXML(DOMAIN)
        self.assertTrue(self.guests.use_any(handles, 'another'))
        self.assertFalse(self.guests.use_any(handles[1:], 'another'))
        self.assertFalse(self.guests.use_any([], 'another'))
        self.assertFalse(self.guests.use_any(handles, UUID))
        domain._state = fakelibvirt.VIR_DOMAIN_RUNNING
        self.assertTrue(self.guests.use_any(handles, UUID))

    def test_devices_are_not_described(self):
        self.libvirt.connection.defineXML(DOMAIN)
        self.refuse('guest.Guest.get_xml_desc')
        self.assertRaises(exceptions.DeviceError, self.guests.devices)

    def test_a_guest_that_goes_meanwhile(self):
        def gone(*_args, **_kwargs):
            raise libvirt.libvirt_error(
                'no domain', fakelibvirt.VIR_ERR_NO_DOMAIN
            )

        self.libvirt.connection.defineXML(DOMAIN)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.virt.libvirt.guest.Guest.get_xml_desc', gone
            )
        )
        self.assertEqual({}, self.guests.devices())

    def describe(self, devices):
        self.libvirt.connection.defineXML(DOMAIN)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.virt.libvirt.guest.Guest.get_xml_desc',
                lambda _guest: (
                    f'<domain><devices>{devices}</devices></domain>'
                ),
            )
        )
        return self.guests.devices()[UUID]

    def test_whatever_a_function_is_to_the_guest(self):
        address = "domain='{}' bus='{}' slot='{}' function='{}'"
        self.assertEqual(
            {'0000:3d:00.1', '0000:3e:1f.0', '10000:01:00.0'},
            self.describe(
                "<interface type='hostdev'><source><address type='pci' "
                + address.format('0x0000', '0x3d', '0x00', '0x1')
                + "/></source></interface><disk type='nvme' device='disk'>"
                "<source type='pci' namespace='1'><address "
                + address.format('0x0000', '0x3e', '0x1f', '0x0')
                + "/></source></disk><hostdev type='pci'><source><address "
                + address.format('0x10000', '0x01', '0x00', '0x0')
                + "/></source><address type='pci' "
                + address.format('0x0000', '0x00', '0x05', '0x0')
                + "/></hostdev>"
            ),
        )

    def test_what_is_no_function(self):
        self.assertEqual(
            frozenset(),
            self.describe(
                "<hostdev type='usb'><source><address bus='1' "
                "device='2'/></source></hostdev><hostdev "
                "type='scsi'><source><adapter name='scsi_host0'/><address "
                "bus='0' target='0' unit='0'/></source></hostdev><disk "
                "type='file'><source file='x'/></disk>"
            ),
        )

    def test_look(self):
        self.assertEqual((), self.guests.look())
        self.libvirt.connection.defineXML(DOMAIN)
        self.assertEqual(
            (
                all_guests.Guest(
                    UUID, False, False, frozenset({MDEV, '0000:82:00.1'})
                ),
            ),
            self.guests.look(),
        )

    def test_one_that_runs(self):
        self.libvirt.connection.defineXML(
            re.sub(r'<hostdev.*</hostdev>', '', DOMAIN, flags=re.DOTALL)
        ).createWithFlags(0)
        self.assertEqual(
            (all_guests.Guest(UUID, False, True, frozenset()),),
            self.guests.look(),
        )

    def test_guests_of_novas(self):
        """By the mark that Nova's own code makes."""
        instance = vconfig.LibvirtConfigGuestMetaNovaInstance()
        instance.package = '34.0.0'
        mark = etree.tostring(instance.format_dom(), encoding='unicode')
        self.libvirt.connection.defineXML(
            DOMAIN.replace('<name>', f'<metadata>{mark}</metadata><name>')
        )
        self.assertEqual(
            [(UUID, True)],
            [(guest.uuid, guest.is_novas) for guest in self.guests.look()],
        )
