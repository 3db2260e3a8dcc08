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


"""A host with a card of each shape, and Nova configured on it."""

import json
import pathlib

import fixtures
from nova import exception
from nova.tests.fixtures import libvirt as fakelibvirt
from oslo_config import fixture as config_fixture
import testtools
import yaml

from nova_accel import conf
from nova_accel.host import libvirt_devices
from nova_accel.host import nova_vgpus
from nova_accel.model import pci_address
from nova_accel.testing import devices
from nova_accel.testing import fake_fpga
from nova_accel.testing import libvirt

NODE, NODE_UUID = 'host1', 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'

#: Each makes nvidia-11 and nvidia-12 itself.
GPU0, GPU1 = '0000:81:00.0', '0000:82:00.0'
#: Two virtual functions.
FPGA = '0000:83:00.0'
#: Eight, 0000:84:00.1 to 0000:84:01.0.
QAT = '0000:84:00.0'
#: Two, with one serial number: the card's.
NIC = '0000:85:00.0'
#: Two devices without virtual functions, one unit of a simple driver.
CHIP, CHIP_1 = '0000:86:00.0', '0000:86:00.1'
#: Alone.
NVME = '0000:87:00.0'
#: Two virtual functions, which make nvidia-557; it makes nothing itself.
SRIOV_GPU = '0000:ae:00.0'

_MDEV_TYPES = """
    <capability type='mdev_types'><type id='nvidia-557'>
    <name>NVIDIA A40-8Q</name><deviceAPI>vfio-pci</deviceAPI>
    <availableInstances>1</availableInstances></type></capability>"""


def pci_info():
    info = devices.pci_info(gpus=2)
    add_sriov(info, 0x85, 2, '15b3', ('101d', '101e'), serial='MT2019X1')
    for function in 0, 1:
        add_function(info, 0x86, '1da3', '1020', function)
    add_function(info, 0x87, '144d', 'a80a')
    add_sriov(info, 0xAE, 2, '10de', ('2235', '2235'))
    for name in 'pci_0000_ae_00_1', 'pci_0000_ae_00_2':
        card = info.devices[name]
        card.pci_device = card.pci_device.replace(
            '</capability>', '</capability>' + _MDEV_TYPES, 1
        )
        card.is_capable_of_mdevs = True
    return info


def add_function(info, bus, vendor_id, product_id, function=0):
    """Add a device that is no part of another."""
    return info.add_device(
        dev_type='PCI',
        bus=bus,
        slot=0,
        function=function,
        numa_node=0,
        iommu_group=bus * 256 + function,
        vend_id=vendor_id,
        prod_id=product_id,
        prod_name='x',
        driver_name='x',
    )


def add_sriov(
    info,
    bus,
    virtual,
    vendor_id,
    product_ids,
    serial=None,
    virtual_serial=None,
):
    """Add a card with up to seven virtual functions."""
    for function in range(virtual + 1):
        number = serial if function == 0 else virtual_serial
        info.add_device(
            dev_type='VF' if function else 'PF',
            bus=bus,
            slot=0,
            function=function,
            numa_node=0,
            iommu_group=bus * 256 + function,
            vf_ratio=0 if function else virtual,
            parent=(bus, 0, 0) if function else None,
            vend_id=vendor_id,
            prod_id=product_ids[bool(function)],
            prod_name='x',
            driver_name='x',
            vpd_fields=number
            and {'name': 'x', 'readonly': {'serial_number': number}},
        )


class Sysfs(fixtures.Fixture):
    """What Nova reads in /sys of functions and their network interfaces.

    :param cards: the physical functions with SR-IOV
    :param interfaces: name -> address of its function
    """

    def __init__(self, cards, interfaces):
        self._cards, self._interfaces = cards, interfaces

    def _setUp(self):
        for name in (
            'is_physical_function',
            'get_function_by_ifname',
            'get_vf_product_id_by_pf_addr',
            'get_pci_ids_by_pci_addr',
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova.pci.utils.{name}', getattr(self, name)
                )
            )

    def is_physical_function(self, domain, bus, slot, function):
        return f'{domain}:{bus}:{slot}.{function}' in self._cards

    def get_function_by_ifname(self, name):
        address = self._interfaces.get(name)
        return address, address in self._cards

    def get_vf_product_id_by_pf_addr(self, address):
        """Nova 34 asks with no address at all unless it got a devname."""
        if address not in self._cards:
            raise exception.PciDeviceNotFoundById(id=address)
        return self._cards[address][2]

    def get_pci_ids_by_pci_addr(self, address):
        return self._cards[address][:2]


#: Vendor and product ids, and those of its virtual functions.
CARDS = {
    FPGA: ('8086', '09c4', '09c5'),
    QAT: ('8086', '37c8', '37c9'),
    NIC: ('15b3', '101d', '101e'),
    SRIOV_GPU: ('10de', '2235', '2235'),
}
INTERFACES = {'ens5': NIC, 'ens5v0': '0000:85:00.1', 'eno1': '0000:01:00.0'}


class ClaimedHostTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(fake_fpga.Installed())
        self.useFixture(Sysfs(CARDS, INTERFACES))
        self.fake = self.useFixture(libvirt.Libvirt(pci_info()))
        self.node_devices = libvirt_devices.NodeDevices(self.fake.host)
        self.provider_configs = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path
        )

    def configure(self, pci=(), vgpus=None, providers=None, **placement):
        """Configure Nova.

        :param pci: the values of ``[pci] device_spec``
        :param vgpus: enabled type -> its options, or only its addresses
        :param providers: file -> the providers in it
        :param placement: ``report_in_placement``
        """
        # A fixture for each call: properties call it many times in one test.
        config = config_fixture.Config(conf.CONF)
        config.setUp()
        self.addCleanup(config.cleanUp)
        vgpus = vgpus or {}
        config.config(
            group='pci',
            device_spec=[
                line if isinstance(line, str) else json.dumps(line)
                for line in pci
            ],
            **placement,
        )
        config.config(group='devices', enabled_mdev_types=list(vgpus))
        nova_vgpus.Vgpus()
        for mdev_type, options in vgpus.items():
            if not isinstance(options, dict):
                options = {'device_addresses': list(options)}
            config.config(group=f'mdev_{mdev_type}', **options)
        for file, entries in (providers or {}).items():
            (self.provider_configs / file).write_text(
                yaml.safe_dump(
                    {'meta': {'schema_version': '1.0'}, 'providers': entries}
                )
            )
        config.config(
            group='compute',
            provider_config_location=str(self.provider_configs),
        )

    def function(self, address):
        return self.node_devices.look().functions[
            pci_address.PciAddress.parse(address)
        ]

    def change(self, address, before, after):
        """Change the XML of a device of the host."""
        card = self.fake.connection.pci_info.devices[
            pci_address.PciAddress.parse(address).node_device
        ]
        self.assertIn(before, card.pci_device)
        card.pci_device = card.pci_device.replace(before, after)


def an_entry(provider, *traits, method='name', **inventories):
    """An entry of a provider.yaml.

    :param inventories: resource class -> total
    """
    return {
        'identification': {method: provider},
        'traits': {'additional': list(traits)},
        'inventories': {
            'additional': [
                {resource_class: {'total': total}}
                for resource_class, total in inventories.items()
            ]
        },
    }


def nothing():
    return fakelibvirt.HostPCIDevicesInfo(num_pci=0, num_pfs=0, num_vfs=0)
