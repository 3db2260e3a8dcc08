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

"""A server as Nova knows it, and the states of its migrations."""

import dataclasses

#: The states of migrations in Nova that have not ended yet. A "finished" one
#: waits until its owner confirms or reverts it.
UNFINISHED = frozenset(
    {
        'accepted',
        'queued',
        'preparing',
        'pre-migrating',
        'migrating',
        'running',
        'running (post-copy)',
        'post-migrating',
        'finished',
        'confirming',
        'reverting',
    }
)

#: The unfinished states of a live migration.
LIVE = frozenset(
    {'accepted', 'queued', 'preparing', 'running', 'running (post-copy)'}
)

#: Nova's ``vm_state`` of an instance that has not had a guest yet.
_BUILDING = 'building'


@dataclasses.dataclass(frozen=True)
class Server:
    """An existing instance of Nova.

    ``host`` is its service host, None if it has none. ``is_migrating`` says
    that it has an unfinished migration. ``is_resized`` says that Nova still
    remembers its previous flavor.
    """

    host: str | None
    vm_state: str | None = None
    task_state: str | None = None
    is_migrating: bool = False
    is_resized: bool = False

    @property
    def is_busy(self) -> bool:
        """Whether Nova is running an operation on it."""
        return self.task_state is not None or self.vm_state == _BUILDING
