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

"""The devices and parts that can be published; each one fails alone.

Drivers and hardware may use any names. Placement and the API refuse a whole
host for one name that is too long. So everything that they would refuse is
left out first, by the API's own bounds (:mod:`nova_accel.model.bounds`), and
the operator is told.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import re

import os_resource_classes
import os_traits

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.model import attach_handle
from nova_accel.model import bounds
from nova_accel.model import naming
from nova_accel.model.devices import hardware
from nova_accel.model.providers import provider_layout

#: The attribute that lists the parts of a device that are left out.
LEFT_OUT = 'not published'

_KNOWN_TRAITS = frozenset(os_traits.get_traits())
_KNOWN_CLASSES = frozenset(os_resource_classes.STANDARDS)
_CUSTOM = 'CUSTOM_'


@dataclasses.dataclass(frozen=True)
class Publishable:
    """The devices that can be published, and texts about the others.

    Each text of ``left_out`` names one device, for the operator.
    """

    devices: tuple[hardware.Device, ...]
    left_out: tuple[str, ...]


def of(
    nodename: str,
    devices: Iterable[hardware.Device],
    max_devices: int = bounds.MAX_DEVICES,
) -> Publishable:
    """Leave out what Placement or the API would refuse.

    A device that loses all its deployables by this is faulty. A device that
    loses a part has an attribute that says so.
    """
    host = _Host(nodename, max_devices)
    for device in devices:
        host.add(device)
    return Publishable(tuple(host.devices), tuple(host.left_out))


class _Host:
    """The publishable devices that have been found so far."""

    def __init__(self, nodename: str, max_devices: int) -> None:
        self.devices: list[hardware.Device] = []
        self.left_out: list[str] = []
        self._nodename = nodename
        self._max_devices = max_devices
        # The names of devices and providers, and those that uuids are derived
        # from -> owner.
        self._names: dict[str, tuple[str, ...]] = {}
        self._handles: set[str] = set()

    def add(self, device: hardware.Device) -> None:
        complaints: list[str] = []
        try:
            self.devices.append(self._device(device, complaints))
            told = 'is published without ' + '; '.join(complaints)
        except exceptions.AcceleratorError as error:
            told = f'is not published: {error}'
            complaints.append(told)
        # Whatever a driver returns, the other devices stay.
        except Exception as error:
            told = f'is not published, it is no device: {error!r}'
            complaints.append(told)
        if complaints:
            self.left_out.append(reason.sanitize(f'{_where(device)} {told}'))

    def _device(
        self, device: hardware.Device, complaints: list[str]
    ) -> hardware.Device:
        """:raises AcceleratorError: nothing of it can be published."""
        if len(self.devices) == self._max_devices:
            raise exceptions.DeviceError(
                f'a host has {self._max_devices} devices at most'
            )
        _check_facts(device)
        self._claim((device.name,), device.name)
        deployables = self._deployables(device, complaints)
        numa_node = device.numa_node
        if numa_node is not None and not (
            type(numa_node) is int and 0 <= numa_node <= bounds.MAX_NUMA_NODE
        ):
            complaints.append(f'its NUMA node {numa_node!r:.64}')
            numa_node = None
        found = dataclasses.replace(
            device,
            deployables=tuple(deployables),
            numa_node=numa_node,
            fault=None if device.fault is None else str(device.fault),
            vendor=reason.sanitize(device.vendor, bounds.MAX_TEXT),
            product=reason.sanitize(device.product, bounds.MAX_TEXT),
        )
        if found.pooled_by_links:
            # Names with links are longer, and become so short if need be.
            naming.provider_name(
                self._nodename, '0' * provider_layout.SHORT_NAME
            )
        elif len(deployables) == 1 and found.pooled:
            self._claim_pool(provider_layout.pool(found, deployables[0]))
        if device.deployables and not deployables:
            found = dataclasses.replace(
                found, fault=found.fault or '; '.join(complaints)
            )
        attributes = _attributes(device.attributes, complaints)
        if complaints:
            attributes[LEFT_OUT] = reason.sanitize(
                '; '.join(complaints), bounds.MAX_TEXT
            )
        return dataclasses.replace(found, attributes=attributes)

    def _deployables(
        self, device: hardware.Device, complaints: list[str]
    ) -> list[hardware.Deployable]:
        found: list[hardware.Deployable] = []
        for deployable in device.deployables:
            try:
                if len(found) == bounds.MAX_DEPLOYABLES:
                    raise exceptions.DeviceError(
                        f'a device has {bounds.MAX_DEPLOYABLES} deployables '
                        'at most'
                    )
                _check_name('its name', deployable.name)
                if len(device.deployables) > 1:
                    self._claim((device.name, deployable.name), device.name)
                found.append(self._deployable(device, deployable, complaints))
            except exceptions.AcceleratorError as error:
                complaints.append(f'{deployable.name!a:.64}: {error}')
            except Exception as error:
                complaints.append(f'an invalid deployable: {error!r}')
        return found

    def _deployable(
        self,
        device: hardware.Device,
        deployable: hardware.Deployable,
        complaints: list[str],
    ) -> hardware.Deployable:
        """:raises DeviceError: it cannot be published."""
        if not _is_name(deployable.resource_class, _KNOWN_CLASSES):
            raise exceptions.DeviceError(
                f'{deployable.resource_class!a:.64} is no resource class'
            )
        if deployable.region is not None:
            _check_name('its region', deployable.region)
        bitstream_id = deployable.bitstream_id
        if bitstream_id is not None and not _matches(
            bounds.UUID, bitstream_id
        ):
            complaints.append(f'its bitstream {bitstream_id!a:.64}')
            bitstream_id = None
        return dataclasses.replace(
            deployable,
            bitstream_id=bitstream_id,
            traits=_traits(device, deployable, complaints),
            handles=self._usable(deployable, complaints),
        )

    def _usable(
        self,
        deployable: hardware.Deployable,
        complaints: list[str],
    ) -> tuple[attach_handle.AttachHandle, ...]:
        """The attach handles that can be reported, one for each uuid."""
        found: list[attach_handle.AttachHandle] = []
        lost = 0
        for handle in deployable.handles:
            if (
                len(found) < bounds.MAX_HANDLES
                and handle.uuid not in self._handles
                and _is_reportable(handle)
            ):
                found.append(handle)
                self._handles.add(handle.uuid)
            else:
                lost += 1
        if lost:
            complaints.append(
                f'{lost} units of {deployable.name}, which exceed '
                f'{bounds.MAX_HANDLES}, are duplicates or have bad names'
            )
        return tuple(found)

    def _claim(self, path: tuple[str, ...], device: str) -> None:
        """Reserve the name and the uuid for a device's provider.

        :raises InvalidName: the name is too long.
        :raises DeviceError: another provider has it.
        """
        names = (naming.provider_name(self._nodename, *path), '/'.join(path))
        for name in names:
            if name in self._names:
                raise exceptions.DeviceError(
                    f'there is another {path[-1]} on the host'
                )
        self._names.update(dict.fromkeys(names, (device,)))

    def _claim_pool(self, path: tuple[str, ...]) -> None:
        """:raises AcceleratorError: another kind of provider has the name."""
        name = naming.provider_name(self._nodename, *path)
        if self._names.setdefault(name, path) != path:
            raise exceptions.DeviceError(
                f'a device has the name of its pool, {name}'
            )


def _where(device: hardware.Device) -> str:
    """A name for the device in messages, even if it is no device."""
    address = getattr(device, 'address', None)
    return f'{address!s:.64} (driver {getattr(device, "driver", None)!s:.64})'


def _check_facts(device: hardware.Device) -> None:
    """:raises DeviceError: a name, address, id or type is wrong."""
    _check_name('its name', device.name)
    _check_name('its driver', device.driver)
    for name, pattern, value in (
        ('address', bounds.PCI_ADDRESS, str(device.address)),
        ('vendor_id', bounds.PCI_ID, device.vendor_id),
        ('product_id', bounds.PCI_ID, device.product_id),
    ):
        if not _matches(pattern, value):
            raise exceptions.DeviceError(f'its {name} is {value!a:.64}')
    if device.type not in naming.RESOURCE_CLASSES:
        raise exceptions.DeviceError(f'its type is {device.type!a:.64}')


def _check_name(what: str, value: object) -> None:
    """:raises DeviceError: it is no text, empty, too long, or not plain."""
    if not _matches(bounds.PLAIN_NAME, value):
        raise exceptions.DeviceError(
            f'{what} is {value!a:.64}, not a text of 1 to {bounds.MAX_TEXT} '
            'characters that can be printed'
        )


def _matches(pattern: str, value: object) -> bool:
    return isinstance(value, str) and re.match(pattern, value) is not None


def _is_name(value: object, known: frozenset[str]) -> bool:
    """Whether Placement knows the name, or lets it be created."""
    return isinstance(value, str) and (
        value in known
        or (
            value.startswith(_CUSTOM)
            and len(value) > len(_CUSTOM)
            and _matches(bounds.PLACEMENT_NAME, value)
        )
    )


def _traits(
    device: hardware.Device,
    deployable: hardware.Deployable,
    complaints: list[str],
) -> frozenset[str]:
    """The traits that Placement accepts; if too many, the operator's first."""
    good = {
        trait for trait in deployable.traits if _is_name(trait, _KNOWN_TRAITS)
    }
    bad = len(deployable.traits) - len(good)
    if bad:
        complaints.append(
            f'{bad} traits of {deployable.name}, which cannot '
            'be names of traits'
        )
    if len(good) <= bounds.MAX_TRAITS:
        return frozenset(good)
    complaints.append(
        f'{len(good) - bounds.MAX_TRAITS} traits of '
        f'{deployable.name}, which has {len(good)}'
    )
    return frozenset(
        sorted(
            good,
            key=lambda trait: (trait not in device.operator_traits, trait),
        )[: bounds.MAX_TRAITS]
    )


