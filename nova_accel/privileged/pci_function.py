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

"""Check the PCI functions and attributes that callers name."""

import pathlib

from nova_accel import exceptions
from nova_accel.model import pci_address
from nova_accel.privileged import arguments


def address(text: str) -> str:
    """The address in the form of sysfs.

    :param text: ``0000:81:00.0``
    :raises ValueError: it is malformed.
    """
    try:
        return str(
            pci_address.PciAddress.parse(arguments.text('address', text))
        )
    except exceptions.InvalidName as error:
        # Only builtin exceptions reach the caller, which is another process.
        raise ValueError(f'address: {str(error)[:200]}') from error


def is_address(text: str) -> bool:
    """Whether a name of a device is that of a PCI function."""
    try:
        return address(text) == text
    except ValueError:
        return False


def attribute(sysfs: pathlib.Path, function: str, name: str) -> pathlib.Path:
    """The path of a function's attribute.

    :param function: the function's address, from :func:`address`
    :param name: a path below the function's directory
    :raises ValueError: the path leads out of the function's directory.
    :raises OSError: it does not exist.
    """
    # The function is a link into the tree of devices; no link may follow below
    # it.
    devices = (sysfs / 'devices').resolve(strict=True)
    directory = (sysfs / 'bus/pci/devices' / function).resolve(strict=True)
    path = (directory / name).resolve(strict=True)
    if path != directory / name or not path.is_relative_to(devices):
        raise ValueError(f'{name} of {function} is not in {devices}')
    return path
