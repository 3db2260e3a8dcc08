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

"""The units of a device that instances hold, whatever its driver sees now.

A driver sees less of a device while that changes hands: a card that goes into
a guest, or comes back, has no host driver for a moment, and no regions, types
or functions. The device is still there, and still the instance's. So its last
answer counts for what is held.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Set
import dataclasses

from nova_accel.model import attach_handle
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable

IsThere = Callable[[attach_handle.AttachHandle], bool]


def keep(
    last: hardware.Device, held: Set[str], is_there: IsThere, reason: str
) -> hardware.Device | None:
    """A device that its driver refuses now, as it was at the last look.

    No one can get the units of it that are free. So it is faulty if it has
    any.

    :param held: the uuids of the attach handles that instances hold
    :param is_there: whether the host still has the functions of a unit; one
        that is gone is left out
    :param reason: why the driver refuses it
    :returns: None if no instance holds any of it
    """
    found = dataclasses.replace(
        last,
        deployables=tuple(
            dataclasses.replace(
                each, handles=tuple(filter(is_there, each.handles))
            )
            for each in last.deployables
        ),
    )
    uuids = {handle.uuid for handle in found.handles}
    if uuids.isdisjoint(held):
        return None
    return dataclasses.replace(
        found, fault=found.fault or (None if uuids <= held else reason)
    )


def completed(
    found: hardware.Device,
    last: hardware.Device,
    held: Set[str],
    is_there: IsThere,
) -> hardware.Device:
    """A device with the held units that its driver leaves out now.

    A unit is not added if the driver offers a part of it otherwise. A card
    that a guest has as a whole also keeps the units that this one excludes,
    whose functions are not there meanwhile.

    :param last: the device as it was at the last look
    :param held: as for :func:`keep`
    :param is_there: as for :func:`keep`
    """
    found = _with_known_regions(found, last, held)
    offered = {
        name
        for handle in found.handles
        for name in (handle.uuid, *handle.parts)
    }
    excluded = set(last.excluded(held))
    missing = {
        each.name: handles
        for each in last.deployables
        if (
            handles := tuple(
                handle
                for handle in each.handles
                if offered.isdisjoint((handle.uuid, *handle.parts))
                and (
                    handle.uuid in excluded
                    or (handle.uuid in held and is_there(handle))
                )
            )
        )
    }
    if not missing:
        return found
    names = {each.name for each in found.deployables}
    deployables = (
        *(
            dataclasses.replace(
                each, handles=(*each.handles, *missing.get(each.name, ()))
            )
            for each in found.deployables
        ),
        *(
            dataclasses.replace(each, handles=missing[each.name])
            for each in last.deployables
            if each.name in missing.keys() - names
        ),
    )
    return dataclasses.replace(
        found,
        deployables=deployables,
        regions=(*found.regions, *_regions(found, last, deployables)),
    )


def _with_known_regions(
    found: hardware.Device, last: hardware.Device, held: Set[str]
) -> hardware.Device:
    """A held device with its last regions, if its driver cannot see them.

    A driver does not see the type of a region that a guest has, nor whether
    there are several. It guesses then.
    """
    types = {region.name: region.type_uuid for region in last.regions}
    if not any(handle.uuid in held for handle in found.handles) or all(
        region.type_uuid is not None or types.get(region.name, '') is None
        for region in found.regions
    ):
        return found
    known = {each.name: each for each in last.deployables}
    return dataclasses.replace(
        found,
        regions=last.regions,
        deployables=tuple(
            dataclasses.replace(
                known.get(each.name, each),
                handles=each.handles,
                fault=each.fault,
            )
            for each in found.deployables
        ),
    )


def _regions(
    found: hardware.Device,
    last: hardware.Device,
    deployables: Iterable[hardware.Deployable],
) -> list[programmable.Region]:
    """The regions of deployables that only the last look has found."""
    known = {region.name for region in found.regions}
    wanted = {each.region for each in deployables} - known
    return [region for region in last.regions if region.name in wanted]