def _is_reportable(handle: attach_handle.AttachHandle) -> bool:
    texts = (handle.mdev_type, handle.vgpu_type, handle.physical_network)
    return (
        _matches(bounds.UUID, handle.uuid)
        and len(handle.further_functions) <= bounds.MAX_FURTHER_FUNCTIONS
        and all(
            _matches(bounds.PCI_ADDRESS, str(address))
            for address in (handle.address, *handle.further_functions)
        )
        and all(
            _matches(bounds.PLAIN_NAME, text)
            for text in texts
            if text is not None
        )
        and (
            handle.identity is None
            or (
                _matches(bounds.TEXT, handle.identity)
                and 0 < len(handle.identity) <= bounds.MAX_TEXT
            )
        )
    )


def _attributes(
    attributes: Mapping[str, str], complaints: list[str]
) -> dict[str, str]:
    """The attributes that can be reported, with room for one more."""
    good = [
        (name, text)
        for name, text in attributes.items()
        if isinstance(text, str) and _matches(bounds.PLAIN_NAME, name)
    ]
    lost = len(attributes) - len(good[: bounds.MAX_ATTRIBUTES - 1])
    if lost:
        complaints.append(
            f'{lost} attributes, which exceed '
            f'{bounds.MAX_ATTRIBUTES - 1} or have bad names'
        )
    return dict(good[: bounds.MAX_ATTRIBUTES - 1])
