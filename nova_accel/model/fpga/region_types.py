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

"""FPGA region types: they say which images fit, and belong to a product.

Cyborg's agent-driver specification demands this: "the same region type ID will
never show up in products with different PCI IDs". A product may have several
PCI ids, and a PCI id several region types. Boards with the same PCI ids may
share one.
"""

from collections.abc import Iterable

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.devices import hardware


def of(device: hardware.Device) -> frozenset[str]:
    """The traits of the types of the device's regions."""
    return frozenset(
        trait
        for deployable in device.deployables
        for trait in deployable.traits
        if naming.is_region_trait(trait)
    )


def check(device: hardware.Device, others: Iterable[hardware.Device]) -> None:
    """Check that no other product has regions of the same types.

    :raises DeviceError: another product has one; the text names both devices.
    """
    mine = of(device)
    for other in others:
        shared = sorted(mine & of(other))
        if shared and (
            (device.vendor, device.product) != (other.vendor, other.product)
            and _ids(device) != _ids(other)
        ):
            raise exceptions.DeviceError(
                f'its region type {shared[0]} is that of another product: '
                f'{other.address} is {other.vendor} {other.product}, this is '
                f'{device.vendor} {device.product}'
            )


def _ids(device: hardware.Device) -> tuple[str, str]:
    return device.vendor_id, device.product_id
