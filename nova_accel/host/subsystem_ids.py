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

"""The boards of the host's PCI functions; libvirt does not tell them."""

from collections.abc import Mapping
import dataclasses

from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.model.devices import subsystem


def added(
    functions: Mapping[pci_address.PciAddress, pci_function.PciFunction],
    sysfs: sysfs_tree.Sysfs,
) -> dict[pci_address.PciAddress, pci_function.PciFunction]:
    """The functions, with the boards that sysfs tells.

    A file that is absent or unreadable costs nothing but the board.
    """
    own = {address: _read(sysfs.optional, address) for address in functions}
    result = {}
    for address, function in functions.items():
        card = (
            subsystem.of(*own[function.card])
            if function.parent_address in own
            else None
        )
        result[address] = dataclasses.replace(
            function, subsystem=subsystem.of(*own[address], card)
        )
    return result


def _read(
    sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress
) -> tuple[str | None, str | None]:
    return (
        _id(sysfs, address, 'subsystem_vendor'),
        _id(sysfs, address, 'subsystem_device'),
    )


def _id(
    sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress, attribute: str
) -> str | None:
    text = sysfs.read(address, attribute)
    if text is None:
        return None
    try:
        return subsystem.parse_id(text)
    except ValueError as error:
        sysfs.complain(address, attribute, str(error))
        return None
