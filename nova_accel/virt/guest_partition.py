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

"""Hooks that tell the fabric while Nova stops, starts or moves a guest.

A guest may be away for a moment during these calls. Its partition of
NVSwitches is left alone until they end. If the guest does not run then, the
partition is deactivated. :meth:`nova_accel.virt.os_acc.OsAcc.ready` activates
it.
"""

from collections.abc import Callable
from typing import Any

from nova import objects

from nova_accel import exceptions
from nova_accel.virt import hooks
from nova_accel.virt.fabric import no_fabric

#: The hooks that only tell, each with the place of its instance.
_HOOKS = {
    'spawn': 1,
    'destroy': 1,
    'power_off': 0,
    '_hard_reboot': 1,
    'suspend': 1,
    'resume': 1,
    'snapshot': 1,
    'rescue': 1,
    'unrescue': 1,
    'migrate_disk_and_power_off': 1,
    'finish_migration': 2,
    'finish_revert_migration': 1,
}


class GuestPartitionMixin(hooks.Hooks):
    """The hooks; in the bases they come before all others of ours."""

    def _soft_reboot(self, instance: objects.Instance) -> bool:
        with self._fabric.during(instance.uuid):
            try:
                if self._held.left_by(instance.uuid):
                    # Nova's hard reboot makes a guest without them.
                    return False
                with self._unbinding(self._held.arqs_of(instance.uuid)):
                    done = super()._soft_reboot(instance)
            except exceptions.AcceleratorError:
                # Nova tries a hard reboot, which tells the reason.
                return False
            return bool(done) and self._stays_joined(instance)

    def _stays_joined(self, instance: objects.Instance) -> bool:
        """Look again at the partition of a guest that was just started.

        :returns: whether it is active; the guest does not run if it is not,
            and Nova tries a hard reboot
        """
        if self._fabric.has(instance.uuid):
            guest = self._host.get_guest(instance)
            guest.pause()
            try:
                self._fabric.confirm(instance.uuid)
            except exceptions.AcceleratorError:
                return False
            guest.resume()
        return True

    @property
    def _fabric(self) -> no_fabric.NoFabric:
        return self._accelerators.fabric


def _hook(name: str, place: int) -> Callable[..., Any]:
    def call(self: GuestPartitionMixin, *args: Any, **kwargs: Any) -> Any:
        instance = kwargs['instance'] if 'instance' in kwargs else args[place]
        with self._fabric.during(instance.uuid):
            return getattr(super(GuestPartitionMixin, self), name)(
                *args, **kwargs
            )

    call.__name__ = name
    return call


for _name, _place in _HOOKS.items():
    setattr(GuestPartitionMixin, _name, _hook(_name, _place))
