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

"""A card of NVIDIA that guests get as a whole, or in parts.

Its virtual functions are the parts. Only NVIDIA's own program makes and
removes them. A guest gets the card without them, because the host's driver
gives up no card that has some.
"""

from nova_accel import exceptions
from nova_accel.host import host_use
from nova_accel.host import mig
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address


def give(sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress) -> None:
    """Have a card that no one uses without virtual functions; idempotent.

    libvirt then takes it from its host driver.

    :raises DeviceError: it is used, and the text says by what, or a program of
        NVIDIA fails.
    """
    if _is_away(sysfs, address):
        return
    # A driver that loses a card which is open waits until it is closed.
    use = host_use.HostUse(sysfs).reason(address)
    if use is not None:
        raise exceptions.DeviceError(use)
    types = 'mdev_supported_types'
    for name in sysfs.names(address, types):
        for uuid in sysfs.names(address, f'{types}/{name}/devices'):
            raise exceptions.DeviceError(
                f'{address} has the mediated device {uuid}'
            )
    card = mig.MigCard(address)
    with card.locked():
        # The guest's driver would find it in this mode.
        if card.is_on():
            for each in card.instances():
                card.destroy(each)
            card.turn(False)
        if _has_functions(sysfs, address):
            _set_functions(sysfs, card, False)


def take_back(
    sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress
) -> None:
    """Have a card with virtual functions again, if it can; idempotent.

    :raises DeviceError: its host driver does not have it yet, or a program of
        NVIDIA fails.
    """
    if _is_away(sysfs, address):
        raise exceptions.DeviceError(
            f'{address} has not come back to its host driver: it is bound to '
            f'{sysfs.link(address, "driver")}'
        )
    card = mig.MigCard(address)
    with card.locked():
        if (sysfs.read(address, 'sriov_totalvfs') or '0') != '0' and (
            not _has_functions(sysfs, address)
        ):
            _set_functions(sysfs, card, True)


def _is_away(sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress) -> bool:
    """Whether a guest has it, or is to get it."""
    return 'vfio' in (sysfs.link(address, 'driver') or '')


def _has_functions(
    sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress
) -> bool:
    return any(name.startswith('virtfn') for name in sysfs.names(address))


def _set_functions(
    sysfs: sysfs_tree.Sysfs, card: mig.MigCard, are_there: bool
) -> None:
    card.set_functions(are_there)
    if _has_functions(sysfs, card.address) is not are_there:
        raise exceptions.DeviceError(
            f'the virtual functions of {card.address} were to be '
            + ('made, and are not there' if are_there else 'removed, and stay')
        )
