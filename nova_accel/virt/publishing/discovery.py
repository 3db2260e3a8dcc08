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


"""The discovery of accelerators, by node devices and the operator's lines."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import dataclasses

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.drivers import base
from nova_accel.drivers import line_keys
from nova_accel.host import attachable
from nova_accel.host import host_use
from nova_accel.host import libvirt_devices
from nova_accel.host import nova_claims
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.host import virtual_functions
from nova_accel.model import attach_handle
from nova_accel.model import link_sets
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware
from nova_accel.model.fpga import region_types
from nova_accel.virt.publishing import last_answers
from nova_accel.virt.publishing import refusals
from nova_accel.virt.publishing import units_in_use


@dataclasses.dataclass(frozen=True)
class Discovered:
    """The accelerators of the host, and why other devices are refused.

    ``refused`` has texts for the operator. Each of them names one device.
    ``noted`` are those of them that tell what is not known of a device, or
    which of its units are missing.
    ``unmatched`` are the lines that rule no device.
    ``lines`` maps the name of a device to its line. ``links`` are the sets of
    joined devices. ``causes`` are those of ``refused`` that are of a line.
    """

    devices: tuple[hardware.Device, ...] = ()
    refused: tuple[str, ...] = ()
    lines: Mapping[str, device_spec.DeviceSpec] = dataclasses.field(
        default_factory=dict
    )
    links: link_sets.SetTree = dataclasses.field(
        default_factory=link_sets.SetTree
    )
    unmatched: tuple[str, ...] = ()
    noted: frozenset[str] = frozenset()
    causes: tuple[refusals.Refusal, ...] = ()


def discover(
    node_devices: libvirt_devices.NodeDevices,
    drivers: Mapping[str, base.Driver],
    specs: Sequence[device_spec.DeviceSpec],
    claims: nova_claims.NovaClaims,
    look_at_guests: Callable[
        [Iterable[pci_function.Mdev]], units_in_use.Found
    ],
    find_host_use: Callable[[], host_use.HostUse],
    answers: last_answers.LastAnswers,
) -> Discovered:
    """Find the devices that the operator's lines match.

    A device that cannot be used is refused, and the rest of the host works.
    While an instance holds a unit, a driver that cannot see it does not take
    it away.

    :param look_at_guests: tells which devices are not free, see
        :meth:`nova_accel.virt.publishing.units_in_use.UnitsInUse.look`
    :param find_host_use: looks which devices the host itself uses
    :param answers: those of the last look, kept for the next one
    :raises DeviceError: libvirt does not list its devices, or guests.
    """
    if not specs:
        return Discovered()
    with sysfs_tree.noting() as of_look:
        host = node_devices.look()
    in_use = look_at_guests(host.mdevs)
    host = dataclasses.replace(host, held_mdevs=in_use.mdevs)
    answers.forget_others(host.functions)
    search = _Search(host, drivers, claims, in_use, find_host_use(), answers)
    # Physical functions come first: a line often matches a card and its
    # virtual functions. So the parts of a card are known before they are
    # looked at themselves.
    matched = set()
    with sysfs_tree.noting() as notes:
        for function in sorted(
            host.functions.values(),
            key=lambda each: (each.parent_address is not None, each.address),
        ):
            spec = search.line_for(function, specs)
            if spec is not None:
                matched.add(spec.text)
                search.add(function, spec)
    answers.remember(in_use.held)
    noted = [*of_look.texts(), *notes.texts()]
    return Discovered(
        tuple(search.devices),
        (*host.unreadable, *search.refused.texts, *noted),
        search.lines,
        unmatched=tuple(
            spec.text for spec in specs if spec.text not in matched
        ),
        noted=frozenset(noted),
        causes=search.refused.found,
    )


@dataclasses.dataclass(frozen=True)
class _Owner:
    """The device that a PCI function is a part of, with its line."""

    device: hardware.Device
    spec: device_spec.DeviceSpec

    def __str__(self) -> str:
        return (
            f'{self.device.address} ([nova_accel] device_spec = '
            f'{self.spec.text})'
        )


class _Search:
    """A search, with all that it has found so far."""

    def __init__(
        self,
        host: libvirt_devices.HostDevices,
        drivers: Mapping[str, base.Driver],
        claims: nova_claims.NovaClaims,
        in_use: units_in_use.Found,
        used_by_host: host_use.HostUse,
        answers: last_answers.LastAnswers,
    ) -> None:
        self.devices: list[hardware.Device] = []
        self.lines: dict[str, device_spec.DeviceSpec] = {}
        self._host = host
        self._drivers = drivers
        self._claims = claims
        self._in_use = in_use
        self._used_by_host = used_by_host
        self._answers = answers
        self._owners: dict[pci_address.PciAddress, _Owner] = {}
        # Card and type of handle -> the device that hands out such handles.
        self._uses: dict[
            tuple[pci_address.PciAddress, attach_handle.HandleType], _Owner
        ] = {}
        # Card -> the line that offers its virtual functions in its place.
        self._in_parts: dict[
            pci_address.PciAddress, device_spec.DeviceSpec
        ] = {}
        self.refused = refusals.Refusals(host)

    def line_for(
        self,
        function: pci_function.PciFunction,
        specs: Sequence[device_spec.DeviceSpec],
    ) -> device_spec.DeviceSpec | None:
        """The line that rules a function.

        If no line matches the function, it is the line of its card, if that
        offers virtual functions in the card's place, or did so when an
        instance got this one.
        """
        return (
            device_spec.first_match(specs, function)
            or self._in_parts.get(function.card)
            or self._answers.line_of(
                function.address, self._in_use.held, specs
            )
        )

    def add(
        self, function: pci_function.PciFunction, spec: device_spec.DeviceSpec
    ) -> None:
        """Add the function's device, or the reason why it is refused."""
        # If a card is one device by a line, so are its virtual functions.
        owner = self._owners.get(function.address) or self._owners.get(
            function.card
        )
        if owner is not None and owner.spec == spec:
            return
        try:
            virtual_functions.check(function, spec)
            driver = self._drivers[spec.driver]
            driver.check_cleaning(spec)
            line_keys.check(spec, self._drivers)
            device = self._answers.ask(
                driver,
                function,
                spec,
                self._host,
                self._in_use.held,
                self._used_by_host.fault,
            )
            if device is None:
                self._check_not_novas(
                    self._claims.on_functions([function.address], self._host)
                )
                self._in_parts[function.address] = spec
            else:
                self._add_device(
                    _identified(device, self._host), spec, driver.line_keys
                )
            complaint = virtual_functions.mismatch(function, spec)
            if complaint is not None:
                self.refused.add(function.address, spec, complaint)
        except exceptions.AcceleratorError as error:
            if self._has_told(error, spec):
                return
            # If Nova has the device, that is the reason to tell, whatever
            # else is wrong.
            self.refused.add(
                function.address,
                spec,
                self._claims.on_functions([function.address], self._host)
                or error,
            )

    def _has_told(
        self, error: exceptions.AcceleratorError, spec: device_spec.DeviceSpec
    ) -> bool:
        """Whether it is told already why none of a function's card is had."""
        card = getattr(error, 'card', None)
        return isinstance(card, pci_address.PciAddress) and (
            self.refused.has(card, spec) or self._host.is_unreadable(card)
        )

    def _add_device(
        self,
        device: hardware.Device,
        spec: device_spec.DeviceSpec,
        line_keys: Set[str],
    ) -> None:
        """:raises DeviceError: no guest can have any part of the device."""
        self._check_not_taken(device)
        owner = _Owner(device, spec)
        # The parts of a refused device are no devices of their own.
        self._owners.update(dict.fromkeys(device.addresses, owner))
        self._check_not_novas(self._claims.on_device(device, self._host))
        # A unit's obstacle often goes with the unit that excludes it: the
        # virtual functions of a card are made again.
        excluded = set(device.excluded(self._in_use.held))
        refused = attachable.refusals(device, self._host, line_keys)
        device = self._without(
            device,
            spec,
            {uuid: refused[uuid] for uuid in refused if uuid not in excluded},
        )
        region_types.check(device, self.devices)
        self._check_not_shared(device)
        device = self._without(device, spec, self._of_others(device))
        device = self._without_the_hosts(device, spec, excluded)
        self.devices.append(self._answering(device))
        self.lines[device.name] = spec
        self._uses.update(dict.fromkeys(self._uses_of(device), owner))

    def _check_not_shared(self, device: hardware.Device) -> None:
        """Check that no guest could get the same thing by another function.

        While an instance has the other function, only its handle may still
        tell what it is. A device of which an instance holds a unit stays.

        :raises DeviceError: another function leads there.
        """
        handles = tuple(device.handles)
        if device.subsystem is None or any(
            handle.uuid in self._in_use.held for handle in handles
        ):
            return
        serials = {handle.serial_number for handle in handles} - {None}
        others = [
            other.address
            for other in self.devices
            if other.subsystem == device.subsystem
        ] + [
            address
            for address, serial in self._in_use.serials.items()
            if serial in serials
            and address not in device.addresses
            and self._is_alike(device, address)
        ]
        if others:
            raise exceptions.DeviceError(
                f'it leads to the same {device.type} as {others[0]}, '
                f'{device.subsystem}: one of the two is offered. Match only '
                'one of them by "address" to choose which'
            )

    def _is_alike(
        self, device: hardware.Device, address: pci_address.PciAddress
    ) -> bool:
        function = self._host.functions.get(address)
        return function is not None and (
            (function.vendor_id, function.product_id)
            == (device.vendor_id, device.product_id)
        )

    def _uses_of(
        self, device: hardware.Device
    ) -> set[tuple[pci_address.PciAddress, attach_handle.HandleType]]:
        """The cards whose parts a device hands out, and the handles' types."""
        functions = self._host.functions
        return {
            (
                functions[address].card if address in functions else address,
                handle.type,
            )
            for handle in device.handles
            for address in (handle.address, *handle.functions)
        }

    def _check_not_novas(self, claim: str | None) -> None:
        """:raises DeviceError: there is a claim."""
        if claim is not None:
            raise exceptions.DeviceError(claim)

    def _check_not_taken(self, device: hardware.Device) -> None:
        """:raises DeviceError: the device shares a part with another one."""
        for address in sorted(
            device.addresses & self._owners.keys(),
            key=lambda each: (each != device.address, each),
        ):
            raise exceptions.DeviceError(
                f'{address} is a part of {self._owners[address]}'
            )
        for card, type_ in sorted(self._uses_of(device)):
            (other,) = set(attach_handle.HandleType) - {type_}
            if (card, other) in self._uses:
                raise exceptions.DeviceError(
                    f'the card {card} is carved otherwise for '
                    f'{self._uses[card, other]}'
                )

    def _of_others(self, device: hardware.Device) -> dict[str, str]:
        """The units that guests have and no one holds, with their reasons."""
        return {
            handle.uuid: self._in_use.refused[part]
            for handle in device.handles
            for part in handle.parts
            if part in self._in_use.refused
        }

    def _without_the_hosts(
        self,
        device: hardware.Device,
        spec: device_spec.DeviceSpec,
        excluded: Set[str],
    ) -> hardware.Device:
        """The device without the units that the host itself uses, or may use.

        If these are all units, the device is published as faulty.

        :param excluded: the uuids of units that are not looked at
        """
        reasons = {
            handle.uuid: reason
            for handle in device.handles
            if handle.uuid not in excluded
            for address in handle.functions
            if (reason := self._why_the_hosts(address)) is not None
        }
        if reasons and all(
            handle.uuid in reasons for handle in device.handles
        ):
            return dataclasses.replace(
                device, fault=device.fault or '; '.join(reasons.values())
            )
        return self._without(device, spec, reasons)

    def _without(
        self,
        device: hardware.Device,
        spec: device_spec.DeviceSpec,
        reasons: Mapping[str, str],
    ) -> hardware.Device:
        """The device without some of its units, which are refused.

        :param reasons: the uuid of an attach handle -> why
        :raises DeviceError: none is left.
        """
        if not reasons:
            return device
        left = device.without(reasons.keys())
        why = '; '.join(dict.fromkeys(reasons.values()))
        if not left.deployables:
            raise exceptions.DeviceError(why)
        self.refused.add(device.address, spec, why)
        return left

    def _answering(self, device: hardware.Device) -> hardware.Device:
        """The device, faulty if a function of it does not answer."""
        reasons = filter(
            None, map(self._used_by_host.fault, sorted(device.addresses))
        )
        return dataclasses.replace(
            device, fault=next(reasons, None) or device.fault
        )

    def _why_the_hosts(self, address: pci_address.PciAddress) -> str | None:
        try:
            return self._used_by_host.reason(address)
        except exceptions.DeviceError as error:
            return str(error)


def _identified(
    device: hardware.Device, host: libvirt_devices.HostDevices
) -> hardware.Device:
    """The device, with its identity in each handle.

    The serial number is the card's, unless the driver has set another. Links
    are not the driver's to tell.
    """

    def identity(handle: attach_handle.AttachHandle) -> str | None:
        function = host.functions.get(handle.address)
        if function is None:
            return handle.identity
        card = host.functions.get(function.card)
        return reason.sanitize(
            attach_handle.identity_of(
                f'{function.vendor_id}:{function.product_id}',
                function.class_code,
                handle.identity
                or (None if card is None else card.card_serial_number),
            ),
            hardware.MAX_ATTRIBUTE_LENGTH,
        )

    return dataclasses.replace(
        device,
        link_sets=(),
        module_id=None,
        deployables=tuple(
            dataclasses.replace(
                deployable,
                handles=tuple(
                    dataclasses.replace(handle, identity=identity(handle))
                    for handle in deployable.handles
                ),
            )
            for deployable in device.deployables
        ),
    )
