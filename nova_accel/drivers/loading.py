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


"""Finds the device drivers that are installed."""

from collections.abc import Mapping

import stevedore

from nova_accel.drivers import base
from nova_accel.host import node_devices as node_devices_module
from nova_accel.host import sysfs as sysfs_module

NAMESPACE = 'nova_accel.drivers'


def load(
    node_devices: node_devices_module.NodeDevices, sysfs: sysfs_module.Sysfs,
    node_uuid: str,
) -> Mapping[str, base.Driver]:
    """Name -> driver; one that cannot be imported is logged and left out."""
    manager: stevedore.ExtensionManager[base.Driver] = (
        stevedore.ExtensionManager(NAMESPACE))
    return {
        extension.name: extension.plugin(node_devices, sysfs, node_uuid)
        for extension in manager}


def names() -> list[str]:
    """The drivers that are installed and can be imported."""
    manager: stevedore.ExtensionManager[base.Driver] = (
        stevedore.ExtensionManager(NAMESPACE))
    return list(manager.names())
