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

"""Check that the units that a driver offers can be attached to guests.

The rules are VFIO's and libvirt's. An IOMMU group goes to one guest as a
whole, except for the bridges above it
(https://docs.kernel.org/driver-api/vfio.html). A card takes its virtual
functions and mediated devices along.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Set

from nova_accel import exceptions
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec_keys
from nova_accel.model.devices import hardware

#: The greatest domain of the 16 bits that QEMU takes.
_LAST_DOMAIN = 0xFFFF

_Functions = Mapping[pci_address.PciAddress, pci_function.PciFunction]


def unit(
    function: pci_function.PciFunction,
    kind: device_spec_keys.UnitKind,
    functions: _Functions,
) -> tuple[pci_address.PciAddress, ...]:
    """The functions that go into a guest together; the given one is first.

    :param functions: all functions of the host
    """
    if kind is device_spec_keys.UnitKind.SLOT:
        others = {
            other.address
            for other in functions.values()
            if _same_slot(other.address, function.address)
            and other.parent_address == function.parent_address
        }
    elif kind is device_spec_keys.UnitKind.IOMMU_GROUP:
        others = _group(function, functions)
    else:
        others = set()
    return (function.address, *sorted(others - {function.address}))


def refusals(
    device: hardware.Device,
    host: libvirt_devices.HostDevices,
    line_keys: Set[str] = frozenset(),
) -> dict[str, str]:
    """Why units of a device cannot be attached to a guest.

    If units share a function, all but the first are refused, unless they
    exclude each other anyway.

    :param line_keys: the keys that the device's driver reads, see
        :attr:`nova_accel.drivers.base.Driver.line_keys`; the cure is one of
        them
    :returns: uuid of an attach handle -> the reason
    """
    found = {}
    seen: set[pci_address.PciAddress] = set()
    for handle in device.handles:
        try:
            parts = [
                _present(address, host)
                for address in handle.functions or (handle.address,)
            ]
            if handle.functions:
                _check_unit(handle, parts, seen, host, line_keys)
        except exceptions.DeviceError as error:
            found[handle.uuid] = str(error)
        if handle.slice is None:
            seen.update(handle.functions)
    return found


def _check_unit(
    handle: attach_handle.AttachHandle,
    parts: Iterable[pci_function.PciFunction],
    seen: Set[pci_address.PciAddress],
    host: libvirt_devices.HostDevices,
    line_keys: Set[str],
) -> None:
    for function in parts:
        if function.address in seen:
            raise exceptions.DeviceError(
                f'{function.address} is in two of its units'
            )
        _check_function(function, handle, host, line_keys)


def _present(
    address: pci_address.PciAddress, host: libvirt_devices.HostDevices
) -> pci_function.PciFunction:
    """:raises DeviceError: libvirt does not list it, or not describe it."""
    try:
        return host.functions[address]
    except KeyError:
        raise exceptions.DeviceError(
            f'{address} is not among libvirt\'s node devices'
        ) from None


def _check_function(
    function: pci_function.PciFunction,
    handle: attach_handle.AttachHandle,
    host: libvirt_devices.HostDevices,
    line_keys: Set[str],
) -> None:
    if function.is_bridge:
        raise exceptions.DeviceError(f'{function.address} is a bridge')
    # QEMU 10.0 still refuses the address ("Property 'vfio-pci.host' doesn't
    # take value"), and Nova skips such a function (nova.pci.devspec).
    if function.address.domain > _LAST_DOMAIN:
        raise exceptions.DeviceError(
            f'the PCI domain of {function.address} has more than 16 bits, '
            'which QEMU does not take. Intel VMD makes such domains: turn it '
            'off in the firmware for the slot, or leave the device out of '
            'device_spec'
        )
    # A card of many shapes is cleared before a guest gets it.
    if handle.slice is None:
        _check_not_carved(function, host)
    _check_isolated(function, handle, host, line_keys)


def _check_not_carved(
    function: pci_function.PciFunction, host: libvirt_devices.HostDevices
) -> None:
    if function.virtual_functions:
        raise exceptions.DeviceError(
            f'{len(function.virtual_functions)} virtual functions of '
            f'{function.address} are enabled: they can be offered, it cannot'
        )
    if function.parent_address is not None and function.mdev_types:
        raise exceptions.DeviceError(
            f'{function.address} makes mediated devices '
            f'({", ".join(sorted(function.mdev_types))}): it is a part of the '
            f'carved card {function.card}, which a driver like mdev offers'
        )
    made = [
        mdev
        for mdev in host.mdevs
        if _card(mdev.parent, host.functions) == function.card
    ]
    if made:
        raise exceptions.DeviceError(
            f'the card {function.card} of {function.address} is carved: it '
            f'has {len(made)} mediated devices'
        )


def _check_isolated(
    function: pci_function.PciFunction,
    handle: attach_handle.AttachHandle,
    host: libvirt_devices.HostDevices,
    line_keys: Set[str],
) -> None:
    if function.iommu_group is None:
        raise exceptions.DeviceError(
            f'{function.address} is in no IOMMU group: the IOMMU of the host '
            'is off, or the firmware does not describe it'
        )
    others = sorted(_group(function, host.functions) - set(handle.functions))
    if others:
        in_slot = all(_same_slot(other, handle.address) for other in others)
        raise exceptions.DeviceError(
            f'{function.address} shares the IOMMU group '
            f'{function.iommu_group} with {", ".join(map(str, others))}: '
            + _cure(in_slot, line_keys)
        )


def _cure(in_slot: bool, line_keys: Set[str]) -> str:
    """The cure for a function that shares its IOMMU group.

    :param in_slot: whether it shares it with functions of its slot alone
    """
    if 'unit' in line_keys:
        units = '"slot" or "iommu_group"' if in_slot else '"iommu_group"'
        return f'"unit": {units} in the line hands them over together'
    if 'whole' in line_keys and in_slot:
        return '"whole": true in the line hands them over together'
    return (
        'turn on access control (ACS) in the firmware, or move the device to '
        'a slot where it is alone in its group'
    )


def _group(
    function: pci_function.PciFunction, functions: _Functions
) -> set[pci_address.PciAddress]:
    """The function's IOMMU group without its known bridges."""
    return {
        address
        for address in function.iommu_members
        if address not in functions or not functions[address].is_bridge
    }


def _card(
    address: pci_address.PciAddress, functions: _Functions
) -> pci_address.PciAddress:
    return functions[address].card if address in functions else address


def _same_slot(
    one: pci_address.PciAddress, other: pci_address.PciAddress
) -> bool:
    return (one.domain, one.bus, one.slot) == (
        other.domain,
        other.bus,
        other.slot,
    )
