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

"""Which PCI functions the lines of ``device_spec`` offer to guests.

A line names a card, but a guest may get another function: a virtual one, or
those that a driver hands out together with the card.
"""

from collections.abc import Iterable
import dataclasses

from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import device_spec_keys
from nova_accel.model.devices import subsystem as subsystems

# The driver whose cards are managed by function 0, and used by function 1.
_XRT = 'xrt'

_Unit = device_spec_keys.UnitKind


@dataclasses.dataclass(frozen=True)
class Function:
    """A PCI function, with the ids that sysfs has, without ``0x``."""

    address: pci_address.PciAddress
    vendor_id: str
    product_id: str
    subsystem: subsystems.Subsystem | None = None


def line_of(
    specs: Iterable[device_spec.DeviceSpec],
    function: Function,
    physical: Function | None,
    of_slot: Iterable[Function],
    of_group: Iterable[Function],
) -> device_spec.DeviceSpec | None:
    """The line that offers a function, None if none does.

    :param physical: its physical function, None if it is none's virtual one
    :param of_slot: the other functions of its slot
    :param of_group: those of its IOMMU group
    """
    specs = tuple(specs)
    own = device_spec.first_match(specs, function)
    if own is None and physical is not None:
        own = device_spec.first_match(specs, physical)
    if own is not None:
        return own
    for others, is_shared in ((of_slot, _is_slot), (of_group, _is_group)):
        for other in others:
            line = device_spec.first_match(specs, other)
            if line is not None and is_shared(line):
                return line
    return None


def _is_slot(line: device_spec.DeviceSpec) -> bool:
    return line.whole or line.driver == _XRT or line.unit is _Unit.SLOT


def _is_group(line: device_spec.DeviceSpec) -> bool:
    return line.unit is _Unit.IOMMU_GROUP
