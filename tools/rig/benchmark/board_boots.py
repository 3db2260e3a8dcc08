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

"""Servers of several sizes on NVSwitch boards, ``tools/bench boards``.

Each server goes through the request filters, Nova's SchedulerManager, a real
Placement and a binding. What it gets is compared with the partitions that the
board offers, and each refusal with what was free.
"""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import random
from typing import Any

from rig.benchmark import progress_bar
from rig.loopback import board_cloud
from rig.loopback import board_host

#: How many of 100 steps delete a server before they boot one.
_DELETED = 60


@dataclasses.dataclass
class Tally:
    """The numbers of what became of servers.

    ``refused`` had no whole set of their size left. ``refused_wrongly`` had
    one. ``invalid`` got GPUs that are no partition.
    """

    booted: int = 0
    deleted: int = 0
    refused: int = 0
    refused_wrongly: int = 0
    invalid: int = 0


class Boots:
    """Servers that come and go by chance.

    :param sizes: how many GPUs a server may have
    """

    def __init__(
        self,
        cloud: board_cloud.BoardCloud,
        sizes: Sequence[int],
        chance: random.Random,
    ) -> None:
        self._cloud = cloud
        self._sizes = sizes
        self._chance = chance
        self.tally = Tally()
        for size in sizes:
            cloud.profile(
                _profile(size),
                {
                    f'resources:{board_host.GPU_CLASS}': str(size),
                    **({} if size == 1 else {'accel:link': 'nvlink'}),
                },
            )

    def run(self, boots: int, tell: Callable[[int], None]) -> None:
        """Take steps until so many servers were booted, or refused wrongly.

        :param tell: is told how many
        """
        done = 0
        while done < boots:
            self.step()
            done = self.tally.booted + self.tally.refused_wrongly
            tell(done)

    def step(self) -> None:
        """Delete a server or not, and boot one."""
        servers = sorted(self._cloud.servers)
        if servers and self._chance.randrange(100) < _DELETED:
            self._cloud.delete(self._chance.choice(servers))
            self.tally.deleted += 1
        self.boot(self._chance.choice(self._sizes))

    def boot(self, size: int) -> None:
        cloud = self._cloud
        was_there = cloud.has_whole(size)
        before = set(cloud.servers)
        if cloud.is_refused(_profile(size)):
            self.tally.refused_wrongly += was_there
            self.tally.refused += not was_there
            return
        [uuid] = cloud.servers.keys() - before
        server = cloud.servers[uuid]
        modules = cloud.modules(server)
        self.tally.booted += 1
        self.tally.invalid += (
            len(modules) != size
            or modules not in cloud.hosts[server.hostname].supported
        )


def _profile(size: int) -> str:
    return f'gpus-{size}'


def figures(
    boots: int, hosts: int, sizes: Sequence[int], seed: int = 0
) -> dict[str, Any]:
    """What became of so many servers on so many boards."""
    with (
        board_cloud.BoardCloud(
            [
                board_host.BoardHost(f'board-{number}')
                for number in range(hosts)
            ]
        ) as cloud,
        progress_bar.shown('Boots', boots) as tell,
    ):
        steps = Boots(
            cloud,
            sizes,
            random.Random(seed),  # noqa: S311 nothing here is a secret
        )
        steps.run(boots, tell)
    return {
        'boards': hosts,
        'gpus_of_servers': list(sizes),
        **dataclasses.asdict(steps.tally),
    }
