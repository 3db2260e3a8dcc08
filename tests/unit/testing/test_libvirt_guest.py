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

import string

from lxml import etree
from nova.tests.fixtures import libvirt as fakelibvirt
import testtools

from nova_accel.testing import devices
from nova_accel.testing import hostdev
from nova_accel.testing import libvirt

UUID = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'
VF = '0000:82:00.1'

MDEV_XML = f'''
<device><parent>pci_0000_81_00_0</parent><capability type='mdev'>
<type id='nvidia-12'/><uuid>{UUID}</uuid></capability></device>'''

MDEV = f'''<hostdev mode='subsystem' type='mdev' model='vfio-pci'>
<source><address uuid='{UUID}'/></source></hostdev>'''
PCI = '''<hostdev mode='subsystem' type='pci' managed='yes'>
<source><address domain='0x0000' bus='0x82' slot='0x00' function='0x1'/>
</source></hostdev>'''

DOMAIN = string.Template('''
<domain type='qemu'>
  <name>$name</name><uuid>$uuid</uuid><memory>1024</memory>
  <vcpu>1</vcpu><os><type>hvm</type></os>
  <devices>$devices</devices>
</domain>''')

LIVE = fakelibvirt.VIR_DOMAIN_AFFECT_LIVE
CONFIG = fakelibvirt.VIR_DOMAIN_AFFECT_CONFIG


class TestGuestDevices(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.connection = self.useFixture(
            libvirt.Libvirt(devices.pci_info())
        ).connection
        self.mdev = self.connection.nodeDeviceCreateXML(MDEV_XML, 0)
        self.domain = self.define()

    def define(self, name='guest', hostdevs=MDEV + PCI):
        return self.connection.defineXML(
            DOMAIN.substitute(name=name, uuid=UUID, devices=hostdevs)
        )

    def assert_has(self, *expected):
        self.assertEqual(sorted(expected), self.found(0))

    def assert_defined(self, *expected):
        self.assertEqual(
            sorted(expected), self.found(fakelibvirt.VIR_DOMAIN_XML_INACTIVE)
        )

    def found(self, flags):
        return sorted(
            map(
                hostdev.identity,
                etree.fromstring(self.domain.XMLDesc(flags)).iterfind(
                    'devices/hostdev'
                ),
            )
        )

    def assert_refused(self, code, function, *args):
        error = self.assertRaises(fakelibvirt.libvirtError, function, *args)
        self.assertEqual(code, error.get_error_code())

    def test_what_is_detached_is_still_defined(self):
        self.domain.create()
        self.domain.detachDeviceFlags(PCI, LIVE)
        self.assert_has(UUID)
        self.assert_defined(UUID, VF)
        self.domain.detachDeviceFlags(MDEV, LIVE)
        self.assert_has()
        self.mdev.destroy()
        self.domain.destroy()
        self.assert_has(UUID, VF)

    def test_what_is_detached_from_the_definition_is_still_in_use(self):
        self.domain.create()
        self.domain.detachDeviceFlags(MDEV, CONFIG)
        self.assert_has(UUID, VF)
        self.assert_defined(VF)
        self.domain.detachDeviceFlags(PCI, LIVE | CONFIG)
        self.assert_defined()
        self.domain.shutdown()
        self.assert_has()

    def test_a_domain_that_does_not_run(self):
        self.domain.detachDeviceFlags(MDEV, 0)
        self.assert_has(VF)
        self.domain.attachDeviceFlags(MDEV, CONFIG)
        self.assert_has(UUID, VF)
        for change in (
            self.domain.attachDeviceFlags,
            self.domain.detachDeviceFlags,
        ):
            self.assert_refused(
                fakelibvirt.VIR_ERR_OPERATION_INVALID, change, MDEV, LIVE
            )

    def test_a_domain_that_runs_is_not_started(self):
        self.domain.createWithFlags(0)
        self.assert_refused(
            fakelibvirt.VIR_ERR_OPERATION_INVALID,
            self.domain.createWithFlags,
            0,
        )

    def test_attach(self):
        self.domain.create()
        self.domain.detachDeviceFlags(MDEV, LIVE)
        self.domain.attachDeviceFlags(MDEV, 0)
        self.assert_has(UUID, VF)
        self.assert_refused(
            fakelibvirt.VIR_ERR_OPERATION_INVALID,
            self.domain.attachDeviceFlags,
            MDEV,
            LIVE,
        )

    def test_a_device_that_is_not_there(self):
        self.domain.create()
        self.domain.detachDeviceFlags(MDEV, LIVE)
        missing = fakelibvirt.VIR_ERR_DEVICE_MISSING
        self.assert_refused(missing, self.domain.detachDeviceFlags, MDEV, LIVE)
        self.mdev.destroy()
        self.assert_refused(missing, self.domain.attachDeviceFlags, MDEV, LIVE)
        self.domain.destroy()
        self.assert_refused(missing, self.domain.create)
        self.assertFalse(self.domain.isActive())

    def test_a_device_that_another_guest_has(self):
        self.define('other', PCI).create()
        in_use = fakelibvirt.VIR_ERR_OPERATION_INVALID
        self.assert_refused(in_use, self.domain.create)
        self.domain.detachDeviceFlags(PCI, CONFIG)
        self.domain.create()
        self.assert_refused(in_use, self.domain.attachDeviceFlags, PCI, LIVE)

    def test_managed_save(self):
        self.domain.create()
        for xml in (PCI, MDEV):
            self.assert_refused(
                fakelibvirt.VIR_ERR_OPERATION_INVALID,
                self.domain.managedSave,
                0,
            )
            self.assertTrue(self.domain.isActive())
            self.domain.detachDeviceFlags(xml, LIVE)
        self.domain.managedSave(0)
        self.assertFalse(self.domain.isActive())
        self.assert_has(UUID, VF)
        self.domain = self.define()
        self.domain.create()
        self.assert_has()
        self.assertFalse(self.domain.hasManagedSaveImage(0))

    def test_a_running_guest_that_is_undefined(self):
        """Nova does it in a live snapshot, and defines it again."""
        self.domain.create()
        self.domain.undefine()
        self.assertTrue(self.domain.isActive())
        self.assertEqual(
            [self.domain],
            self.connection.listAllDomains(
                fakelibvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
            ),
        )
        self.assertIs(self.domain, self.define(hostdevs=PCI))
        self.assert_has(UUID, VF)
        self.assert_defined(VF)
        self.domain.undefine()
        self.domain.destroy()
        self.assertEqual(
            [],
            self.connection.listAllDomains(
                fakelibvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
                | fakelibvirt.VIR_CONNECT_LIST_DOMAINS_INACTIVE
            ),
        )

    def test_a_saved_guest_that_is_undefined(self):
        self.domain.detachDeviceFlags(PCI, CONFIG)
        self.domain.detachDeviceFlags(MDEV, CONFIG)
        self.domain.create()
        self.domain.managedSave(0)
        self.domain.undefineFlags(fakelibvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE)
        self.assertFalse(self.define().hasManagedSaveImage(0))

    def test_other_devices_are_novas(self):
        self.domain.create()
        disk = (
            "<disk type='file' device='disk'><driver name='qemu' "
            "type='raw'/><source file='/disk'/>"
            "<target dev='vdb' bus='virtio'/></disk>"
        )
        for change, count in (
            (self.domain.attachDeviceFlags, 1),
            (self.domain.detachDeviceFlags, 0),
        ):
            change(disk, LIVE)
            self.assertEqual(count, self.domain.XMLDesc(0).count('<disk '))
