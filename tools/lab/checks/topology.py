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

"""What a guest sees of the PCI Express tree of its host.

The host is real libvirt and QEMU with a hand-written /sys. nova_accel's code
reads the places of its devices there, and makes the guest's configuration. A
real VFIO is missing, so each hostdev is replaced by a device that QEMU
emulates, at the address in the guest that the hostdev has. Guests are not
bound to the nodes of the host either: this machine may have only one.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import copy
import itertools
import pathlib
import uuid

from lxml import etree
from nova.virt.libvirt import config as vconfig

from lab import guest
from lab import libvirtd
from lab import nova_objects
from lab import processes
from lab import switched_machine
from lab.checks import registry
from nova_accel.host import pci_topology
from nova_accel.host import sysfs_tree
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.devices import pci_path
from nova_accel.virt import guest_topology

#: In place of each device: libvirt's model of an interface, and its PCI id.
_EMULATED = {
    switched_machine.GPU.address: ('e1000e', '8086:10d3'),
    switched_machine.NIC.address: ('virtio', '1af4:1041'),
    switched_machine.DRIVE.address: ('vmxnet3', '15ad:07b0'),
    switched_machine.FAR_GPU.address: ('rtl8139', '10ec:8139'),
}

_MEMORY_KIB = 256 << 10

_BOOT_SECONDS = 300

#: By the address of the device on the host.
_Paths = dict[str, pci_path.PciPath]


@registry.check('topology')
def as_on_the_host(evidence: registry.Evidence) -> None:
    """A guest with two NUMA cells sees the PCI tree of its host."""
    with _host() as host:
        wanted = _on_the_host(host)
        _tell(evidence, 'on the host', wanted)
        with _Guest(host, cells=2) as made:
            seen = made.boot()
            _tell(evidence, 'in the guest', seen)
            _expect_alike(seen, wanted)
            for address, path in seen.items():
                registry.expect(
                    path.numa_node == wanted[address].numa_node,
                    f'{address} is on node {path.numa_node}',
                )
            made.reset()
            _expect_same(made.paths(), seen)
            evidence('the same after a reboot')
            made.stop()
            made.make()
            _expect_same(made.boot(), seen)
            evidence('the same after it was stopped, made again and started')
            made.detach(switched_machine.GPU.address)
            made.attach(switched_machine.GPU.address)
            _expect_same(made.paths(), seen)
            evidence('the same after a GPU was detached and attached')


@registry.check('topology')
def without_cells(evidence: registry.Evidence) -> None:
    """A guest without NUMA cells sees the switch of its host."""
    with _host() as host, _Guest(host, cells=0) as made:
        seen = made.boot()
        _tell(evidence, 'in the guest', seen)
        near = {
            switched_machine.GPU.address,
            switched_machine.NIC.address,
        }
        switches = set()
        for address, path in seen.items():
            registry.expect(path.root == 'pci0000:00', path)
            registry.expect(path.numa_node is None, path)
            registry.expect(
                (path.switch() is not None) == (address in near), path
            )
            switches.add(path.switch())
        registry.expect(len(switches) == 2, f'switches: {switches}')


@contextlib.contextmanager
def _host() -> Iterator[libvirtd.Libvirtd]:
    host = libvirtd.Libvirtd('switched', switched_machine.MACHINE)
    host.start()
    try:
        yield host
    finally:
        host.stop()


def _on_the_host(host: libvirtd.Libvirtd) -> _Paths:
    sysfs = _sysfs(host)
    return {
        function.address: pci_topology.path(
            sysfs, pci_address.PciAddress.parse(function.address)
        )
        for function in switched_machine.DEVICES
    }


def _sysfs(host: libvirtd.Libvirtd) -> sysfs_tree.Sysfs:
    assert host.sysfs is not None
    return sysfs_tree.Sysfs(host.sysfs)


def _expect_alike(seen: _Paths, wanted: _Paths) -> None:
    """Pairs share a root complex or a switch if they do on the host."""
    for one, other in itertools.combinations(wanted, 2):
        for what, of in (
            ('root complex', lambda path: path.root),
            ('switch', lambda path: path.switch() or path),
        ):
            together = of(wanted[one]) == of(wanted[other])
            registry.expect(
                (of(seen[one]) == of(seen[other])) == together,
                f'{one} and {other}: one {what} is '
                f'{together} on the host only',
            )


def _expect_same(now: _Paths, before: _Paths) -> None:
    registry.expect(now == before, f'{now}, not {before}')


def _tell(evidence: registry.Evidence, where: str, paths: _Paths) -> None:
    for address, path in paths.items():
        bridges = '/'.join(map(str, path.bridges))
        evidence(
            f'{address} {where}: node {path.numa_node}, {path.root}/{bridges}'
        )


class _Guest:
    """A guest with all devices of the host, or with what stands for them."""

    def __init__(self, host: libvirtd.Libvirtd, cells: int) -> None:
        self._host = host
        self._cells = cells
        self._uuid = str(uuid.uuid4())
        self._console = host.directory / f'{self._uuid}.console'

    def __enter__(self) -> '_Guest':
        self.make()
        return self

    def __exit__(self, *_error: object) -> None:
        with contextlib.suppress(processes.LabError):
            self._virsh('destroy')
        self._virsh('undefine')

    def make(self) -> None:
        """Define it, as Nova makes the guest of a server anew."""
        config = _configuration(self._uuid, self._cells, self._console)
        guest_topology.add(config, _server(), _arqs(), _sysfs(self._host), {})
        # The host may be one that has no such nodes.
        config.numatune = None
        path = self._console.with_suffix('.xml')
        path.write_text(_emulated(config.to_xml()))
        self._host.virsh('define', str(path))

    def boot(self) -> _Paths:
        self._console.write_text('')
        self._virsh('start')
        return self.paths()

    def reset(self) -> None:
        self._forget()
        self._virsh('reset')

    def stop(self) -> None:
        self._virsh('destroy')
        self._virsh('undefine')
        self._seen = 0

    def detach(self, address: str) -> None:
        """Take a device away from the running guest, as a suspend does."""
        self._forget()
        self._hot_plug('detach-device', address)
        _model, product = _EMULATED[address]
        self._wait(lambda found: product not in found)

    def attach(self, address: str) -> None:
        """Give it back, at the address that the definition has."""
        self._forget()
        self._hot_plug('attach-device', address)

    def paths(self) -> _Paths:
        """Where the devices are, as the guest reads it in its sysfs."""
        wanted = {product for _model, product in _EMULATED.values()}
        found = self._wait(lambda found: wanted <= found.keys())
        return {
            address: found[product]
            for address, (_model, product) in _EMULATED.items()
        }

    def _hot_plug(self, command: str, address: str) -> None:
        model, _product = _EMULATED[address]
        definition = etree.fromstring(
            self._host.virsh('dumpxml', '--inactive', self._uuid)
        )
        (interface,) = definition.xpath(
            f"./devices/interface[model/@type='{model}']"
        )
        path = self._console.with_suffix('.device.xml')
        path.write_text(etree.tostring(interface, encoding='unicode'))
        self._host.virsh(command, self._uuid, str(path), '--live')

    def _wait(
        self, wanted: Callable[[dict[str, pci_path.PciPath]], bool]
    ) -> dict[str, pci_path.PciPath]:
        """Wait for a list of the guest's, by PCI id, that is as wanted."""
        found: dict[str, pci_path.PciPath] = {}

        def told() -> bool:
            found.clear()
            console = self._console.read_text(errors='replace')
            for line in console[self._seen :].splitlines():
                words = line.split()
                if words[:1] == ['LAB-PATH'] and len(words) == 4:
                    _tag, device, node, path = words
                    found[device.replace('0x', '')] = pci_path.parse(
                        pathlib.PurePosixPath(path).parts, node
                    )
                if words[:1] == ['LAB-GUEST-END']:
                    if wanted(found):
                        return True
                    found.clear()
            return False

        processes.wait_for(
            f'the guest (its console is {self._console})',
            _BOOT_SECONDS,
            told,
            interval=0.5,
        )
        return dict(found)

    def _forget(self) -> None:
        """What the guest has said until now is of before."""
        # QEMU goes on in the file where it was.
        self._seen = len(self._console.read_text(errors='replace'))

    _seen = 0

    def _virsh(self, command: str) -> None:
        self._host.virsh(command, self._uuid)


