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


import types
import uuid

import libvirt
from lxml import etree
from nova.virt.libvirt import config as vconfig

from lab import switched_machine
from libvirtd import base
from libvirtd import test_guest
from nova_accel.virt import guest_topology
from nova_accel.virt import guest_xml


def a_guest(cells=2, ports=0):
    """As Nova makes it.

    :param cells: how many NUMA cells it has
    :param ports: how many root ports Nova's configuration asks for
    """
    config = test_guest.a_guest()
    config.vcpus = 2
    config.memory = 128 << 10
    if cells:
        config.cpu = vconfig.LibvirtConfigGuestCPU()
        config.cpu.numa = vconfig.LibvirtConfigGuestCPUNUMA()
        config.numatune = vconfig.LibvirtConfigGuestNUMATune()
    for number in range(cells):
        cell = vconfig.LibvirtConfigGuestCPUNUMACell()
        cell.id, cell.cpus, cell.memory = number, {number}, 64 << 10
        config.cpu.numa.cells.append(cell)
        memory = vconfig.LibvirtConfigGuestNUMATuneMemNode()
        memory.cellid, memory.nodeset = number, [number]
        config.numatune.memnodes.append(memory)
    if ports:
        config.add_device(vconfig.LibvirtConfigGuestPCIeRootController())
    for _port in range(ports):
        config.add_device(vconfig.LibvirtConfigGuestPCIeRootPortController())
    video = vconfig.LibvirtConfigGuestVideo()
    config.add_device(video)
    config.add_device(test_rng())
    return config


def test_rng():
    rng = vconfig.LibvirtConfigGuestRng()
    rng.backend = '/dev/urandom'
    return rng


test_rng.__test__ = False


def a_server():
    return types.SimpleNamespace(
        uuid=str(uuid.uuid4()),
        flavor=types.SimpleNamespace(
            extra_specs={'nova_accel:pci_topology': 'host'}
        ),
        system_metadata={},
    )


class TestGuestTopology(base.HostTestCase):
    """libvirt takes the controllers, and leaves the addresses as they are."""

    machine = switched_machine.MACHINE

    def define(self, config, *functions):
        arqs = [
            test_guest.an_arq(test_guest.a_handle(function))
            for function in functions
        ]
        guest_topology.add(config, a_server(), arqs, self.sysfs, {})
        wanted = etree.fromstring(config.to_xml())
        domain = self.host.get_connection().defineXMLFlags(
            config.to_xml(), libvirt.VIR_DOMAIN_DEFINE_VALIDATE
        )
        self.addCleanup(domain.undefine)
        return wanted, etree.fromstring(domain.XMLDesc(0))

    def addresses(self, domain):
        """Kind, index or name -> the address in the guest."""
        found = {}
        for controller in domain.findall("./devices/controller[@type='pci']"):
            address = controller.find('./address')
            if address is not None:
                key = controller.get('model'), int(controller.get('index'))
                found[key] = tuple(
                    int(address.get(part), 16)
                    for part in ('bus', 'slot', 'function')
                )
        for hostdev in domain.findall('./devices/hostdev'):
            address = hostdev.find('./address')
            found[test_guest.source(hostdev)] = tuple(
                int(address.get(part), 16)
                for part in ('bus', 'slot', 'function')
            )
        return found

    def nodes(self, domain):
        return {
            target.get('busNr'): target.findtext('node')
            for target in domain.iterfind('./devices/controller/target')
            if target.get('busNr') is not None
        }

    def assert_kept(self, config):
        wanted, defined = self.define(config, *switched_machine.DEVICES)
        for key, address in self.addresses(wanted).items():
            self.assertEqual(address, self.addresses(defined)[key], key)
        self.assertEqual(self.nodes(wanted), self.nodes(defined))
        return self.addresses(defined), defined

    def test_with_cells(self):
        for ports in (0, 4):
            addresses, defined = self.assert_kept(a_guest(ports=ports))
            self.assertEqual({'0', '1'}, set(self.nodes(defined).values()))
            models = [model for model, *_index in addresses]
            self.assertEqual(2, models.count('pcie-expander-bus'))

    def test_without_cells(self):
        addresses, defined = self.assert_kept(a_guest(cells=0))
        self.assertEqual({}, self.nodes(defined))
        self.assertNotIn('pcie-expander-bus', str(addresses))

    def test_no_other_device_is_on_our_ports(self):
        """And Nova's are on the ports that it would have without us."""
        _wanted, defined = self.define(
            a_guest(ports=4), *switched_machine.DEVICES
        )
        ours = {
            int(hostdev.find('./address').get('bus'), 16)
            for hostdev in defined.findall('./devices/hostdev')
        }
        self.assertEqual(4, len(ours))
        others = [
            int(address.get('bus'), 16)
            for address in defined.findall('./devices/*/address')
            if address.getparent().tag not in ('hostdev', 'controller')
            and address.get('bus') is not None
        ]
        self.assertTrue(others)
        self.assertEqual(set(), ours.intersection(others))
        self.assertTrue(all(bus <= 4 for bus in others), others)

    def test_the_same_again(self):
        first, _defined = self.assert_kept(a_guest())
        again, _defined = self.assert_kept(a_guest())
        self.assertEqual(first, again)

    def test_the_names_of_guest_xml(self):
        """A hostdev read back from libvirt has the name that it was given."""
        _wanted, defined = self.define(a_guest(), switched_machine.GPU)
        hostdev = vconfig.LibvirtConfigGuestHostdevPCI()
        hostdev.parse_dom(defined.find('./devices/hostdev'))
        self.assertEqual(switched_machine.GPU.address, guest_xml.name(hostdev))
