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

"""The texts in Cyborg's columns, as its drivers write them."""

from collections.abc import Mapping
import json
import re
from typing import Any

from nova_accel import exceptions
from nova_accel.model import attach_handle
from nova_accel.model import pci_address

_PCI_ID = re.compile(r'(0x)?(?P<digits>[0-9a-f]{4})', re.IGNORECASE)

#: The id of what does not say it.
_NO_ID = '0000'


def groups(profile_json: str) -> list[dict[str, str | int]]:
    """The groups of a device profile, as its creator wrote them.

    :raises InvalidDeviceProfile: it has none
    """
    try:
        found = json.loads(profile_json)['groups']
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, list) or not all(
        isinstance(group, dict)
        and all(isinstance(value, (str, int)) for value in group.values())
        for group in found
    ):
        raise exceptions.InvalidDeviceProfile(
            'A device profile needs a list of groups, with texts or numbers '
            'as values'
        )
    return found


def address(text: str | None) -> pci_address.PciAddress | None:
    """The PCI address in a text such as ``{"bus": "0c", ...}``, if any."""
    try:
        return _address(_object(text))
    except exceptions.InvalidName:
        return None


def handle_info(attach_type: str, attach_info: str) -> dict[str, Any]:
    """``attach_info``, as :attr:`attach_handle.AttachHandle.info` has it.

    :raises InvalidName: it is no PCI function and no mediated device
    """
    value = _object(attach_info)
    if attach_type == attach_handle.HandleType.PCI:
        return attach_handle.AttachHandle(
            '',
            _address(value),
            physical_network=value.get('physical_network'),
        ).info
    if attach_type == attach_handle.HandleType.MDEV:
        if not isinstance(value.get('asked_type'), str):
            raise exceptions.InvalidName(
                f'{attach_info!r} says no type of a mediated device'
            )
        return attach_handle.AttachHandle(
            '', _address(value), mdev_type=value['asked_type']
        ).info
    raise exceptions.InvalidName(
        f'its type is {attach_type}, not PCI and not MDEV'
    )


def pci_id(text: str) -> str:
    """The four lower-case digits of ``10de`` or ``0x10DE``; zeros if none."""
    match = _PCI_ID.fullmatch(text)
    return _NO_ID if match is None else match['digits'].lower()


def product_id(std_board_info: str | None) -> str:
    """The product id of a device, which drivers name differently."""
    try:
        value = _object(std_board_info)
    except exceptions.InvalidName:
        return _NO_ID
    return pci_id(str(value.get('product_id') or value.get('device_id')))


def _object(text: str | None) -> Mapping[str, Any]:
    try:
        value = json.loads(text or '')
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise exceptions.InvalidName(f'{text!r} is not a JSON object')
    return value


def _address(value: Mapping[str, Any]) -> pci_address.PciAddress:
    """Cyborg's drivers leave out leading zeros.

    :raises InvalidName: it is not a PCI address
    """
    parts = [
        str(value.get(part, '')).zfill(width)
        for part, width in (('domain', 4), ('bus', 2), ('device', 2))
    ]
    return pci_address.PciAddress.parse(
        f'{":".join(parts)}.{value.get("function", "")}'
    )
