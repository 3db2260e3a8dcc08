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

"""The types that regions of FPGAs have told, kept across restarts.

A card tells its host nothing while a guest has the whole card, and
nova-compute may be restarted meanwhile. If the type of a region is not known,
no server that asks for that type can get the region.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import pathlib
from typing import Any

from nova_accel.model import bounds
from nova_accel.model import decoding
from nova_accel.model.devices import hardware
from nova_accel.model.fpga import region_contents
from nova_accel.state import value_file

#: Region -> its type.
_Types = Mapping[str, region_contents.ReportedType]

#: Device -> the types of its regions.
_OfDevices = Mapping[str, _Types]


def _told_type(value: Any) -> region_contents.ReportedType:
    """The reverse of a pair: the type, and its traits."""
    match value:
        case [type_uuid, traits]:
            return region_contents.ReportedType(
                decoding.name(type_uuid), frozenset(decoding.traits(traits))
            )
    raise ValueError('it is no pair')


class KnownTypes:
    """The memory of one host, in a file.

    Without the file no type is known. A boot of the host forgets the types,
    too: another card may be in the same place then, and no guest has it yet.

    :param boot_id: the kernel's name of this boot
    """

    def __init__(self, path: pathlib.Path, boot_id: str) -> None:
        self._boot_id = boot_id
        self._file: value_file.ValueFile[_OfDevices] = value_file.ValueFile(
            path,
            self._from_json,
            self._to_json,
            {},
            'the types of FPGA regions are not known until their cards '
            'tell them',
            'The types of FPGA regions would not be known after a restart',
        )

    def damaged(self) -> list[tuple[None, str]]:
        """The fault of the file, if it was damaged at the last start."""
        return [(None, why) for why in self._file.damaged]

    def remembered(
        self, devices: Iterable[hardware.Device]
    ) -> tuple[hardware.Device, ...]:
        """Devices with the types that their regions told last.

        The types of these devices are remembered from now on, and of no
        others. Nothing is written if nothing is new. Does not raise.
        """
        found = tuple(
            region_contents.remembered(
                device, self._file.value.get(device.name, {})
            )
            for device in devices
        )
        self._file.write(
            {
                device.name: told
                for device in found
                if (told := region_contents.reported_types(device))
            }
        )
        return found

    def _from_json(self, value: Any) -> _OfDevices:
        field = decoding.Fields(value)
        types = field(
            'types',
            decoding.mapped(
                decoding.name,
                decoding.mapped(decoding.name, _told_type),
                bounds.MAX_DEVICES,
            ),
        )
        return (
            types if field('boot_id', decoding.name) == self._boot_id else {}
        )

    def _to_json(self, types: _OfDevices) -> Any:
        return {
            'boot_id': self._boot_id,
            'types': {
                device: {
                    region: (told.type_uuid, sorted(told.traits))
                    for region, told in types_of.items()
                }
                for device, types_of in types.items()
            },
        }
