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

import fixtures
from lxml import etree
from nova import objects
from nova.virt.libvirt import config as vconfig
import testtools

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs
from nova_accel.virt import guest_topology

#: Two GPUs below a switch of node 0, a vGPU's card on node 1.
PATHS = {
    '0000:13:00.0': (
        'pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0',
        0,
    ),
    '0000:14:00.0': (
        'pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0',
        0,
    ),
    '0000:81:00.0': ('pci0000:80/0000:80:01.0', 1),
}

MDEV = 'b9d6d3b8-27a8-4bd9-96a1-f2a37a1f4c55'

GOLDEN = """\
<controller type="pci" index="1" model="pcie-expander-bus">
  <target busNr="128">
    <node>0</node>
  </target>
  <address type="pci" domain="0x0000" bus="0x00" slot="0x08" function="0x0"/>
</controller>
<controller type="pci" index="2" model="pcie-root-port">
  <address type="pci" domain="0x0000" bus="0x01" slot="0x00" function="0x0"/>
</controller>
<controller type="pci" index="3" model="pcie-expander-bus">
  <target busNr="130">
    <node>1</node>
  </target>
  <address type="pci" domain="0x0000" bus="0x00" slot="0x09" function="0x0"/>
</controller>
<controller type="pci" index="4" model="pcie-root-port">
  <address type="pci" domain="0x0000" bus="0x03" slot="0x00" function="0x0"/>
</controller>
<controller type="pci" index="5" model="pcie-switch-upstream-port">
  <address type="pci" domain="0x0000" bus="0x04" slot="0x00" function="0x0"/>
</controller>
<controller type="pci" index="6" model="pcie-switch-downstream-port">
  <address type="pci" domain="0x0000" bus="0x05" slot="0x00" function="0x0"/>
</controller>
<controller type="pci" index="7" model="pcie-switch-downstream-port">
  <address type="pci" domain="0x0000" bus="0x05" slot="0x01" function="0x0"/>
</controller>
<hostdev mode="subsystem" type="pci" managed="yes">
  <source>
    <address domain="0x0000" bus="0x13" slot="0x00" function="0x0"/>
  </source>
  <address type="pci" domain="0x0000" bus="0x06" slot="0x00" function="0x0"/>
</hostdev>
<hostdev mode="subsystem" type="pci" managed="yes">
  <source>
    <address domain="0x0000" bus="0x14" slot="0x00" function="0x0"/>
  </source>
  <address type="pci" domain="0x0000" bus="0x07" slot="0x00" function="0x0"/>
</hostdev>
<hostdev mode="subsystem" type="mdev" managed="no" model="vfio-pci">
  <source>
    <address uuid="b9d6d3b8-27a8-4bd9-96a1-f2a37a1f4c55"/>
  </source>
  <address type="pci" domain="0x0000" bus="0x02" slot="0x00" function="0x0"/>
</hostdev>
"""

WIDE = {'supports_address_space_passthrough': True}


def an_arq(address, group=0, mdev_type=None):
    return arq_types.Arq(
        'f4ad4b4e-4aeb-4a6a-8a2f-7f0f5a4e2b61',
        arq_types.State.BOUND,
        'p',
        group,
        {},
        '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d11',
        attach_handle.AttachHandle(
            MDEV, pci_address.PciAddress.parse(address), mdev_type
        ),
    )


ARQS = (
    an_arq('0000:13:00.0'),
    an_arq('0000:14:00.0', 1),
    an_arq('0000:81:00.0', 2, 'nvidia-11'),
)


def a_guest(cells=2, machine='pc-q35-9.0', virt_type='kvm'):
    guest = vconfig.LibvirtConfigGuest()
    guest.os_mach_type = machine
    guest.virt_type = virt_type
    guest.cpu = vconfig.LibvirtConfigGuestCPU()
    if cells:
        guest.cpu.numa = vconfig.LibvirtConfigGuestCPUNUMA()
        guest.numatune = vconfig.LibvirtConfigGuestNUMATune()
    for number in range(cells):
        cell = vconfig.LibvirtConfigGuestCPUNUMACell()
        cell.id = number
        guest.cpu.numa.cells.append(cell)
        memory = vconfig.LibvirtConfigGuestNUMATuneMemNode()
        # The guest's cells are not in the order of the host's nodes.
        memory.cellid, memory.nodeset = number, [cells - 1 - number]
        guest.numatune.memnodes.append(memory)
    return guest


def an_instance(flavor='host', image=None):
    return objects.Instance(
        uuid='0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f',
        system_metadata=(
            {} if image is None else {'image_nova_accel:pci_topology': image}
        ),
        flavor=objects.Flavor(
            extra_specs=(
                {} if flavor is None else {'nova_accel:pci_topology': flavor}
            )
        ),
    )


