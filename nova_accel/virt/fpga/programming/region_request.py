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
from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import fpga_bitstream
from nova_accel.model import naming
from nova_accel.model import region_contents
from nova_accel.virt.fpga.regions import region_target


@dataclasses.dataclass(frozen=True)
class Request:
    """The request of a server to one region.

    ``wanted`` is None if the region is given as it is. ``functions`` are then
    the function traits that each of its deployables must have, by the
    deployable's name.
    """

    target: region_target.Target
    wanted: fpga_bitstream.Wanted | None
    functions: Mapping[str, frozenset[str]]

    def check(
        self, known: region_contents.Known, project_id: str | None
    ) -> None:
        """Make sure that the region holds what is asked for.

        :param known: of the region
        :param project_id: the server's
        :raises DeviceError: the region is bad, or may hold another project's
            circuit, or has lost a function since the server was scheduled.
        """
        fault = known.fault or known.unclean_for(project_id)
        if fault is not None:
            raise exceptions.DeviceError(f'{self.target}: {fault}')
        overlaid = region_contents.overlaid(
            self.target.device, {self.target.region.name: known}
        )
        for deployable in overlaid.deployables:
            missing = (
                self.functions.get(deployable.name, frozenset())
                - deployable.traits
            )
            if missing:
                raise exceptions.DeviceError(
                    f'{self.target} has {", ".join(sorted(missing))} no more'
                )


def of(
    arqs: Iterable[arq_types.Arq],
    targets: Iterable[region_target.Target],
    image_properties: Mapping[str, Any],
) -> list[Request]:
    """The requests of ARQs, one for each of their regions.

    :param targets: all regions of the host
    :param image_properties: of the image that the server boots from. They
        apply only to regions that can be programmed
    :raises InvalidDeviceProfile: nonsense is asked for.
    :raises DeviceError: a device without regions is to be programmed.
    :raises Conflict: two things are asked of one region.
    """
    places = {
        handle.uuid: (target, deployable)
        for target in targets
        for deployable in target.deployables
        for handle in deployable.handles
    }
    requests: dict[tuple[str, str], Request] = {}
    for request in arqs:
        if request.handle.uuid not in places:
            if fpga_bitstream.wanted(request.group) is not None:
                raise exceptions.DeviceError(
                    f'{request.handle.address} has no region that can be '
                    'programmed'
                )
            continue
        target, deployable = places[request.handle.uuid]
        wanted = fpga_bitstream.wanted(request.group, image_properties)
        key = target.device.name, target.region.name
        before = requests.get(key)
        if before is not None and before.wanted != wanted:
            raise exceptions.Conflict(
                f'{target} cannot hold {before.wanted} and {wanted} at a time'
            )
        functions = dict(before.functions) if before is not None else {}
        functions[deployable.name] = functions.get(
            deployable.name, frozenset()
        ) | _functions(request)
        requests[key] = Request(target, wanted, functions)
    return list(requests.values())


def _functions(request: arq_types.Arq) -> frozenset[str]:
    """The function traits that an ARQ's group requires."""
    return frozenset(
        trait
        for key, value in request.group.items()
        if value == 'required'
        and naming.is_function_trait(trait := key.removeprefix('trait:'))
    )
