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

"""The parts of one host that the hooks and our RPC server use."""

import dataclasses

from nova_accel.bitstreams import store
from nova_accel.client import accelerator_api
from nova_accel.host import sysfs_tree
from nova_accel.model.providers import host_view
from nova_accel.virt import os_acc
from nova_accel.virt.fabric import no_fabric
from nova_accel.virt.fpga.programming import region_programmer
from nova_accel.virt.holding import attaching
from nova_accel.virt.publishing import host_providers
from nova_accel.virt.publishing import periodic_work


@dataclasses.dataclass(frozen=True)
class Parts:
    """The parts of one host, made by :mod:`nova_accel.virt.wiring`."""

    node: host_view.Node
    sysfs: sysfs_tree.Sysfs
    api: accelerator_api.AcceleratorApi
    cycle: periodic_work.Cycle
    attachments: attaching.Attachments
    providers: host_providers.Providers
    programmer: region_programmer.Programmer
    bitstreams: store.Store
    os_acc: os_acc.OsAcc
    fabric: no_fabric.NoFabric
    current: host_view.CurrentState