def _configuration(
    own_uuid: str, cells: int, console: pathlib.Path
) -> vconfig.LibvirtConfigGuest:
    """A guest as Nova makes it, but for its disks and its console."""
    files = guest.prepare()
    config = vconfig.LibvirtConfigGuest()
    config.virt_type = 'qemu'
    config.uuid, config.name = own_uuid, f'guest-{own_uuid}'
    config.memory, config.vcpus = _MEMORY_KIB, 2
    config.os_type, config.os_arch = 'hvm', 'x86_64'
    config.os_mach_type = 'q35'
    config.os_kernel, config.os_initrd = str(files.kernel), str(files.initrd)
    config.os_cmdline = guest.ARGUMENTS
    config.add_feature(vconfig.LibvirtConfigGuestFeatureACPI())
    config.add_feature(vconfig.LibvirtConfigGuestFeatureAPIC())
    serial = vconfig.LibvirtConfigGuestSerial()
    serial.type, serial.source_path = 'file', str(console)
    config.add_device(serial)
    _add_cells(config, cells)
    return config


def _add_cells(config: vconfig.LibvirtConfigGuest, cells: int) -> None:
    """Give the guest cells, the first on node 0 of the host and so on."""
    if not cells:
        return
    config.cpu = vconfig.LibvirtConfigGuestCPU()
    config.cpu.numa = vconfig.LibvirtConfigGuestCPUNUMA()
    config.numatune = vconfig.LibvirtConfigGuestNUMATune()
    for number in range(cells):
        cell = vconfig.LibvirtConfigGuestCPUNUMACell()
        cell.id, cell.cpus = number, {number}
        cell.memory = _MEMORY_KIB // cells
        config.cpu.numa.cells.append(cell)
        memory = vconfig.LibvirtConfigGuestNUMATuneMemNode()
        memory.cellid, memory.nodeset = number, [number]
        config.numatune.memnodes.append(memory)


