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

"""The commands of ``tools/bench`` for which Placement alone is needed."""

import argparse
from typing import Any

from rig.benchmark import subcommands


def add(commands: subcommands.Commands) -> None:
    """Add the commands ``candidates`` and ``boards``."""
    _add_candidates(commands)
    _add_boards(commands)


def _add_candidates(commands: subcommands.Commands) -> None:
    command = commands.add_parser(
        'candidates',
        help=(
            'how long Placement looks for the hosts that can serve a request, '
            'with their devices pooled, pooled by NUMA node and apart'
        ),
    )
    command.set_defaults(measure=_candidates)
    subcommands.add_numbers(
        command,
        ('hosts', 1000, 'the number of hosts'),
        ('devices', 8, 'the number of devices of each host'),
        ('times', 9, 'how often a request is measured; the fastest counts'),
    )
    command.add_argument(
        '--boards',
        action='store_true',
        help=(
            'instead, for servers with 1, 2, 4 and 8 GPUs that NVSwitches '
            'join, on hosts with eight each'
        ),
    )


def _add_boards(commands: subcommands.Commands) -> None:
    command = commands.add_parser(
        'boards',
        help=(
            'whether servers of several GPUs get sets that NVSwitches join, '
            'as long as a whole one is free, while servers come and go'
        ),
    )
    command.set_defaults(measure=_boards)
    subcommands.add_numbers(
        command,
        ('boots', 1000, 'the number of servers'),
        ('hosts', 4, 'the number of hosts, with a board of 8 GPUs each'),
    )
    command.add_argument(
        '--gpus',
        type=int,
        choices=(1, 2, 4, 8),
        nargs='+',
        default=[2, 4],
        metavar='N',
        help='the GPUs of a server, by chance one of these (default: 2 4)',
    )


def _candidates(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.boards:
        from rig.benchmark import board_candidates

        return board_candidates.figures(arguments.hosts, arguments.times)
    from rig.benchmark import candidates

    return candidates.figures(
        arguments.hosts, arguments.devices, arguments.times
    )


def _boards(arguments: argparse.Namespace) -> dict[str, Any]:
    from rig.benchmark import board_boots

    return board_boots.figures(
        arguments.boots, arguments.hosts, arguments.gpus
    )
