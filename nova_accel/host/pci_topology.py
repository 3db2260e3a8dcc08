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

"""Where PCI functions are in the PCI tree of this host, read from sysfs."""

from nova_accel import exceptions
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.model.devices import pci_memory
from nova_accel.model.devices import pci_path


def path(
    sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress
) -> pci_path.PciPath:
    """The place of a PCI function.

    :raises DeviceError: the host has no such function, or tells something
        unusable of it.
    """
    parts = sysfs.real_path(address)
    if parts is None:
        raise exceptions.DeviceError(f'the host has no PCI function {address}')
    try:
        found = pci_path.parse(
            parts, sysfs.optional.read(address, 'numa_node')
        )
    except exceptions.DeviceError as error:
        raise exceptions.DeviceError(
            f'the place of {address} in the PCI tree cannot be read: {error}'
        ) from error
    if parts[-1] != str(address):
        raise exceptions.DeviceError(
            f'sysfs has {parts[-1]!r:.64} in the place of {address}'
        )
    return found


def memory_bytes(
    sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress
) -> int:
    """The bytes of address space that a PCI function takes, 0 if unknown.

    :raises DeviceError: the host tells something unusable of it.
    """
    return pci_memory.memory_bytes(sysfs.read(address, 'resource') or '')
