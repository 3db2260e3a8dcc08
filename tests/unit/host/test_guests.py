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


import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.host import guests
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
        self.guests = guests.Guests(self.libvirt.host)

    def test_those_that_do_not_run_are_guests_too(self):
        self.assertEqual(frozenset(), self.guests.uuids())
        self.assertEqual(frozenset(), self.guests.mdevs())
        self.libvirt.connection.defineXML(DOMAIN)
        self.assertEqual({UUID}, self.guests.uuids())
        self.assertEqual({MDEV}, self.guests.mdevs())

    def refuse(self, name):
        def raise_error(*_args, **_kwargs):
            raise libvirt.libvirt_error('away')

        self.useFixture(fixtures.MonkeyPatch(
            f'nova.virt.libvirt.{name}', raise_error))

    def test_libvirt_does_not_answer(self):
        self.libvirt.connection.defineXML(DOMAIN)
        self.refuse('guest.Guest.get_config')
        self.assertEqual({UUID}, self.guests.uuids())
        self.assertRaises(exceptions.DeviceError, self.guests.mdevs)
        self.refuse('host.Host.list_guests')
        for ask in (self.guests.uuids, self.guests.mdevs):
            self.assertRaises(exceptions.DeviceError, ask)
