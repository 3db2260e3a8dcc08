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


"""``openstack accelerator room``: move servers so that others find room."""

import argparse
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import datetime
import pathlib
import time
from typing import Any

from nova_accel.model.fleet import fleet
from nova_accel.model.fleet import moved_units
from nova_accel.osc import accelerator_calls
from nova_accel.osc import api_fleet
from nova_accel.osc import arguments
from nova_accel.osc import host_drain
from nova_accel.osc import nova_calls
from nova_accel.osc import nova_servers
from nova_accel.osc import room_cloud
from nova_accel.osc import room_making
from nova_accel.overview import fleet_map
from nova_accel.overview import printing
from nova_accel.state import durable_file

COLUMNS = (
    'Server',
    'Name',
    'Status',
    'From',
    'To',
    'Way',
    'Result',
    'Why',
)

#: The exit status if there is no room.
NO_ROOM = 1

_MAX_COUNT = 16

_Table = tuple[tuple[str, ...], list[tuple[Any, ...]]]


class _Room(printing.Lister):
    """A command for room. Its exit status is 1 if there is none."""

    nothing = 'There is room already: no server has to move.'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--for',
            metavar='<device-profile>',
            dest='profile',
            required=True,
            help='name or uuid of the device profile of the servers that need '
            'room',
        )
        parser.add_argument(
            '--count',
            metavar='<number>',
            type=arguments.number(_MAX_COUNT),
            default=1,
            help='how many servers need room (default: 1)',
        )
        host_drain.add_cold(parser)
        parser.add_argument(
            '--locked',
            action='store_true',
            help='move locked servers, too',
        )
        parser.add_argument(
            '--pinned',
            action='store_true',
            help=(
                f'move servers, too, whose metadata has {room_cloud.PINNED}'
            ),
        )
        parser.add_argument(
            '--keep',
            metavar='<server>',
            action='append',
            default=[],
            help='a server that stays; the option may be repeated',
        )
        return parser

    def _making(
        self, parsed_args: argparse.Namespace, concurrency: int = 1
    ) -> room_making.RoomMaking:
        return room_making.RoomMaking(
            room_cloud.RoomCloud(
                nova_calls.client_of(self.app),
                accelerator_calls.client_of(self.app),
            ),
            parsed_args.profile,
            parsed_args.count,
            room_making.Allowed(
                parsed_args.cold,
                parsed_args.locked,
                parsed_args.pinned,
                frozenset(
                    nova_servers.uuid_of(self.app, name)
                    for name in parsed_args.keep
                ),
            ),
            concurrency=concurrency,
            clock=time.monotonic,
            sleep=time.sleep,
        )

    def _tell(self, plan: room_making.PlannedRoom) -> None:
        """Say why there is no plan, or how good it is."""
        if plan.moves is None:
            self.nothing = 'No server moves.'
            self.warn(
                'No moves of these servers make room.'
                if plan.is_proven
                else 'No moves were found that make room. There may be some: '
                'the search was too long.'
            )
            for why, servers in sorted(plan.staying.items()):
                self.warn(f'Servers that stay: {servers}, {why}')
        elif not plan.is_proven:
            self.warn('There may be a plan with fewer moves.')


class Plan(_Room):
    """Show the fewest moves of servers after which others find room.

    Nothing moves. If there is room already, no server has to move.
    """

    _moves: tuple[room_making.PlannedMove, ...] | None

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        for when in ('before', 'after'):
            parser.add_argument(
                f'--map-{when}',
                metavar='<path>',
                type=pathlib.Path,
                help=(
                    f'draw a map of all units {when} the moves into one HTML '
                    'file, which only its owner can read'
                ),
            )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        super().run(parsed_args)
        return NO_ROOM if self._moves is None else 0

    def take_action(self, parsed_args: argparse.Namespace) -> _Table:
        plan = self._making(parsed_args).plan()
        self._tell(plan)
        self._moves = plan.moves
        if parsed_args.map_before or parsed_args.map_after:
            self._draw(parsed_args, [move.told for move in plan.moves or ()])
        return COLUMNS, _rows(plan.moves or ())

    def _draw(
        self,
        parsed_args: argparse.Namespace,
        moves: Sequence[Mapping[str, Any]],
    ) -> None:
        sources = api_fleet.Sources(self.app)
        ours = sources.ours()
        nova = sources.nova(ours)
        now = datetime.datetime.now(datetime.UTC)
        for path, units, title in (
            (parsed_args.map_before, ours, 'Accelerators'),
            (
                parsed_args.map_after,
                moved_units.after(ours, moves),
                'Accelerators after the planned moves',
            ),
        ):
            if path is not None:
                # Where sources disagree is of now, and not asked for here.
                found = fleet.join(units, nova)._replace(compared=())
                durable_file.write(path, fleet_map.draw(found, now, title))


class Make(_Room):
    """Move servers so that others find room.

    The moves are planned again after each few of them, as the cloud may have
    changed. The command can be interrupted, and run again. It waits for the
    migrations that its user has begun, and confirms those that are cold.
    """

    _left: room_making.PlannedRoom | None = None

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        host_drain.add_pace(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        super().run(parsed_args)
        if self._left is None:
            return host_drain.INTERRUPTED
        return 0 if self._left.moves == () else NO_ROOM

    def take_action(self, parsed_args: argparse.Namespace) -> _Table:
        making = self._making(parsed_args, parsed_args.concurrency)
        try:
            with host_drain.show_progress() as tell:
                self._left = making.run(parsed_args.timeout, tell)
        except KeyboardInterrupt:
            self.warn(host_drain.GO_ON)
            return COLUMNS, _rows(making.done)
        self._tell(self._left)
        return COLUMNS, _rows((*making.done, *(self._left.moves or ())))


def _rows(moves: Iterable[room_making.PlannedMove]) -> list[tuple[str, ...]]:
    return [
        (
            move.server.uuid,
            move.server.name,
            move.server.status,
            move.told['from'],
            move.told['to'],
            move.way,
            move.result,
            move.why,
        )
        for move in moves
    ]
