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

"""A server as Nova knows it: its migrations' states and its ports' ARQs."""

from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from typing import Any

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


def arqs_of_ports(
    network_info: Iterable[Mapping[str, Any]], functions: Container[str]
) -> frozenset[str]:
    """The uuids of the ARQs of ports that have one of our PCI functions.

    Neutron names the ARQ of a port in the port's binding profile.

    :param network_info: the instance's, as Nova has it
    :param functions: the addresses of ours on the host
    """
    profiles = (vif.get('profile') or {} for vif in network_info)
    return frozenset(
        profile['arq_uuid']
        for profile in profiles
        if profile.get('arq_uuid') and profile.get('pci_slot') in functions
    )
