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

"""The devices of a guest's configuration that stand for its ARQs."""

from collections.abc import Iterable

from nova.virt.libvirt import config as vconfig

from nova_accel.model import arq
from nova_accel.model import attach_handle


def hostdevs(
    arqs: Iterable[arq.Arq],
) -> list[vconfig.LibvirtConfigGuestHostdev]:
    """One ``<hostdev>`` for each ARQ, in their order."""
    return [_mdev(request.handle)
            if request.handle.type is attach_handle.HandleType.MDEV
            else _pci(request.handle) for request in arqs]


def _pci(
    handle: attach_handle.AttachHandle,
) -> vconfig.LibvirtConfigGuestHostdevPCI:
    hostdev = vconfig.LibvirtConfigGuestHostdevPCI()
    parts = handle.address.parts
    hostdev.domain = parts['domain']
    hostdev.bus = parts['bus']
    hostdev.slot = parts['device']
    hostdev.function = parts['function']
    # libvirt takes the function from its host driver and gives it back.
    hostdev.managed = 'yes'
    return hostdev


def _mdev(
    handle: attach_handle.AttachHandle,
) -> vconfig.LibvirtConfigGuestHostdevMDEV:
    hostdev = vconfig.LibvirtConfigGuestHostdevMDEV()
    hostdev.uuid = handle.uuid
    return hostdev
