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

"""The common part of FPGA drivers, after Cyborg's agent-driver spec.

A card has regions that are programmed separately. A region has a type, which
says which images fit, and accelerators. An accelerator has a PCI function of
its own and the uuid of the function that was programmed. All of these uuids
are optional.
"""

import abc
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import uuid

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.drivers import device_cleaning
from nova_accel.drivers import facts
from nova_accel.host import attachable
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import device_spec_keys
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable


@dataclasses.dataclass(frozen=True)
class Accelerator:
    """One accelerator of a region; ``function_uuid`` is its function."""

    address: pci_address.PciAddress
    function_uuid: str | None = None


@dataclasses.dataclass(frozen=True)
class FpgaRegion:
    """A part programmed as one; ``type_uuid`` says which bitstreams fit.

    ``shell_id`` is the id of the static part, None if the card does not say.
    """

    type_uuid: str | None
    accelerators: Sequence[Accelerator]
    shell_id: str | None = None


class FpgaDriver(base.Driver):
    """A card and its regions, or with ``"whole": true`` the card alone.

    The accelerators of a region may have different functions, which may be
    hidden while a guest has them. So each accelerator of a region with several
    is a deployable of its own.
    """

    kind = 'FPGA'
    line_keys = frozenset({'whole'})
    cleaning_methods = base.Driver.cleaning_methods | {'program'}

    @abc.abstractmethod
    def regions(
        self,
        function: pci_function.PciFunction,
        host: libvirt_devices.HostDevices,
    ) -> Sequence[FpgaRegion]:
        """The regions that can be handed out.

        :returns: empty for a card that needs a shell first
        :raises DeviceError: the card has none; the text says why.
        """

    def whole_region(
        self, function: pci_function.PciFunction
    ) -> FpgaRegion | None:
        """The region to program on a card that is handed out whole.

        :returns: None if it has several regions, or the guest programs it
            instead of the driver
        """
        return None

    def shell_id(self, function: pci_function.PciFunction) -> str | None:
        """The id of the static part, None if no shell can be loaded."""
        return None

    def check(self, function: pci_function.PciFunction) -> None:
        """Check that a function is a card of this kind.

        :raises DeviceError: it is not.
        """

    def attributes(
        self, function: pci_function.PciFunction
    ) -> Mapping[str, str]:
        """Further attributes of the card, see ``Device.attributes``."""
        return {}

    def fault(self, function: pci_function.PciFunction) -> str | None:
        """Why no guest can get any of the card now, None if guests can."""
        return None

    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device:
        self.check(function)
        known = facts.of(function, spec, 'FPGA')
        shell_id = None if spec.whole else self.shell_id(function)
        regions: Sequence[FpgaRegion]
        if spec.whole:
            region = self.whole_region(function)
            regions = [] if region is None else [region]
            deployables = [
                self._whole(known, region, self._card(function, host))
            ]
        else:
            regions = self.regions(function, host)
            # A card without a shell is published so that it can get one.
            deployables = list(self._deployables(known, regions)) or [
                known.deployable('card', [])
            ]
        if spec.clean == 'program' and not all(
            deployable.region
            for deployable in deployables
            if deployable.handles
        ):
            raise exceptions.DeviceError(
                '"clean": "program" needs a region that can be programmed'
            )
        result = known.device(deployables)
        if spec.clean == 'reset':
            device_cleaning.check_reset(
                self._sysfs,
                (
                    each
                    for handle in result.handles
                    for each in handle.functions
                ),
                host.functions,
            )
        return dataclasses.replace(
            result,
            fault=result.fault
            or self.fault(function)
            or (None if any(result.handles) else 'it has no shell'),
            shell=None
            if shell_id is None
            else programmable.Region(
                programmable.SHELL, shell_id=shell_id, is_shell=True
            ),
            attributes={**result.attributes, **self.attributes(function)},
            regions=tuple(
                programmable.Region(
                    _name(number), region.type_uuid, region.shell_id
                )
                for number, region in enumerate(regions)
            ),
        )

    @staticmethod
    def _whole(
        known: facts.Facts,
        region: FpgaRegion | None,
        card: attach_handle.AttachHandle,
    ) -> hardware.Deployable:
        """The deployable of a card that is handed out as a whole."""
        return dataclasses.replace(
            known.deployable(
                'card',
                [card],
                *(() if region is None else _traits(known, region)),
            ),
            region=None if region is None else _name(0),
        )

    def _deployables(
        self, known: facts.Facts, regions: Sequence[FpgaRegion]
    ) -> Iterator[hardware.Deployable]:
        for number, region in enumerate(regions):
            for index, accelerator in enumerate(region.accelerators):
                name = _name(number)
                if len(region.accelerators) > 1:
                    name += f'_function{index}'
                traits = _traits(known, region)
                if accelerator.function_uuid is not None:
                    traits.append(
                        naming.function_trait(
                            known.type, known.vendor, accelerator.function_uuid
                        )
                    )
                yield dataclasses.replace(
                    known.deployable(
                        name, [self._handle(accelerator.address)], *traits
                    ),
                    region=_name(number),
                )

    def _card(
        self,
        function: pci_function.PciFunction,
        host: libvirt_devices.HostDevices,
    ) -> attach_handle.AttachHandle:
        if function.virtual_functions:
            raise exceptions.DeviceError(
                f'its {len(function.virtual_functions)} virtual functions '
                'are enabled: it cannot be handed out whole'
            )
        return dataclasses.replace(
            self._handle(function.address),
            further_functions=attachable.unit(
                function, device_spec_keys.UnitKind.SLOT, host.functions
            )[1:],
        )

    def _handle(
        self,
        address: pci_address.PciAddress,
    ) -> attach_handle.AttachHandle:
        return attach_handle.AttachHandle(
            naming.derived_uuid(
                self._node_uuid, address.node_device, 'accelerator'
            ),
            address,
        )


