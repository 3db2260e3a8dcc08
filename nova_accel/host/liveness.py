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

"""Whether a PCI function that sysfs lists still answers the host.

The kernel keeps the ids of a function that has fallen off the bus, or that a
reset has lost, until someone removes it.
"""

from collections.abc import Iterable

from nova_accel import exceptions
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address

#: The vendor id that is read where no one answers, see ``PCI_ERROR_RESPONSE``
#: in the kernel's ``include/linux/pci.h``.
_NOBODY = b'\xff\xff'

# The kernel itself lets such a function sleep, and wakes it.
_ASLEEP = frozenset({'suspended', 'suspending', 'resuming', 'unsupported'})


def fault(
    sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress
) -> str | None:
    """Why a function does not answer, None if it does or sysfs does not say.

    The vendor id of a virtual function is FFFFh by the specification of
    SR-IOV, so its card is asked in its place. A read of ``config`` wakes a
    function that sleeps without power (``drivers/pci/access.c``). A function
    that stays in D3cold although it is not suspended could not be woken, see
    ``power_state`` in the kernel's ``Documentation/ABI/testing/sysfs-bus-pci``
    and ``runtime_status`` in ``sysfs-devices-power``.
    """
    facts = sysfs.optional
    name = facts.link(address, 'physfn')
    card = address if name is None else pci_address.PciAddress.parse(name)
    if facts.head(card, 'config', len(_NOBODY)) == _NOBODY:
        return (
            f'{card} does not answer: its vendor id reads as ffff. '
            'It has fallen off the bus, or a reset has failed'
        )
    if (
        facts.read(card, 'power_state') == 'D3cold'
        and facts.read(card, 'power/runtime_status') not in _ASLEEP
    ):
        return (
            f'{card} does not answer: it stays without power (D3cold) '
            'although it is not suspended'
        )
    return None


def check(
    sysfs: sysfs_tree.Sysfs, addresses: Iterable[pci_address.PciAddress]
) -> None:
    """:raises DeviceError: a function does not answer, see :func:`fault`."""
    for address in addresses:
        found = fault(sysfs, address)
        if found is not None:
            raise exceptions.DeviceError(found)
