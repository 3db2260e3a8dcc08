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

"""Add to a device the known contents of its regions.

A driver reports what it finds. The host's journal knows what was programmed,
verified and read back. Placement and the API get both together.
"""

from collections.abc import Mapping
import dataclasses

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable


@dataclasses.dataclass(frozen=True)
class Unclean:
    """Why a region must be programmed again before others get it.

    ``owner`` is the project whose servers may get it as it is,
    :data:`nova_accel.model.devices.programmable.UNKNOWN_OWNER` if none may.
    ``reason`` is for administrators.
    """

    owner: str
    reason: str


@dataclasses.dataclass(frozen=True)
class KnownContents:
    """The present knowledge of one region.

    ``contents`` are verified; None if we did not program what the region
    holds. ``fault`` is why no one can get it, None if somebody can.
    ``is_changing`` says that it is being programmed. ``unclean`` is why it may
    have to be programmed before somebody gets it.
    """

    contents: programmable.Contents | None = None
    fault: str | None = None
    is_changing: bool = False
    unclean: Unclean | None = None

    @property
    def is_operators(self) -> bool:
        """Whether no project's image is, or was, in the region."""
        if self.contents is not None:
            return self.contents.owner is None
        return not self.is_changing and self.unclean is None

    def unclean_for(self, project_id: str | None) -> str | None:
        """Why a project's servers may not get the region as it is.

        Contents from a project's own image are for that project alone.

        :returns: None if they may
        """
        if self.unclean is None or (
            project_id is not None
            and (
                project_id == self.unclean.owner != programmable.UNKNOWN_OWNER
            )
        ):
            return None
        return self.unclean.reason


@dataclasses.dataclass(frozen=True)
class ReportedType:
    """The type that a region reported, and the traits for it."""

    type_uuid: str
    traits: frozenset[str]


def overlaid(
    device: hardware.Device, known: Mapping[str, KnownContents]
) -> hardware.Device:
    """The device with the knowledge of its regions added.

    If no one can get any part of the device, it is faulty as a whole.
    Otherwise a region's fault is an attribute, for people to read. An unclean
    region can still be given to a server that has it programmed.

    Function traits are believed only from the operator's bitstreams, and from
    the device itself unless a project's image was programmed into it. The
    words of a circuit are its maker's, too.

    :param known: region name -> knowledge; other regions are unknown
    """
    if not known:
        return device
    deployables = tuple(
        _overlaid(device, deployable, known.get(deployable.region or ''))
        for deployable in device.deployables
    )
    faults = {
        name: each.fault
        for name, each in known.items()
        if each.fault is not None
    }
    fault = device.fault
    if (
        fault is None
        and deployables
        and all(deployable.fault is not None for deployable in deployables)
    ):
        fault = '; '.join(
            f'{name}: {text}' for name, text in sorted(faults.items())
        )
    return dataclasses.replace(
        device,
        deployables=deployables,
        fault=fault,
        attributes={
            **device.attributes,
            **{fault_key(name): text for name, text in faults.items()},
            **{
                f'{name} is unclean': each.unclean.reason
                for name, each in known.items()
                if each.unclean is not None
            },
        },
    )


def fault_key(region: str) -> str:
    """The device's attribute with the fault of a region."""
    return f'fault of {region}'


def reported_types(device: hardware.Device) -> dict[str, ReportedType]:
    """Region name -> type, for the regions that report their types."""
    return {
        region.name: ReportedType(
            region.type_uuid,
            frozenset(
                trait
                for deployable in device.deployables
                if deployable.region == region.name
                for trait in deployable.traits - device.operator_traits
                if naming.is_region_trait(trait)
            ),
        )
        for region in device.regions
        if region.type_uuid is not None
    }


def remembered(
    device: hardware.Device, told: Mapping[str, ReportedType]
) -> hardware.Device:
    """The device with remembered types where it reports none at present.

    While a guest has a whole card, the host cannot ask the card.

    :param told: region name -> the type that the device reported last
    """
    untold = {
        region.name: told[region.name]
        for region in device.regions
        if region.type_uuid is None and region.name in told
    }
    return (
        device
        if not untold
        else dataclasses.replace(
            device,
            regions=tuple(
                dataclasses.replace(
                    region, type_uuid=untold[region.name].type_uuid
                )
                if region.name in untold
                else region
                for region in device.regions
            ),
            deployables=tuple(
                dataclasses.replace(
                    deployable,
                    traits=deployable.traits
                    | untold[deployable.region].traits,
                )
                if deployable.region in untold
                else deployable
                for deployable in device.deployables
            ),
        )
    )


def with_shell(
    device: hardware.Device, shell: KnownContents
) -> hardware.Device:
    """The device with the knowledge of its shell added.

    If the shell is faulty, no one can get any part of the card.
    """
    if shell.fault is not None:
        return dataclasses.replace(device, fault=f'the shell: {shell.fault}')
    if shell.contents is None:
        return device
    return dataclasses.replace(
        device,
        attributes={
            **device.attributes,
            'shell bitstream': shell.contents.bitstream_id,
        },
    )


def _overlaid(
    device: hardware.Device,
    deployable: hardware.Deployable,
    known: KnownContents | None,
) -> hardware.Deployable:
    if known is None:
        return deployable
    traits = deployable.traits
    if not known.is_operators:
        traits -= function_traits(traits) - device.operator_traits
    if known.contents is None:
        return dataclasses.replace(
            deployable, traits=traits, fault=known.fault
        )
    # Only an operator's traits distinguish the units of a pool. A device that
    # reports its function itself is believed.
    if (
        known.is_operators
        and not device.pooled
        and not function_traits(traits)
    ):
        traits |= _function_traits(device, known.contents)
    return dataclasses.replace(
        deployable,
        traits=traits,
        fault=known.fault,
        bitstream_id=known.contents.bitstream_id,
    )


def _function_traits(
    device: hardware.Device, contents: programmable.Contents
) -> frozenset[str]:
    """The traits of the functions, none if the vendor's name prevents it."""
    try:
        return frozenset(
            naming.function_trait(device.type, device.vendor, uuid)
            for uuid in contents.function_uuids
        )
    except exceptions.InvalidName:
        return frozenset()


def function_traits(traits: frozenset[str]) -> frozenset[str]:
    """The traits that name an FPGA's function."""
    return frozenset(filter(naming.is_function_trait, traits))
