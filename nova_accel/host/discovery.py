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


"""From node devices and the operator's lines to the host's accelerators."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.host import node_devices as node_devices_module
from nova_accel.host import nova_claims
from nova_accel.host import pci_function
from nova_accel.model import device as device_model
from nova_accel.model import device_spec
from nova_accel.model import pci_address

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Inventory:
    """The accelerators of the host, and why others are none.

    Each text of ``refused`` names one device; all are for the operator.
    """

    devices: tuple[device_model.Device, ...] = ()
    refused: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class _Owner:
    """What a PCI function is a part of, and the line that says so."""

    device: device_model.Device
    spec: device_spec.DeviceSpec


def discover(node_devices: node_devices_module.NodeDevices,
             drivers: Mapping[str, base.Driver],
             specs: Sequence[device_spec.DeviceSpec],
             claims: nova_claims.NovaClaims) -> Inventory:
    """Find the devices that the operator's lines match.

    A device that cannot be used is refused, and the rest of the host works.

    :raises DeviceError: libvirt does not list its devices.
    """
    if not specs:
        return Inventory()
    host = node_devices.look()
    refused = list(host.unreadable)
    devices: list[device_model.Device] = []
    owners: dict[pci_address.PciAddress, _Owner] = {}
    for function, spec in _matched(host.functions.values(), specs):
        owner = owners.get(function.address)
        if owner is not None and owner.spec == spec:
            continue
        try:
            device = _describe(drivers[spec.driver], function, spec, host)
            _check_not_novas(device, host, claims)
            _check_not_taken(device, owners)
        except exceptions.AcceleratorError as error:
            refused.append(f'{function.address} ([nova_accel] device_spec = '
                           f'{spec.text}): {error}')
        else:
            devices.append(device)
            owners.update(dict.fromkeys(
                _addresses(device), _Owner(device, spec)))
    return Inventory(tuple(devices), tuple(refused))


def _matched(
    functions: Iterable[pci_function.PciFunction],
    specs: Sequence[device_spec.DeviceSpec],
) -> list[tuple[pci_function.PciFunction, device_spec.DeviceSpec]]:
    """The functions that a line rules, physical ones before virtual ones.

    A line often matches a card and its virtual functions; what becomes a part
    of the card is then known when its turn comes.
    """
    return [(function, spec) for function in sorted(
        functions, key=lambda each: (
            each.parent_address is not None, each.address))
        if (spec := device_spec.first_match(
            specs, function.address, function.vendor_id,
            function.product_id)) is not None]


def _describe(driver: base.Driver, function: pci_function.PciFunction,
              spec: device_spec.DeviceSpec,
              host: node_devices_module.HostDevices) -> device_model.Device:
    """:raises AcceleratorError: the driver does not offer it, or is broken."""
    try:
        return driver.discover(function, spec, host)
    except exceptions.AcceleratorError:
        raise
    except Exception as error:
        # A plugin's fault must not take the other drivers' devices away.
        LOG.debug('Driver %s failed', spec.driver, exc_info=True)
        raise exceptions.DeviceError(
            f'driver {spec.driver} failed: {error!r}') from error


def _addresses(device: device_model.Device) -> set[pci_address.PciAddress]:
    """The PCI functions that the device is made of."""
    return {device.address} | {
        handle.address for deployable in device.deployables
        for handle in deployable.handles}


def _check_not_novas(device: device_model.Device,
                     host: node_devices_module.HostDevices,
                     claims: nova_claims.NovaClaims) -> None:
    """:raises DeviceError: Nova hands out a part of it, or its card."""
    functions = [host.functions[address]
                 for address in sorted(_addresses(device))
                 if address in host.functions]
    # A guest that is given a physical function takes the virtual ones along.
    cards = [host.functions[card]
             for card in (each.parent_address for each in functions)
             if card is not None and card in host.functions]
    for function in functions + cards:
        line = claims.line_for(function)
        if line is not None:
            raise exceptions.DeviceError(
                f'Nova claims {function.address} too: {line}')


def _check_not_taken(device: device_model.Device,
                     owners: Mapping[pci_address.PciAddress, _Owner]) -> None:
    """:raises DeviceError: a part of it is a part of another device."""
    for address in sorted(_addresses(device) & owners.keys()):
        owner = owners[address]
        raise exceptions.DeviceError(
            f'{address} is a part of {owner.device.address} ([nova_accel] '
            f'device_spec = {owner.spec.text})')
