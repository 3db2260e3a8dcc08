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

"""Lines of ``[nova_accel] device_spec`` that offer what Cyborg offered.

Each PCI function that Cyborg handed out has a line of its own, and each card
of mediated devices has one for all that it makes. Cyborg's traits are in the
lines, so that device profiles which ask for them are still served.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import json
from typing import Any
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.cyborg import cyborg_texts


class LineUnit(NamedTuple):
    """A unit that Cyborg hands out, in the texts of its columns."""

    traits: tuple[str, ...]
    resource_class: str
    vendor: str
    attach_type: str
    attach_info: str


_TYPES = {
    resource_class: type_
    for type_, resource_class in naming.RESOURCE_CLASSES.items()
}

#: Type -> vendor id, or any -> the driver that knows such devices. All others
#: are handed out as they are.
_DRIVERS: Mapping[str, Mapping[str | None, str]] = {
    'AICHIP': {'19e5': 'ascend'},
    'FPGA': {'8086': 'fpga_dfl', '10ee': 'xrt'},
    'QAT': {'8086': 'qat'},
    'SSD': {None: 'nvme'},
}


def write(units: Iterable[LineUnit]) -> tuple[str, ...]:
    """The lines of a host, in the order of addresses, each once.

    A unit that is no PCI function and no mediated device has none.
    """
    lines = set()
    for unit in units:
        try:
            info = cyborg_texts.handle_info(unit.attach_type, unit.attach_info)
        except exceptions.InvalidName:
            continue
        lines.add(
            json.dumps(
                {
                    'address': '{domain}:{bus}:{device}.{function}'.format(
                        **info
                    ),
                    **_driver(unit.resource_class, unit.vendor, info),
                    **_traits(unit.traits),
                }
            )
        )
    return tuple(sorted(lines))


def _driver(
    resource_class: str, vendor: str, info: dict[str, Any]
) -> dict[str, str]:
    if 'asked_type' in info:
        return {'driver': 'mdev', 'mdev_type': info['asked_type']}
    type_ = _TYPES.get(resource_class)
    if type_ is None:
        # The type is in the catalogue, or the operator adds it.
        return {'driver': 'pci', 'resource_class': resource_class}
    if type_ == 'NIC' and 'physical_network' in info:
        return {
            'driver': 'nic',
            'physical_network': info['physical_network'],
        }
    known = _DRIVERS.get(type_, {})
    driver = known.get(cyborg_texts.pci_id(vendor), known.get(None))
    if driver is not None:
        return {'driver': driver}
    return {'driver': 'pci', 'type': type_}


def _traits(traits: Iterable[str]) -> dict[str, list[str]]:
    """The owner's own trait is no operator's to give."""
    custom = [trait for trait in traits if trait.startswith('CUSTOM_')]
    return {'traits': custom} if custom else {}
