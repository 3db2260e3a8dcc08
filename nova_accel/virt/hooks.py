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

"""The base of the mixins, each of which extends hooks of Nova's driver."""

from collections.abc import Iterable
import contextlib
from typing import TYPE_CHECKING

from nova_accel.host import nvidia_smi
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.virt import os_acc
from nova_accel.virt import parts
from nova_accel.virt.holding import holdings

if TYPE_CHECKING:
    # Each hook calls Nova's method, which has no types.
    from nova.virt.libvirt.driver import LibvirtDriver as _Extended
else:
    _Extended = object


class Hooks(_Extended):
    """A base class with the parts that all hooks use."""

    os_acc: os_acc.OsAcc
    _accelerators: parts.Parts
    #: The instances whose guests Nova is resuming.
    _resuming: set[str]

    @property
    def _held(self) -> holdings.Holdings:
        return self._accelerators.attachments.held

    def _unbinding(
        self, arqs: Iterable[arq_types.Arq]
    ) -> contextlib.AbstractContextManager[None]:
        """For a body in which libvirt takes devices from their drivers.

        :raises DeviceError: on entry, if a tool of ours does not let go.
        """
        return nvidia_smi.kept_away(
            self._accelerators.sysfs,
            [
                function
                for arq in arqs
                if arq.handle.type is attach_handle.HandleType.PCI
                for function in arq.handle.functions
            ],
        )
