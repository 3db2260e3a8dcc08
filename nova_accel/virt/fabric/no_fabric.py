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

"""A host whose guests need no partition of NVSwitches."""

from collections.abc import Iterable
import contextlib

from nova_accel.model import arq_types
from nova_accel.model.links import fabric


class NoFabric:
    """Does nothing at all, as on every host without ``fabric_manager``.

    :mod:`nova_accel.virt.fabric.guest_partitions` says what else may be done.
    """

    def partitions(self) -> tuple[fabric.Partition, ...]:
        """The partitions that Fabric Manager has, with what faults allow.

        :raises DeviceError: it gave no usable answer.
        """
        return ()

    def ready(self, instance_uuid: str, arqs: Iterable[arq_types.Arq]) -> None:
        """Make sure that the partition of a guest's GPUs is active.

        :param arqs: all that the guest gets
        :raises Conflict: another guest has the partition, or one of its GPUs.
        :raises DeviceError: there is no such partition, or it cannot be
            activated.
        """

    def has(self, instance_uuid: str) -> bool:
        """Whether an instance has a partition, or is about to get it."""
        return False

    def is_for(self, arqs: Iterable[arq_types.Arq]) -> bool:
        """Whether a guest with these needs a partition."""
        return False

    def confirm(self, instance_uuid: str) -> None:
        """Make sure again that an instance's partition is active.

        Fabric Manager may have lost it since :meth:`ready`. It is called
        while the guest exists and does not run.

        :raises Conflict: somebody else has activated one of its GPUs.
        :raises DeviceError: it is not active, and cannot be activated.
        """

    def let_go(self, handle_uuid: str) -> None:
        """Deactivate the partition with a device that no guest has any more.

        It does not raise. A failure is left to :meth:`repair`, and to the
        start of the next guest that gets one of the GPUs.
        """

    def during(
        self,
        instance_uuid: str,
    ) -> contextlib.AbstractContextManager[None]:
        """Leave an instance's partition alone while the body runs.

        The body stops, starts or moves the guest. If the guest does not run
        then, its partition is deactivated.
        """
        return contextlib.nullcontext()

    def begin(self) -> None:
        """Forget what was active before the last reboot of the host."""

    def repair(self) -> None:
        """Compare the active partitions with the running guests.

        A Fabric Manager that was restarted is told what is active. Partitions
        of guests that are gone are deactivated.

        :raises AcceleratorError: Fabric Manager, or libvirt, gave no answer.
        """

    def watch(self) -> None:
        """Call :meth:`repair` from time to time."""

    def end(self) -> None:
        """Watch no more."""
