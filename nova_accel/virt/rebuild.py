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

"""Tell a rebuild in place from an evacuation, whose task states it has.

A rebuild destroys the guest, and it keeps its devices. What is evacuated is
destroyed too, by the source when it is back, and gives them back: maybe before
the destination has it, so that the instance says the same in both cases.
"""

from typing import Any

from nova import context as nova_context
from nova import objects
from nova.compute import task_states

from nova_accel.virt import hooks

_REBUILDING = frozenset({
    task_states.REBUILDING, task_states.REBUILD_BLOCK_DEVICE_MAPPING,
    task_states.REBUILD_SPAWNING})


class RebuildMixin(hooks.Hooks):
    """Remembers what this nova-compute rebuilds in place."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._rebuilding: set[str] = set()

    def rebuild(self, context: nova_context.RequestContext,
                instance: objects.Instance, *args: Any,
                evacuate: bool = False, **kwargs: Any) -> None:
        # Nova asks the driver first, and rebuilds by itself when it cannot.
        if not evacuate:
            self._rebuilding.add(instance.uuid)
        super().rebuild(
            context, instance, *args, evacuate=evacuate, **kwargs)

    def _rebuilds_in_place(self, instance: objects.Instance) -> bool:
        if instance.task_state not in _REBUILDING:
            self._rebuilding.discard(instance.uuid)
        return instance.uuid in self._rebuilding
