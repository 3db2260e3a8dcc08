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

"""The controllers of one NVMe drive, by what the kernel says of them."""

from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address

#: They name a drive: the NQN of some is the same for all of their kind.
DRIVE = ('subsysnqn', 'model', 'serial')


def others(
    sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress
) -> tuple[pci_address.PciAddress, ...]:
    """The other controllers of a drive that the host's driver ``nvme`` has.

    A virtual function is none of them: it is a unit of its own.

    :raises DeviceError: it cannot be told.
    """
    drive = _drive(sysfs, address)
    if drive is None or sysfs.link(address, 'physfn') is not None:
        return ()
    return tuple(
        each
        for each in sysfs.bound('nvme')
        if each != address
        and sysfs.link(each, 'physfn') is None
        and _drive(sysfs, each) == drive
    )


def _drive(
    sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress
) -> list[str] | None:
    """None if it does not say all that names its drive."""
    names = sysfs.names(address, 'nvme')
    if len(names) != 1:
        return None
    found = [sysfs.read(address, f'nvme/{names[0]}/{name}') for name in DRIVE]
    told = [text for text in found if text]
    return told if len(told) == len(DRIVE) else None
