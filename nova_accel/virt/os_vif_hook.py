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

"""An os-vif plugin that lets Nova load ``nova_accel.LibvirtDriver``.

Nova imports compute drivers from below ``nova.virt`` only. nova-compute loads
all ``os_vif`` plugins before its driver, without configuration. No other
public hook runs our code in time. This module imports nothing of Nova.
"""

import sys
import types
from typing import Any

from os_vif import plugin
from os_vif.objects import host_info
from os_vif.objects import instance_info as instance_info_object
from os_vif.objects import vif as vif_object

MODULE = 'nova.virt.nova_accel'


class _LazyModule(types.ModuleType):
    """A module that imports the driver only when nova-compute asks for it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        from nova_accel.virt import driver

        return getattr(driver, name)


class DriverHook(plugin.PluginBase):
    """An os-vif plugin that serves no VIF."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        sys.modules.setdefault(MODULE, _LazyModule(MODULE))

    def describe(self) -> host_info.HostPluginInfo:
        return host_info.HostPluginInfo(plugin_name='nova_accel', vif_info=[])

    def plug(
        self,
        vif: vif_object.VIFBase,
        instance_info: instance_info_object.InstanceInfo,
    ) -> None:
        """Never called: no VIF names this plugin."""

    def unplug(
        self,
        vif: vif_object.VIFBase,
        instance_info: instance_info_object.InstanceInfo,
    ) -> None:
        """Never called: no VIF names this plugin."""
