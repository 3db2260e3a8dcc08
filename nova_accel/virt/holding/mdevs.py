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

"""Mediated devices that the host lacks, and those that no one needs.

A guest that starts makes the devices of its server, and does not wait for
this module. Servers that are stopped hold their devices too, and this module
makes those again after a reboot of the host.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import TypeVar

from oslo_log import log as logging

from nova_accel.client import accelerator_api
from nova_accel.host import all_guests
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import binding_repairs
from nova_accel.model import finding
from nova_accel.model import host_findings
from nova_accel.model import pci_address
from nova_accel.virt.holding import attaching
from nova_accel.virt.holding import retries

LOG = logging.getLogger(__name__)

_T = TypeVar('_T')


class LostMdevs:
    """The devices that were missing when nova-compute started.

    The API shows their ARQs as Provisioning until the devices exist.

    :param mdevs: the uuids of the mediated devices that exist
    """

    def __init__(
        self,
        api: accelerator_api.AcceleratorApi,
        attachments: attaching.Attachments,
        mdevs: Container[str],
        findings: host_findings.Findings,
    ) -> None:
        self._api = api
        self._findings = findings
        self._attachments = attachments
        self._missing = {
            held.instance_uuid: lost
            for held in attachments.held.bindings()
            if held.role is arq_types.Role.ACTIVE
            and (
                lost := [
                    arq.uuid
                    for arq in held.arqs
                    if arq.handle.mdev_type is not None
                    and arq.handle.uuid not in mdevs
                ]
            )
        }
        #: Instances whose devices refuse, and those that the API knows of.
        self._refusing: set[str] = set()
        self._known_refusing: set[str] = set()
        # An earlier nova-compute may have died before it had told the API.
        self._is_told = False

    def go_on(self) -> None:
        """Tell the API first; from the next call on, make missing devices.

        Nova starts guests in between. A device that refuses is told to the
        API once, and tried again at each call. If no device is missing, a
        call costs nothing.

        :raises ServiceUnavailable: the API does not know the news yet.
        """
        if self._is_told and not self._make():
            return
        self._is_told = False
        refusing = frozenset(self._refusing)
        self._api.provisioning(
            [arq_uuid for lost in self._missing.values() for arq_uuid in lost],
            [
                arq_uuid
                for instance_uuid in refusing - self._known_refusing
                for arq_uuid in self._missing[instance_uuid]
            ],
        )
        self._known_refusing |= refusing
        self._is_told = True

    def _make(self) -> bool:
        """Make missing devices.

        :returns: whether fewer are missing now, or another one refuses
        """
        before = len(self._missing)
        failed: list[finding.Finding] = []
        for instance_uuid in list(self._missing):
            with retries.retry_later(
                f'The accelerators of instance {instance_uuid} are not made '
                'again yet',
                instance_uuid,
            ) as tried:
                self._attachments.plug(instance_uuid)
            if tried.is_done:
                del self._missing[instance_uuid]
                self._refusing.discard(instance_uuid)
            else:
                self._refusing.add(instance_uuid)
            failed += tried.failure(
                'its accelerators are not made again yet, since the host has '
                'lost them',
                finding.Kind.NOT_MADE,
                instance_uuid,
            )
        self._findings.put('lost devices', failed)
        return (
            len(self._missing) < before
            or not self._refusing <= self._known_refusing
        )


class UnusedMdevs:
    """Destroys the mediated devices that no one has."""

    def __init__(
        self,
        node_devices: libvirt_devices.NodeDevices,
        guests: all_guests.AllGuests,
        attachments: attaching.Attachments,
    ) -> None:
        self._node_devices = node_devices
        self._guests = guests
        self._attachments = attachments

    def existing(self) -> tuple[pci_function.Mdev, ...]:
        """All that exist, whoever made them.

        :raises DeviceError: libvirt does not say what there is.
        """
        return self._node_devices.mdevs()

    def destroy_left(self, uuids: Collection[str]) -> list[finding.Finding]:
        """Destroy those that a Cyborg has left, and that no one has.

        Nova's own driver makes a mediated device of a Cyborg for the first
        guest that gets it, and leaves it to the next one. Only the database of
        that Cyborg can tell it from others of the card, and the card cannot
        make ours meanwhile.

        :returns: the ones that are still there
        :raises DeviceError: libvirt does not say what there is.
        """
        if not uuids:
            return []
        # In this order: a guest gets only what exists and is held.
        left = {
            mdev.uuid: mdev.parent
            for mdev in self.existing()
            if mdev.uuid in uuids
        }
        return [
            found
            for uuid in binding_repairs.orphans(
                sorted(left), self._held(), self._in_guests()
            )
            for found in _destroy(
                uuid,
                left[uuid],
                'Cyborg has left it, and no one has it',
                self._node_devices.destroy_mdev,
                uuid,
            )
            if not found.is_repaired
        ]

    def destroy_orphans(
        self,
        mdevs: Iterable[pci_function.Mdev],
        handles: Mapping[str, attach_handle.AttachHandle],
        listed: Collection[str],
    ) -> Iterator[finding.Finding]:
        """Destroy those of ours that no one has.

        :param mdevs: those that existed before the rest was read
        :param handles: by uuid, what the host offers
        :param listed: the uuids of the attach handles that the API says are
            held
        :raises DeviceError: libvirt does not describe its guests.
        """
        ours = [
            mdev.uuid
            for mdev in mdevs
            if (handle := handles.get(mdev.uuid)) is not None
            and (mdev.parent, mdev.type) == (handle.address, handle.mdev_type)
        ]
        orphans = binding_repairs.orphans(ours, self._held(), listed)
        if not orphans:
            return
        for uuid in binding_repairs.orphans(orphans, self._in_guests()):
            handle = handles[uuid]
            yield from _destroy(
                uuid,
                handle.address,
                'it is ours and no one has it',
                self._attachments.unplug_unheld,
                handle,
            )

    def destroy_deleted(
        self, handles: Iterable[attach_handle.AttachHandle]
    ) -> Iterator[finding.Finding]:
        """Destroy those of ours that Nova has deleted with their server.

        Nova deletes ARQs that are not adopted after it has removed the guest,
        and leaves their mediated devices. The next view has no such device.
        """
        for handle in handles:
            if handle.mdev_type is not None:
                yield from _destroy(
                    handle.uuid,
                    handle.address,
                    'its server is gone, and no one else holds it',
                    self._unplug_unused,
                    handle,
                )

    def _unplug_unused(self, handle: attach_handle.AttachHandle) -> None:
        self._guests.check_unused(handle)
        self._attachments.unplug_unheld(handle)

    def _held(self) -> set[str]:
        return {arq.handle.uuid for arq in self._attachments.held.arqs()}

    def _in_guests(self) -> frozenset[str]:
        return frozenset().union(*self._guests.devices().values())


def _destroy(
    uuid: str,
    parent: pci_address.PciAddress,
    why: str,
    destroy: Callable[[_T], None],
    device: _T,
) -> list[finding.Finding]:
    """Call ``destroy`` with a device, and say how that went."""
    words = f'The mediated device {uuid} of {parent} is destroyed: {why}'
    with retries.retry_later(
        f'The mediated device {uuid} is still there'
    ) as tried:
        destroy(device)
        LOG.warning(words)
    return tried.outcome(finding.Kind.MDEV, words, device=uuid)