def _server() -> nova_objects.Instance:
    return nova_objects.Instance(
        uuid=str(uuid.uuid4()),
        system_metadata={},
        flavor=nova_objects.Flavor(
            extra_specs={'nova_accel:pci_topology': 'host'}
        ),
    )


def _arqs() -> list[arq_types.Arq]:
    return [
        arq_types.Arq(
            str(uuid.uuid4()),
            arq_types.State.BOUND,
            'profile',
            group,
            {},
            str(uuid.uuid4()),
            attach_handle.AttachHandle(
                str(uuid.uuid4()),
                pci_address.PciAddress.parse(function.address),
            ),
        )
        for group, function in enumerate(switched_machine.DEVICES)
    ]


def _emulated(xml: str) -> str:
    """The guest's XML with emulated devices at the places of hostdevs."""
    domain = etree.fromstring(xml)
    by_bus = {
        pci_address.PciAddress.parse(address).bus: model
        for address, (model, _id) in _EMULATED.items()
    }
    for hostdev in domain.findall('./devices/hostdev'):
        model = by_bus[int(hostdev.find('./source/address').get('bus'), 16)]
        interface = etree.Element('interface', type='user')
        etree.SubElement(interface, 'model', type=model)
        etree.SubElement(interface, 'rom', enabled='no')
        interface.append(copy.deepcopy(hostdev.find('./address')))
        hostdev.getparent().replace(hostdev, interface)
    text: str = etree.tostring(domain, encoding='unicode')
    return text
