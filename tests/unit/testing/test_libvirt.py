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


from lxml import etree
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt.libvirt import driver as libvirt_driver
from nova.virt.libvirt import guest as libvirt_guest
import testtools

from nova_accel.testing import devices
from nova_accel.testing import libvirt

UUID = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'
NAME = 'mdev_0d0a4b1e_52f5_5f8e_9d3c_6a1b2c3d4e5f_0000_81_00_0'
GPU = 'pci_0000_81_00_0'

MDEV = '''
<device><parent>{parent}</parent><capability type='mdev'>
<type id='{type}'/><uuid>{uuid}</uuid></capability></device>'''

DOMAIN = f'''
<domain type='qemu'>
  <name>guest</name><uuid>{UUID}</uuid><memory>1024</memory>
  <vcpu>1</vcpu><os><type>hvm</type></os>
  <devices>
    <hostdev mode='subsystem' type='mdev' model='vfio-pci' managed='no'>
      <source><address uuid='{UUID}'/></source>
    </hostdev>
  </devices>
</domain>'''


class TestMediatedDevices(testtools.TestCase):
    def setUp(self):
        super().setUp()
        fake = self.useFixture(libvirt.Libvirt(devices.pci_info()))
        self.connection = fake.connection
        self.host = fake.host

    def create(self, uuid=UUID, mdev_type='nvidia-12', parent=GPU):
        return self.connection.nodeDeviceCreateXML(
            MDEV.format(uuid=uuid, type=mdev_type, parent=parent), 0
        )

    def available(self, mdev_type='nvidia-12'):
        xml = self.connection.nodeDeviceLookupByName(GPU).XMLDesc(0)
        return int(
            etree.fromstring(xml).findtext(
                f".//type[@id='{mdev_type}']/availableInstances"
            )
        )

    def assert_error(self, code, function, *args, **kwargs):
        error = self.assertRaises(
            fakelibvirt.libvirtError, function, *args, **kwargs
        )
        self.assertEqual(code, error.get_error_code())

    def test_create_and_destroy(self):
        device = self.create()
        self.assertEqual(NAME, device.name())
        self.assertEqual(GPU, device.parent())
        self.assertEqual([NAME], self.host.list_mediated_devices())
        self.assertEqual(
            (7, 16), (self.available(), self.available('nvidia-11'))
        )
        self.assertEqual(0, device.destroy())
        self.assertEqual([], self.host.list_mediated_devices())
        self.assertEqual(8, self.available())

    def test_unknown(self):
        no_device = fakelibvirt.VIR_ERR_NO_NODE_DEVICE
        self.assert_error(
            no_device, self.connection.nodeDeviceLookupByName, NAME
        )
        self.assert_error(no_device, self.create, parent='pci_0000_ff_00_0')
        device = self.create()
        device.destroy()
        self.assert_error(no_device, device.destroy)

    def test_refused(self):
        refused = fakelibvirt.VIR_ERR_INTERNAL_ERROR
        self.assert_error(refused, self.create, mdev_type='nvidia-13')
        self.assert_error(refused, self.create, parent='pci_0000_82_00_0')
        self.create()
        self.assert_error(refused, self.create)
        self.assert_error(refused, self.create, mdev_type='nvidia-11')
        self.assertEqual(
            (7, 16), (self.available(), self.available('nvidia-11'))
        )

    def test_full(self):
        for number in range(8):
            self.create(f'{number}{UUID[1:]}')
        self.assert_error(
            fakelibvirt.VIR_ERR_INTERNAL_ERROR, self.create, f'8{UUID[1:]}'
        )
        self.assertEqual(8, len(self.host.list_mediated_devices()))

    def test_in_use(self):
        device = self.create()
        domain = self.connection.defineXML(DOMAIN)
        domain.create()
        self.assert_error(fakelibvirt.VIR_ERR_INTERNAL_ERROR, device.destroy)
        domain.destroy()
        device.destroy()

    def test_nova_reads_the_guests_device(self):
        guest = libvirt_guest.Guest(self.connection.defineXML(DOMAIN))
        (device,) = guest.get_config().devices
        self.assertEqual((UUID, 'no'), (device.uuid, device.managed))

    def test_nova_makes_one(self):
        uuid = libvirt_driver.LibvirtDriver(None)._create_mdev(
            GPU, 'nvidia-12'
        )
        (name,) = self.host.list_mediated_devices()
        self.assertIn(uuid.replace('-', '_'), name)
        self.assertEqual(7, self.available())
