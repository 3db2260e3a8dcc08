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

"""The hardware of one host, by libvirt, the kernel and the configuration."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nova.virt.libvirt import host as libvirt_host

from nova_accel.drivers import base
from nova_accel.drivers import configured_lines
from nova_accel.drivers import loading
from nova_accel.host import all_guests
from nova_accel.host import libvirt_devices
from nova_accel.host import nova_claims
from nova_accel.host import sysfs_tree
from nova_accel.host import virtual_functions
from nova_accel.model.devices import device_spec
from nova_accel.model.providers import host_view


@dataclasses.dataclass(frozen=True)
class Hardware:
    """Its devices and guests, the drivers, and what they are to offer.

    ``drivers`` has them by their names. ``specs`` are the lines of
    ``device_spec``.
    """

    node_devices: libvirt_devices.NodeDevices
    sysfs: sysfs_tree.Sysfs
    guests: all_guests.AllGuests
    claims: nova_claims.NovaClaims
    virtual_functions: virtual_functions.VirtualFunctions
    drivers: Mapping[str, base.Driver]
    specs: Sequence[device_spec.DeviceSpec]


def of(host: libvirt_host.Host, node: host_view.Node) -> Hardware:
    """The hardware of libvirt's host, which is not looked at yet.

    :raises InvalidDeviceSpec: a line of ``device_spec`` is malformed, or
        contradicts itself.
    :raises ConfigurationError: names the option that is wrong.
    """
    node_devices = libvirt_devices.NodeDevices(host)
    sysfs = sysfs_tree.of(host)
    guests = all_guests.AllGuests(host)
    claims = nova_claims.NovaClaims(node.nodename, node.uuid)
    drivers = loading.load(node_devices, sysfs, node.uuid)
    return Hardware(
        node_devices,
        sysfs,
        guests,
        claims,
        virtual_functions.VirtualFunctions(
            node_devices, sysfs, claims, guests
        ),
        drivers,
        configured_lines.read(),
    )
