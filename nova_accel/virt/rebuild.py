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

"""A memory of rebuilds in place, which tells them from evacuations.

Both have the same task states. A rebuild in place destroys the guest, and the
server keeps its devices. After an evacuation the source destroys the guest
when it is back, and gives the devices back. It may do so before the
destination has the server. Until then the instance looks as in a rebuild.
"""

from typing import Any

from nova import context as nova_context
from nova import objects
from nova.compute import task_states

from nova_accel.virt import hooks

_REBUILDING = frozenset(
    {
        task_states.REBUILDING,
        task_states.REBUILD_BLOCK_DEVICE_MAPPING,
        task_states.REBUILD_SPAWNING,
    }
)


class RebuildMixin(hooks.Hooks):
    """Remembers the servers that this nova-compute rebuilds in place."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._rebuilding: set[str] = set()

    def rebuild(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        evacuate: bool = False,
        **kwargs: Any,
    ) -> None:
        # Nova asks the driver first. If the driver cannot, Nova rebuilds the
        # server itself.
        if not evacuate:
            self._rebuilding.add(instance.uuid)
        super().rebuild(context, instance, *args, evacuate=evacuate, **kwargs)

    def _rebuilds_in_place(self, instance: objects.Instance) -> bool:
        if instance.task_state not in _REBUILDING:
            self._rebuilding.discard(instance.uuid)
        return instance.uuid in self._rebuilding
