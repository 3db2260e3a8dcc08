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


"""The benchmark of the fleet's map, ``tools/bench fleet``."""

import argparse
from collections.abc import Callable
import datetime
import time
from typing import Any
from typing import TypeVar

from nova_accel.model.fleet import fleet
from nova_accel.overview import fleet_map
from nova_accel.testing import simulated_fleet
from rig.benchmark import subcommands

_TIMES = 5

_R = TypeVar('_R')


def add(commands: subcommands.Commands) -> None:
    """Add the command to those of argparse."""
    command = commands.add_parser(
        'fleet',
        help='how long it takes to join and to draw a simulated fleet',
    )
    command.set_defaults(measure=_measure)
    command.add_argument(
        '--devices',
        type=int,
        default=2000,
        metavar='N',
        help='the number of devices (default: 2000)',
    )


def _measure(arguments: argparse.Namespace) -> dict[str, Any]:
    return measure(arguments.devices)


def measure(devices: int) -> dict[str, Any]:
    """CPU times in seconds, the least of five times.

    Sources disagree in each way, and hosts have found something of each kind,
    so the fleet has 400 devices at least.
    """
    simulated = simulated_fleet.SimulatedFleet(devices)
    simulated.disagree()
    simulated.find()
    join_s, joined = _timed(
        lambda: fleet.join(simulated.ours, simulated.nova, simulated.placement)
    )
    now = datetime.datetime.now(datetime.UTC)
    draw_s, text = _timed(lambda: fleet_map.draw(joined, now))
    return {
        'devices': devices,
        'units': len(simulated.units),
        'compared': len(joined.compared),
        'reported': len(joined.reported),
        'join_s': round(join_s, 3),
        'draw_s': round(draw_s, 3),
        'bytes': len(text.encode()),
    }


def _timed(call: Callable[[], _R]) -> tuple[float, _R]:
    times = []
    for _time in range(_TIMES):
        start = time.process_time()
        result = call()
        times.append(time.process_time() - start)
    return min(times), result
