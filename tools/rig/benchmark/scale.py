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

"""A cloud of many hosts that is at work: ``tools/bench scale``.

Its arguments, its figures, and the times at which things happen.
"""

import argparse
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import threading
from typing import Any

from rig.benchmark import subcommands

#: The hosts for which the pool's share of a core is computed.
_COMPUTED_FOR = 10_000


@dataclasses.dataclass(frozen=True)
class Scale:
    """The scale of the cloud, from the command line.

    :ivar boots: in a minute; as many servers are deleted
    :ivar minutes: that it is measured
    :ivar report_s: seconds from one report of a host to the next
    :ivar away_s: seconds for which the database is away
    """

    hosts: int
    boots: int
    minutes: float
    report_s: float
    away_s: float

    @property
    def seconds(self) -> float:
        return self.minutes * 60


def add(commands: subcommands.Commands) -> None:
    """Add the command to those of argparse."""
    command = commands.add_parser(
        'scale',
        help=(
            'what the API uses, and how long its clients wait, in a cloud of '
            'many hosts of 8 devices that report while servers are booted '
            'and deleted. It has a real Placement and MariaDB, the API as it '
            'is deployed, and a SchedulerManager of Nova with our filters. '
            'The API is restarted after a third of the time, and its '
            'database is away after two. It notifies through RabbitMQ. '
            'nova-conductor and nova-compute do not run: their calls are '
            'made by the same clients'
        ),
    )
    command.set_defaults(measure=_measure)
    subcommands.add_numbers(
        command,
        ('hosts', 1000, 'the number of hosts'),
        ('boots', 20, 'how many servers are booted in a minute, and deleted'),
        ('minutes', 60, 'that it is measured'),
        ('report-s', 60, 'seconds from one report of a host to the next'),
        ('away-s', 10, 'seconds for which the database is away'),
    )


def _measure(arguments: argparse.Namespace) -> dict[str, Any]:
    from rig.benchmark import scale_cloud

    return scale_cloud.figures(
        Scale(
            arguments.hosts,
            arguments.boots,
            arguments.minutes,
            arguments.report_s,
            arguments.away_s,
        )
    )


def latencies(found: Sequence[float]) -> dict[str, float] | None:
    """The figures of how long some calls took, in milliseconds.

    :param found: the seconds of each
    :returns: None if there were none
    """
    if not found:
        return None
    ordered = sorted(found)
    return {
        name: round(ordered[int(len(ordered) * part)] * 1000, 1)
        for name, part in (('median', 0.5), ('p99', 0.99))
    } | {'longest': round(ordered[-1] * 1000, 1)}


def rows(
    before: Mapping[str, int], after: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """The numbers of rows of the tables that have any."""
    return {
        table: {'before': before[table], 'after': after[table]}
        for table in before
        if before[table] or after[table]
    }


def percent(cpu_s: float, seconds: float) -> float:
    """The share of a core."""
    return round(cpu_s / seconds * 100, 2)


def shares(undisturbed: float, hosts: int) -> dict[str, float]:
    """The pool's share of a core before anything fails, in percent.

    That of more hosts is computed as if their servers grew with them.
    """
    return {
        'cpu_percent_undisturbed': undisturbed,
        f'cpu_percent_of_{_COMPUTED_FOR}_hosts': round(
            undisturbed * _COMPUTED_FOR / hosts, 1
        ),
    }


def paced(
    call: Callable[[int], object],
    interval_s: float,
    seconds: float,
    clock: Callable[[], float],
    stopped: threading.Event,
) -> None:
    """Make calls at fixed times, until the time is over or it is stopped.

    A call that is late does not delay the times of the others.

    :param call: gets 0, 1, and so on, and returns at once
    """
    begin = clock()
    for number in itertools.count():
        due = begin + number * interval_s
        if due >= begin + seconds or stopped.wait(max(0.0, due - clock())):
            return
        call(number)
