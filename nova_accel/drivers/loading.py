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

"""Find the installed device drivers, and guard them.

A broken driver costs only its own devices. nova-compute starts, and refuses,
with the reason, the devices that ``device_spec`` gives to that driver.
"""

from collections.abc import Mapping
from importlib import metadata

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.drivers import guard
from nova_accel.host import libvirt_devices
from nova_accel.host import sysfs_tree
from nova_accel.model import naming

NAMESPACE = 'nova_accel.drivers'


def load(
    node_devices: libvirt_devices.NodeDevices,
    sysfs: sysfs_tree.Sysfs,
    node_uuid: str,
) -> Mapping[str, base.Driver]:
    """Name -> driver, for all installed drivers.

    A driver that cannot be imported or created is logged, and refuses all
    calls.
    """

    def guarded(point: metadata.EntryPoint) -> base.Driver:
        return guard.Guard(
            point.name, lambda: _class(point)(node_devices, sysfs, node_uuid)
        )

    return {point.name: guarded(point) for point in _points()}


def names() -> list[str]:
    """The installed drivers, whether they can be used or not."""
    return sorted({point.name for point in _points()})


def kinds() -> Mapping[str, str | None]:
    """Name -> type of its devices, for all installed drivers.

    It is None if its devices have several, or the driver cannot be loaded.
    """
    return {point.name: _kind(point) for point in _points()}


def _kind(point: metadata.EntryPoint) -> str | None:
    try:
        kind = getattr(_class(point), 'kind', None)
    except exceptions.DeviceError:
        # Its guard tells it.
        return None
    is_known = isinstance(kind, str) and kind in naming.RESOURCE_CLASSES
    return kind if is_known else None


def _points() -> metadata.EntryPoints:
    # stevedore lets a plugin's AssertionError through, which would also lose
    # the other drivers.
    return metadata.entry_points(group=NAMESPACE)


def _class(point: metadata.EntryPoint) -> type[base.Driver]:
    """:raises DeviceError: it cannot be imported."""
    try:
        found: type[base.Driver] = point.load()
    except (Exception, SystemExit) as error:
        raise exceptions.DeviceError(
            f'its entry point {point.value} cannot be imported: {error!r}'
        ) from error
    return found
