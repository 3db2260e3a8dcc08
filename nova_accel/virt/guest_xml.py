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

from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address


def hostdevs(
    arqs: Iterable[arq_types.Arq],
) -> list[vconfig.LibvirtConfigGuestHostdev]:
    """The ``<hostdev>`` of each ARQ's functions, in their order."""
    return [hostdev for arq in arqs for hostdev in _of(arq.handle)]


def _of(
    handle: attach_handle.AttachHandle,
) -> list[vconfig.LibvirtConfigGuestHostdev]:
    if handle.type is attach_handle.HandleType.MDEV:
        return [_mdev(handle.uuid)]
    return [_pci(address, handle.is_managed) for address in handle.functions]


def _pci(
    address: pci_address.PciAddress, is_managed: bool
) -> vconfig.LibvirtConfigGuestHostdevPCI:
    hostdev = vconfig.LibvirtConfigGuestHostdevPCI()
    parts = address.parts
    hostdev.domain = parts['domain']
    hostdev.bus = parts['bus']
    hostdev.slot = parts['device']
    hostdev.function = parts['function']
    # libvirt takes a managed device from its host driver, and gives it back.
    hostdev.managed = 'yes' if is_managed else 'no'
    return hostdev


def _mdev(uuid: str) -> vconfig.LibvirtConfigGuestHostdevMDEV:
    hostdev = vconfig.LibvirtConfigGuestHostdevMDEV()
    hostdev.uuid = uuid
    return hostdev
