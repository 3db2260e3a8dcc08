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

"""Adds a server's accelerators to its guest, with the PCI tree that it wants.

:mod:`nova_accel.model.links.guest_pcie` has the rules. The tree depends on
nothing but the devices, their paths on the host and the guest's NUMA cells. So
it needs no journal of its own: a guest that is made again gets the same one.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from nova import objects
from nova.virt.libvirt import config as vconfig
from oslo_log import log as logging

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.host import pci_topology
from nova_accel.host import sysfs_tree
from nova_accel.model import arq_types
from nova_accel.model import pci_address
from nova_accel.model.links import guest_pcie
from nova_accel.model.profiles import extra_specs
from nova_accel.virt import guest_controllers
from nova_accel.virt import guest_xml
from nova_accel.virt import server_request

CONF = conf.CONF
LOG = logging.getLogger(__name__)

#: The firmware of a guest has room for so much in any case: OVMF keeps 32 GiB
#: for devices if it cannot trust the width of the CPU's addresses.
_USUAL_MEMORY_BYTES = 16 << 30

#: The capability of Nova's driver without which libvirt knows no maxphysaddr.
_WIDE_ADDRESSES = 'supports_address_space_passthrough'


def add(
    guest: vconfig.LibvirtConfigGuest,
    instance: objects.Instance,
    arqs: Iterable[arq_types.Arq],
    sysfs: sysfs_tree.Sysfs,
    capabilities: Mapping[str, bool],
) -> None:
    """Add the devices of ARQs, and the PCI controllers that they need.

    :param guest: as Nova has made it
    :param capabilities: those of Nova's driver
    :raises InvalidRequest: the flavor or the image asks for no known tree.
    """
    arqs = tuple(arqs)
    places: dict[str, guest_xml.Address] = {}
    if _wants_host_tree(guest, instance):
        functions = tuple(_functions(arqs, sysfs))
        places = _add_controllers(guest, instance, functions)
        if places and capabilities.get(_WIDE_ADDRESSES):
            _widen_addresses(guest, instance, arqs, sysfs)
    for hostdev in guest_xml.hostdevs(arqs, places):
        guest.add_device(hostdev)


def _wants_host_tree(
    guest: vconfig.LibvirtConfigGuest, instance: objects.Instance
) -> bool:
    """:raises InvalidRequest: there is no such tree."""
    wanted = extra_specs.pci_topology(
        instance.flavor.extra_specs,
        server_request.image_properties(instance),
        CONF.nova_accel.pci_topology,
    )
    if wanted is not extra_specs.PciTopology.HOST:
        return False
    if 'q35' not in (guest.os_mach_type or ''):
        LOG.warning(
            'The guest does not see the PCI topology of the host, because '
            'its machine type is %s: the image needs hw_machine_type=q35',
            guest.os_mach_type,
            instance=instance,
        )
        return False
    return True


def _functions(
    arqs: Iterable[arq_types.Arq], sysfs: sysfs_tree.Sysfs
) -> Iterator[guest_pcie.GuestFunction]:
    """The devices whose place on the host is known."""
    for arq in arqs:
        for name, address in _addresses(arq):
            try:
                path = pci_topology.path(sysfs, address)
            except exceptions.DeviceError as error:
                LOG.warning(
                    'The guest has %s where libvirt puts it: %s', name, error
                )
                continue
            yield guest_pcie.GuestFunction(
                name, arq.device_profile_group_id, path
            )


def _addresses(
    arq: arq_types.Arq,
) -> Iterator[tuple[str, pci_address.PciAddress]]:
    """(name in the guest's configuration, PCI function of the host)

    A mediated device is where its parent is.
    """
    if not arq.handle.functions:
        yield arq.handle.uuid, arq.handle.address
    for address in arq.handle.functions:
        yield str(address), address


def _add_controllers(
    guest: vconfig.LibvirtConfigGuest,
    instance: objects.Instance,
    functions: tuple[guest_pcie.GuestFunction, ...],
) -> dict[str, guest_xml.Address]:
    """The addresses of the devices; empty if there is no tree for them."""
    try:
        tree = guest_pcie.tree(
            functions, _cells(guest), guest_controllers.taken_indexes(guest)
        )
    except exceptions.Conflict as error:
        LOG.warning(
            'The guest does not see the PCI topology of the host: %s',
            error,
            instance=instance,
        )
        return {}
    for controller in tree.controllers:
        guest.add_device(guest_controllers.GuestController(controller))
    return {
        name: guest_controllers.address(place)
        for name, place in tree.places.items()
    }


def _cells(guest: vconfig.LibvirtConfigGuest) -> dict[int, int] | None:
    """Node of the host -> the guest's cell on it; None without cells."""
    cells = guest.cpu.numa.cells if guest.cpu and guest.cpu.numa else ()
    if not cells:
        return None
    found: dict[int, int] = {}
    for memory in guest.numatune.memnodes if guest.numatune else ():
        for node in memory.nodeset:
            found.setdefault(node, memory.cellid)
    return found


def _widen_addresses(
    guest: vconfig.LibvirtConfigGuest,
    instance: objects.Instance,
    arqs: Iterable[arq_types.Arq],
    sysfs: sysfs_tree.Sysfs,
) -> None:
    """Let the guest see how wide the CPU's addresses are, if it needs it.

    A flavor or an image with ``hw:maxphysaddr_mode`` has decided already.
    """
    if (
        guest.virt_type != 'kvm'
        or guest.cpu is None
        or guest.cpu.maxphysaddr is not None
    ):
        return
    memory_bytes = 0
    for arq in arqs:
        for address in arq.handle.functions:
            try:
                memory_bytes += pci_topology.memory_bytes(sysfs, address)
            except exceptions.DeviceError as error:
                LOG.warning(
                    'The memory of %s is not counted: %s', address, error
                )
    if memory_bytes > _USUAL_MEMORY_BYTES:
        LOG.info(
            'The accelerators of the guest have %d GiB of memory; its CPU '
            'has the address width of the host',
            memory_bytes >> 30,
            instance=instance,
        )
        guest.cpu.maxphysaddr = vconfig.LibvirtConfigGuestCPUMaxPhysAddr()
        guest.cpu.maxphysaddr.mode = 'passthrough'