def _name(number: int) -> str:
    return f'region{number}'


def _traits(known: facts.Facts, region: FpgaRegion) -> list[str]:
    return (
        []
        if region.type_uuid is None
        else [naming.region_trait(known.type, known.vendor, region.type_uuid)]
    )


def uuids(
    sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress, attribute: str
) -> list[str]:
    """The uuids in an attribute of sysfs, where they have no hyphens.

    :returns: empty if there is no such attribute, or it says nothing
    :raises DeviceError: it cannot be read, or has something else.
    """
    found = []
    for text in (sysfs.read(address, attribute) or '').split():
        try:
            found.append(str(uuid.UUID(text)))
        except ValueError:
            sysfs.complain(address, attribute, f'has no uuid: {text!r:.64}')
            return []
    return found


def one_uuid(
    sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress, attribute: str
) -> str | None:
    """The first of :func:`uuids`, None if there is none."""
    return next(iter(uuids(sysfs, address, attribute)), None)


def on_virtual_functions(
    function: pci_function.PciFunction,
    host: libvirt_devices.HostDevices,
    types: Sequence[str | None],
    function_uuids: Mapping[pci_address.PciAddress, str | None],
) -> list[FpgaRegion]:
    """The regions of a card whose accelerators are its virtual functions.

    A single region has all accelerators. Several regions have one each, in
    their order.

    :param types: the type of each region, empty if the card does not say
    :param function_uuids: the function of each virtual function's accelerator
    :raises DeviceError: there are none, or it is unknown which region has
        which.
    """
    accelerators = [
        Accelerator(part.address, function_uuids.get(part.address))
        for part in host.parts(function)
    ]
    if not accelerators:
        raise exceptions.DeviceError(
            'it has no virtual functions, which are its accelerators; with '
            '"whole": true it is handed out as it is'
        )
    if len(types) < 2:
        return [FpgaRegion(types[0] if types else None, accelerators)]
    if len(types) == len(function.virtual_functions) == len(accelerators):
        return [
            FpgaRegion(type_uuid, [accelerator])
            for type_uuid, accelerator in zip(types, accelerators, strict=True)
        ]
    raise exceptions.DeviceError(
        f'it has {len(types)} regions and {len(accelerators)} virtual '
        'functions: it is not known which region has which'
    )
