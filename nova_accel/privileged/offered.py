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

"""Take only the PCI functions that this host offers to guests.

The lines of ``device_spec`` say which these are. The process of root reads
them itself, from the files of configuration that its command names.
"""

from collections.abc import Iterator
import contextlib
import pathlib

from oslo_config import cfg

from nova_accel import exceptions
from nova_accel import root_options
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import offered_functions
from nova_accel.model.devices import subsystem
from nova_accel.privileged import pci_function

# The bytes that are read of an id, which is shorter.
_MAX_ID = 16


def check(
    sysfs: pathlib.Path, address: str, driver: str | None = None
) -> device_spec.DeviceSpec:
    """The line that offers a function.

    :param sysfs: the mount point of sysfs
    :param address: from :func:`pci_function.address`
    :param driver: the one that the function must be bound to
    :raises ValueError: it does not exist, no line offers it, or it is bound to
        another driver.
    """
    function = _function(sysfs, address)
    if function is None:
        raise ValueError(f'address {address}: there is no such PCI function')
    bound = _link(sysfs, address, 'driver')
    if driver is not None and bound != driver:
        raise ValueError(
            f'address {address}: its driver is {bound}, not {driver}'
        )
    line = offered_functions.line_of(
        _lines(),
        function,
        _function(sysfs, _link(sysfs, address, 'physfn')),
        _functions(sysfs, _of_slot(function.address)),
        _functions(sysfs, _of_group(sysfs, address)),
    )
    if line is None:
        raise ValueError(
            f'address {address}: no line of [nova_accel] device_spec offers '
            'it, in the configuration that this process of root was started '
            'with'
        )
    return line


def _lines() -> tuple[device_spec.DeviceSpec, ...]:
    try:
        return device_spec.parse(
            cfg.CONF[root_options.GROUP].device_spec, drivers=None
        )
    except exceptions.InvalidDeviceSpec as error:
        # Only builtin exceptions reach the caller, which is another process.
        raise ValueError(str(error)) from error


def _functions(
    sysfs: pathlib.Path, addresses: Iterator[str]
) -> Iterator[offered_functions.Function]:
    for address in addresses:
        found = _function(sysfs, address)
        if found is not None:
            yield found


def _function(
    sysfs: pathlib.Path, address: str | None
) -> offered_functions.Function | None:
    """None if it does not exist."""
    if address is None:
        return None
    try:
        vendor, product = (
            pci_function.attribute(sysfs, address, name)
            .read_text()
            .strip()
            .removeprefix('0x')
            for name in ('vendor', 'device')
        )
    except FileNotFoundError:
        return None
    return offered_functions.Function(
        pci_address.PciAddress.parse(address),
        vendor,
        product,
        _subsystem(sysfs, address),
    )


def _subsystem(
    sysfs: pathlib.Path, address: str
) -> subsystem.Subsystem | None:
    """The function's board, as nova-compute knows it."""
    card = _link(sysfs, address, 'physfn')
    return subsystem.of(
        *_own_ids(sysfs, address),
        None if card is None else subsystem.of(*_own_ids(sysfs, card)),
    )


def _own_ids(
    sysfs: pathlib.Path, address: str
) -> tuple[str | None, str | None]:
    vendor, product = (
        _own_id(sysfs, address, name)
        for name in ('subsystem_vendor', 'subsystem_device')
    )
    return vendor, product


def _own_id(sysfs: pathlib.Path, address: str, name: str) -> str | None:
    """None if the file is absent, unreadable, or has no id."""
    with (
        contextlib.suppress(OSError, ValueError),
        pci_function.attribute(sysfs, address, name).open('rb') as file,
    ):
        return subsystem.parse_id(file.read(_MAX_ID).decode().strip('\n'))
    return None


def _of_slot(address: pci_address.PciAddress) -> Iterator[str]:
    slot, own = str(address).rsplit('.', 1)
    return (f'{slot}.{number}' for number in range(8) if str(number) != own)


def _of_group(sysfs: pathlib.Path, address: str) -> Iterator[str]:
    directory = sysfs / 'bus/pci/devices' / address / 'iommu_group/devices'
    with contextlib.suppress(FileNotFoundError):
        yield from (
            path.name
            for path in sorted(directory.iterdir())
            # A group may have devices that are on no PCI bus.
            if pci_function.is_address(path.name)
        )


def _link(sysfs: pathlib.Path, address: str, name: str) -> str | None:
    """The last part of a link's target, None if there is none."""
    try:
        return (sysfs / 'bus/pci/devices' / address / name).readlink().name
    except FileNotFoundError:
        return None
