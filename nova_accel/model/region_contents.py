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

"""What is known of the regions of a device, put into what is published.

A driver says what it finds; what was programmed, verified and read back is
known from the host's journal. Both together are what Placement and the API
are told.
"""

from collections.abc import Mapping
import dataclasses

from nova_accel import exceptions
from nova_accel.model import device as device_model
from nova_accel.model import naming
from nova_accel.model import region as region_model


@dataclasses.dataclass(frozen=True)
class Unclean:
    """Why a region is not given to others before it is programmed anew.

    ``owner`` is the project whose servers get it as it is,
    :data:`nova_accel.model.region.UNKNOWN_OWNER` if none does. ``reason`` is
    for administrators.
    """

    owner: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Known:
    """What is known of one region at the moment.

    ``contents`` are verified, None if it holds something that was not
    programmed by us. ``fault`` is why nobody can be given it, None if
    somebody can. ``is_changing`` says that it is being programmed,
    ``unclean`` why it may have to be programmed before somebody gets it.
    """

    contents: region_model.Contents | None = None
    fault: str | None = None
    is_changing: bool = False
    unclean: Unclean | None = None

    @property
    def is_operators(self) -> bool:
        """Whether it holds nothing of a project's."""
        if self.contents is not None:
            return self.contents.owner is None
        return not self.is_changing and self.unclean is None

    def unclean_for(self, project_id: str | None) -> str | None:
        """Why a project's servers do not get it as it is.

        Contents from a project's own image are for that project alone.

        :returns: None if they do
        """
        if self.unclean is None or (project_id is not None and (
                project_id == self.unclean.owner
                != region_model.UNKNOWN_OWNER)):
            return None
        return self.unclean.reason


@dataclasses.dataclass(frozen=True)
class ToldType:
    """The type that a region has told, and the traits that say so."""

    type_uuid: str
    traits: frozenset[str]


def overlaid(device: device_model.Device,
             known: Mapping[str, Known]) -> device_model.Device:
    """The device with what is known of its regions.

    If nobody can be given any of it, it is faulty as a whole. Otherwise what
    is wrong with a region is an attribute, for people to read. One that is
    unclean can be given to whoever has it programmed.

    What a region does is believed of the operator's bitstreams alone, and of
    the device itself if nothing of a project's was programmed into it: what a
    circuit says of itself is its maker's word, too.

    :param known: by the name of the region; nothing is known of others
    """
    if not known:
        return device
    deployables = tuple(
        _overlaid(device, deployable, known.get(deployable.region or ''))
        for deployable in device.deployables)
    faults = {name: each.fault for name, each in known.items()
              if each.fault is not None}
    fault = device.fault
    if fault is None and deployables and all(
            deployable.fault is not None for deployable in deployables):
        fault = '; '.join(f'{name}: {text}'
                          for name, text in sorted(faults.items()))
    return dataclasses.replace(
        device, deployables=deployables, fault=fault, attributes={
            **device.attributes,
            **{f'fault of {name}': text for name, text in faults.items()},
            **{f'{name} is unclean': each.unclean.reason
               for name, each in known.items()
               if each.unclean is not None}})


def told_types(device: device_model.Device) -> dict[str, ToldType]:
    """By the name of the region, of those that tell their types."""
    return {region.name: ToldType(region.type_uuid, frozenset(
        trait for deployable in device.deployables
        if deployable.region == region.name
        for trait in deployable.traits - device.operator_traits
        if naming.is_region_trait(trait)))
        for region in device.regions if region.type_uuid is not None}


def remembered(device: device_model.Device,
               told: Mapping[str, ToldType]) -> device_model.Device:
    """The device with those types of its regions that it does not tell now.

    As long as a guest has the whole of a card, its host cannot ask it.

    :param told: what it told last, by the name of the region
    """
    untold = {region.name: told[region.name] for region in device.regions
              if region.type_uuid is None and region.name in told}
    return device if not untold else dataclasses.replace(
        device,
        regions=tuple(
            dataclasses.replace(
                region, type_uuid=untold[region.name].type_uuid)
            if region.name in untold else region
            for region in device.regions),
        deployables=tuple(
            dataclasses.replace(
                deployable, traits=deployable.traits
                | untold[deployable.region].traits)
            if deployable.region in untold else deployable
            for deployable in device.deployables))


def with_shell(device: device_model.Device,
               shell: Known) -> device_model.Device:
    """The device with what is known of its shell.

    If that is bad, nobody can be given any of the card.
    """
    if shell.fault is not None:
        return dataclasses.replace(device, fault=f'the shell: {shell.fault}')
    if shell.contents is None:
        return device
    return dataclasses.replace(device, attributes={
        **device.attributes,
        'shell bitstream': shell.contents.bitstream_id})


def _overlaid(device: device_model.Device,
              deployable: device_model.Deployable,
              known: Known | None) -> device_model.Deployable:
    if known is None:
        return deployable
    traits = deployable.traits
    if not known.is_operators:
        traits -= function_traits(traits) - device.operator_traits
    if known.contents is None:
        return dataclasses.replace(
            deployable, traits=traits, fault=known.fault)
    # Units of a pool are told apart by an operator's traits alone, and a
    # device that says itself what it does is believed.
    if (known.is_operators and not device.pooled
            and not function_traits(traits)):
        traits |= _function_traits(device, known.contents)
    return dataclasses.replace(
        deployable, traits=traits, fault=known.fault,
        bitstream_id=known.contents.bitstream_id)


def _function_traits(device: device_model.Device,
                     contents: region_model.Contents) -> frozenset[str]:
    """None if they cannot be made of the name that the vendor has."""
    try:
        return frozenset(
            naming.function_trait(device.type, device.vendor, uuid)
            for uuid in contents.function_uuids)
    except exceptions.InvalidName:
        return frozenset()


def function_traits(traits: frozenset[str]) -> frozenset[str]:
    """Those that say what an FPGA does."""
    return frozenset(filter(naming.is_function_trait, traits))
