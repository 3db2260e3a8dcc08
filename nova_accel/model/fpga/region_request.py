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

"""The requests of a server's ARQs and image to FPGA regions."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import naming
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import region_contents
from nova_accel.model.profiles import device_profile

#: The namespace of the keys in a group, and in the properties of the image
#: that a server boots from.
_PREFIX = 'accel:'


@dataclasses.dataclass(frozen=True)
class RegionRequest:
    """The request of a server to one region of a device.

    ``wanted`` is None if the region is given as it is. ``functions`` are then
    the function traits that each of its deployables must have, by the
    deployable's name.
    """

    device: hardware.Device
    region: programmable.Region
    wanted: fpga_bitstream.WantedBitstream | None
    functions: Mapping[str, frozenset[str]]

    @property
    def key(self) -> tuple[str, str]:
        """The names of the device and the region."""
        return self.device.name, self.region.name

    def with_functions(
        self, deployable: str, traits: frozenset[str]
    ) -> 'RegionRequest':
        """The request with more functions that a deployable must have."""
        before = self.functions.get(deployable, frozenset())
        return dataclasses.replace(
            self, functions={**self.functions, deployable: before | traits}
        )

    def check(
        self, known: region_contents.KnownContents, project_id: str | None
    ) -> None:
        """Make sure that the region holds what is asked for.

        :param known: of the region
        :param project_id: the server's
        :raises DeviceError: the region is bad, or may hold another project's
            circuit, or has lost a function since the server was scheduled.
        """
        place = self.device.place(self.region)
        fault = known.fault or known.unclean_for(project_id)
        if fault is not None:
            raise exceptions.DeviceError(f'{place}: {fault}')
        overlaid = region_contents.overlaid(
            self.device, {self.region.name: known}
        )
        for deployable in overlaid.deployables:
            missing = (
                self.functions.get(deployable.name, frozenset())
                - deployable.traits
            )
            if missing:
                raise exceptions.DeviceError(
                    f'{place} has {", ".join(sorted(missing))} no more'
                )


def of(
    arqs: Iterable[arq_types.Arq],
    regions: Iterable[tuple[hardware.Device, programmable.Region]],
    image_properties: Mapping[str, Any],
) -> list[RegionRequest]:
    """The requests of ARQs, one for each of their regions.

    :param regions: all regions of the host, with their devices
    :param image_properties: of the image that the server boots from. They
        apply only to regions that can be programmed
    :raises InvalidDeviceProfile: nonsense is asked for.
    :raises DeviceError: a device without regions is to be programmed.
    :raises Conflict: two things are asked of one region.
    """
    places = dict(_places(regions))
    requests: dict[tuple[str, str], RegionRequest] = {}
    for arq in arqs:
        if arq.handle.uuid not in places:
            if read_wanted(arq.group) is not None:
                raise exceptions.DeviceError(
                    f'{arq.handle.address} has no region that can be '
                    'programmed'
                )
            continue
        device, region, deployable = places[arq.handle.uuid]
        wanted = read_wanted(arq.group, image_properties)
        new = RegionRequest(device, region, wanted, {})
        before = requests.get(new.key, new)
        if before.wanted != wanted:
            raise exceptions.Conflict(
                f'{device.place(region)} cannot hold {before.wanted} and '
                f'{wanted} at a time'
            )
        requests[new.key] = before.with_functions(deployable, _functions(arq))
    return list(requests.values())


def read_wanted(
    group_properties: Mapping[str, str],
    image_properties: Mapping[str, Any] | None = None,
) -> fpga_bitstream.WantedBitstream | None:
    """The bitstream that a group or a server's image asks for.

    :param group_properties: the properties of a group, with or without
        ``accel:`` before their names; other keys are ignored
    :param image_properties: the properties of the image that the server boots
        from; only the ones with ``accel:`` count
    :returns: None if nothing is asked for
    :raises InvalidDeviceProfile: more than one thing is asked for, or an id is
        not a uuid.
    """
    asked = {
        (name, device_profile.property_value(name, value))
        for properties in (
            {
                f'{_PREFIX}{key.removeprefix(_PREFIX)}': value
                for key, value in group_properties.items()
            },
            image_properties or {},
        )
        for name, value in _set_properties(properties)
    }
    if len(asked) > 1:
        raise exceptions.InvalidDeviceProfile(
            'the group of the device profile and the image together can ask '
            'for one bitstream or function only, not '
            + ' and '.join(
                f'{_PREFIX}{name}={value}' for name, value in sorted(asked)
            )
        )
    return fpga_bitstream.WantedBitstream(**dict(asked)) if asked else None


def _set_properties(
    properties: Mapping[str, Any],
) -> Iterator[tuple[str, str]]:
    for name in sorted(device_profile.PROPERTIES):
        value = str(properties.get(f'{_PREFIX}{name}') or '').strip()
        if value:
            yield name, value


def _functions(arq: arq_types.Arq) -> frozenset[str]:
    """The function traits that an ARQ's group requires."""
    return frozenset(
        trait
        for key, value in arq.group.items()
        if value == 'required'
        and naming.is_function_trait(trait := key.removeprefix('trait:'))
    )


def _places(
    regions: Iterable[tuple[hardware.Device, programmable.Region]],
) -> Iterator[tuple[str, tuple[hardware.Device, programmable.Region, str]]]:
    """Attach handle uuid -> its device, region, and deployable's name."""
    for device, region in regions:
        for deployable in device.deployables:
            if deployable.region == region.name:
                for handle in deployable.handles:
                    yield handle.uuid, (device, region, deployable.name)
