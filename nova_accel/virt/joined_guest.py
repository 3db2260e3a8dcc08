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

"""Guests whose GPUs are joined, looked at again before they run.

Fabric Manager may lose a partition after it was activated, and before its
guest runs. So such a guest is started paused, or paused while it gets its
devices. Its partition is confirmed then. Other guests are not paused.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib

from nova.virt.libvirt import guest as libvirt_guest
from oslo_utils import excutils

from nova_accel.virt.fabric import no_fabric


class JoinedGuest(libvirt_guest.Guest):
    """A guest that was started paused; it runs only with its partition.

    :param confirm: makes sure that the partition is active
    """

    def __init__(
        self, guest: libvirt_guest.Guest, confirm: Callable[[], None]
    ) -> None:
        super().__init__(guest._domain)
        self._confirm = confirm

    def resume(self) -> None:
        """Nova calls it, too, if the guest has waited for its networks.

        The guest is destroyed if its partition is not active.
        """
        try:
            self._confirm()
        except BaseException:
            with excutils.save_and_reraise_exception():
                self.poweroff()
        super().resume()


@contextlib.contextmanager
def waiting(
    fabric: no_fabric.NoFabric, guest: libvirt_guest.Guest, instance_uuid: str
) -> Iterator[None]:
    """Keep a running guest from running while it gets its devices.

    :raises AcceleratorError: its partition is not active; the guest runs.
    """
    if not fabric.has(instance_uuid):
        yield
        return
    guest.pause()
    try:
        yield
        fabric.confirm(instance_uuid)
    finally:
        guest.resume()
