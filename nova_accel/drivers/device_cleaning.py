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

"""Ways to remove what a guest left in a device, for any driver.

Most devices need none. VFIO resets a function whenever a guest opens or closes
it, and libvirt resets it before the host gets it back
(``drivers/vfio/pci/vfio_pci_core.c``, https://libvirt.org/formatdomain.html,
"Host device assignment"). However, a reset may leave data that a device
stores.
"""

from collections.abc import Iterable
from collections.abc import Sequence

from nova_accel import exceptions
from nova_accel.host import liveness
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.privileged import vendor_tool

#: How long an operator's command may take.
COMMAND_TIMEOUT_S = 3600

_CURE = (
    'remove "clean": "reset" from the line, or name a program that cleans it '
    'in "clean_command"'
)


def reset(sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress) -> None:
    """Reset a PCI function; the kernel waits until it answers again.

    ``reset_method`` (Linux 5.15) lists the methods that the kernel tries, in
    order: a reset of the function (``flr``), of a bus without other functions
    (``bus``), or a device's own. ``pm`` only puts the function to sleep and
    wakes it.

    :raises DeviceError: it cannot be reset, or did not come back.
    """
    liveness.check(sysfs, [address])
    _check_methods(sysfs.read(address, 'reset_method'), address)
    sysfs.write(address, 'reset', '1')
    liveness.check(sysfs, [address])


def check_reset(
    sysfs: sysfs_tree.Sysfs,
    addresses: Iterable[pci_address.PciAddress],
    all_functions: Iterable[pci_address.PciAddress],
) -> None:
    """Check that functions can be reset, before a guest gets them.

    The kernel lists ``bus`` for the first function of a card although the
    others make that reset impossible: it asks before it finds them
    (``pci_init_reset_methods``, ``pci_parent_bus_reset`` of its
    ``drivers/pci/pci.c``). A function without any method has neither
    ``reset_method`` nor ``reset``.

    :param all_functions: all functions of the host
    :raises DeviceError: one cannot be; the text says what to do.
    """
    there = frozenset(all_functions)
    for address in addresses:
        methods = sysfs.read(address, 'reset_method')
        if methods is None:
            # Linux before 5.15, or a function that is gone.
            names = sysfs.names(address)
            is_possible = 'reset' in names or 'vendor' not in names
        else:
            _check_methods(methods, address)
            is_possible = not set(methods.split()) <= {'bus', 'pm'} or not any(
                (other.domain, other.bus) == (address.domain, address.bus)
                for other in there - {address}
            )
        if not is_possible:
            raise exceptions.DeviceError(
                f'{address} cannot be reset by itself '
                f'(reset_method: {methods or "none"}): {_CURE}'
            )


def _check_methods(
    methods: str | None, address: pci_address.PciAddress
) -> None:
    """:raises DeviceError: none of them is a reset."""
    if methods is not None and methods.split()[:1] in ([], ['pm']):
        raise exceptions.DeviceError(
            f'{address} is not reset: its reset_method is {methods!r}, which '
            f'does not begin with flr, bus or one of its own: {_CURE}'
        )


def run(command: Sequence[str], address: pci_address.PciAddress) -> None:
    """Run the operator's command, as nova-compute's user, without a shell.

    :param command: a program and its arguments; the address is added
    :raises DeviceError: the command does not exist, takes longer than
        :data:`COMMAND_TIMEOUT_S`, or its exit status is not 0.
    """
    try:
        answer = vendor_tool.run(
            (*command, str(address)), COMMAND_TIMEOUT_S, most=None
        )
    except OSError as error:
        raise exceptions.DeviceError(
            f'{address} is not cleaned by {command[0]}: {error}'
        ) from error
    if answer.status in vendor_tool.TIMED_OUT:
        reason = f'not finished after {COMMAND_TIMEOUT_S} s'
    elif answer.status:
        reason = f'exit status {answer.status}, {answer.said}'
    else:
        return
    raise exceptions.DeviceError(
        f'{address} is not cleaned by {command[0]}: {reason}'
    )