class TestAdd(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        for address, (above, node) in PATHS.items():
            where = pathlib.Path('devices', above, address)
            function = self.fake.root / where
            function.mkdir(parents=True)
            (function / 'numa_node').write_text(f'{node}\n')
            (self.fake.root / 'bus/pci/devices' / address).symlink_to(
                pathlib.Path('../../..', where)
            )
        self.log = self.useFixture(fixtures.FakeLogger())

    def add(self, guest, instance=None, arqs=ARQS, capabilities=WIDE):
        guest_topology.add(
            guest,
            instance or an_instance(),
            arqs,
            self.fake.sysfs,
            capabilities,
        )
        return [
            etree.tostring(
                device.format_dom(), pretty_print=True, encoding='unicode'
            )
            for device in guest.devices
        ]

    def assert_flat(self, xml, devices=3):
        self.assertEqual(devices, len(xml))
        for device in xml:
            self.assertIn('<hostdev', device)
            self.assertNotIn('<address type="pci"', device)

    def memory(self, address, size):
        self.fake.root.joinpath(
            'devices', PATHS[address][0], address, 'resource'
        ).write_text(f'0x0 {size - 1:#x} 0x200\n')

    def test_xml(self):
        self.assertEqual(GOLDEN, ''.join(self.add(a_guest())))

    def test_one_cell(self):
        """The other root complex is near to none of the guest's memory."""
        guest = a_guest(cells=1)
        guest.numatune.memnodes[0].nodeset = [1]
        targets = [
            device.split('<target')[1].split('<address')[0].split()
            for device in self.add(guest)
            if '<target' in device
        ]
        self.assertEqual(
            [
                ['busNr="128">', '<node>0</node>', '</target>'],
                ['busNr="130"/>'],
            ],
            targets,
        )

    def test_flat(self):
        self.assert_flat(self.add(a_guest(), an_instance('flat', 'host')))
        self.assert_flat(self.add(a_guest(), an_instance(None)))

    def test_by_image_or_option(self):
        wanted = self.add(a_guest())
        self.assertEqual(
            wanted, self.add(a_guest(), an_instance(None, 'host'))
        )
        conf.CONF.set_override('pci_topology', 'host', 'nova_accel')
        self.addCleanup(conf.CONF.clear_override, 'pci_topology', 'nova_accel')
        self.assertEqual(wanted, self.add(a_guest(), an_instance(None)))

    def test_no_such_tree(self):
        self.assertRaises(
            exceptions.InvalidRequest,
            self.add,
            a_guest(),
            an_instance(None, 'tree'),
        )

    def test_another_machine_type(self):
        for machine in ('pc-i440fx-9.0', 'virt', None):
            self.assert_flat(self.add(a_guest(machine=machine)))
        self.assertIn('hw_machine_type=q35', self.log.output)

    def test_without_cells(self):
        xml = ''.join(self.add(a_guest(cells=0)))
        self.assertNotIn('expander', xml)
        self.assertEqual(2, xml.count('downstream-port'))
        self.assertEqual(
            3, xml.count('<address type="pci"') - xml.count('<controller')
        )

    def test_the_order_of_the_arqs_is_no_matter(self):
        wanted = sorted(self.add(a_guest()))
        again = self.add(a_guest(), arqs=reversed(ARQS))
        self.assertEqual(wanted, sorted(again))

    def test_a_device_of_unknown_place_is_where_libvirt_puts_it(self):
        xml = self.add(a_guest(), arqs=(*ARQS, an_arq('0000:99:00.0', 3)))
        self.assertEqual(self.add(a_guest()), xml[:-1])
        self.assert_flat(xml[-1:], devices=1)
        self.assertIn('no PCI function 0000:99:00.0', self.log.output)

    def test_too_many_devices(self):
        arqs = [an_arq('0000:13:00.0', mdev_type='t') for _each in range(33)]
        self.assert_flat(self.add(a_guest(), arqs=arqs), devices=33)
        self.assertIn('33 devices are more than', self.log.output)

    def test_much_memory(self):
        self.memory('0000:13:00.0', 8 << 30)
        self.memory('0000:14:00.0', 8 << 30)
        guest = a_guest()
        self.add(guest)
        self.assertIsNone(guest.cpu.maxphysaddr)
        self.memory('0000:14:00.0', 128 << 30)
        self.add(guest)
        self.assertIn(
            '<maxphysaddr mode="passthrough"/>',
            guest.cpu.to_xml(pretty_print=False),
        )

    def test_much_memory_that_is_left_as_it_is(self):
        self.memory('0000:14:00.0', 128 << 30)
        for guest, instance, capabilities in (
            (a_guest(virt_type='qemu'), an_instance(), WIDE),
            (a_guest(), an_instance('flat'), WIDE),
            (a_guest(), an_instance(), {}),
        ):
            self.add(guest, instance, capabilities=capabilities)
            self.assertIsNone(guest.cpu.maxphysaddr)
        guest = a_guest()
        asked = vconfig.LibvirtConfigGuestCPUMaxPhysAddr()
        asked.mode, asked.bits = 'emulate', 42
        guest.cpu.maxphysaddr = asked
        self.add(guest)
        self.assertIs(asked, guest.cpu.maxphysaddr)
        guest.cpu = None
        self.add(guest)

    def test_memory_that_is_not_told(self):
        self.memory('0000:14:00.0', 128 << 30)
        self.fake.root.joinpath(
            'devices', PATHS['0000:13:00.0'][0], '0000:13:00.0', 'resource'
        ).write_text('much\n')
        guest = a_guest()
        self.add(guest)
        self.assertIsNotNone(guest.cpu.maxphysaddr)
        self.assertIn('0000:13:00.0 is not counted', self.log.output)
