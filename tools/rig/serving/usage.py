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

"""What processes use of a machine, as the kernel says."""

from collections.abc import Iterable
import os
import pathlib
from typing import NamedTuple

_TICKS_PER_S = os.sysconf('SC_CLK_TCK')

#: The places of user and system time among the fields after the name.
_USER, _SYSTEM = 11, 12


class Usage(NamedTuple):
    """What one process or several use.

    :ivar rss_mb: resident memory; pages that processes share count for each
    :ivar pss_mb: proportional memory; such a page counts once for all
    :ivar cpu_s: the time that they have computed
    """

    rss_mb: float = 0.0
    pss_mb: float = 0.0
    cpu_s: float = 0.0

    def memory(self) -> dict[str, float]:
        """For the output of a benchmark."""
        return {
            'rss_mb': round(self.rss_mb, 1),
            'memory_pss_mb': round(self.pss_mb, 1),
        }


def of_family(pid: int) -> Usage:
    """Of a process and its children."""
    children = pathlib.Path(f'/proc/{pid}/task/{pid}/children')
    return total(
        _of(pathlib.Path(f'/proc/{each}'))
        for each in (pid, *children.read_text().split())
    )


def total(usages: Iterable[Usage]) -> Usage:
    return Usage(*map(sum, zip(*usages, strict=True)))


def _of(process: pathlib.Path) -> Usage:
    fields = (process / 'stat').read_text().rpartition(')')[2].split()
    return Usage(
        _mb(process / 'smaps_rollup', 'Rss:'),
        _mb(process / 'smaps_rollup', 'Pss:'),
        (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS_PER_S,
    )


def _mb(path: pathlib.Path, name: str) -> float:
    return sum(
        int(line.split()[1]) / 1024
        for line in path.read_text().splitlines()
        if line.startswith(name)
    )
