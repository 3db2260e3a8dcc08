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

"""``openstack accelerator host drain`` and its like."""

import argparse
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import datetime
import time
from typing import Any

from osc_lib import exceptions
from rich import console
from rich import progress

from nova_accel.osc import accelerator_calls
from nova_accel.osc import arguments
from nova_accel.osc import drain_cloud
from nova_accel.osc import host_emptying
from nova_accel.osc import nova_calls
from nova_accel.osc import published
from nova_accel.overview import printing

COLUMNS = ('Server', 'Name', 'Status', 'Way', 'Result', 'Why')

DRAIN_COLUMNS = (
    'Host',
    'Reason',
    'From',
    'Until',
    'Overdue',
    'Since',
    'Requested by',
    'Disabled devices',
)

#: The exit status if servers remain.
REMAINS = 1

#: The exit status if it was interrupted, as of a process that SIGINT ends.
INTERRUPTED = 130

GO_ON = (
    'Interrupted. Migrations that have begun go on. Run the command again to '
    'continue.'
)

_MAX_CONCURRENCY = 64


class Drain(printing.Lister):
    """Disable the devices of a host, and move its servers with devices away.

    A server goes live where its devices can. A stopped one goes cold. One that
    runs and cannot go live remains, unless --cold is given. The command can be
    interrupted, and run again: it goes on where the servers are then. The exit
    status is 1 if servers remain.

    With --from and a time to come, the drain is only announced: no server
    moves, and each is shown with how it would leave.
    """

    nothing = 'No server has devices of this host.'

    _rows: list[host_emptying.ServerRow]
    _is_interrupted = False
    _is_plan = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_host(parser)
        parser.add_argument(
            '--reason',
            metavar='<text>',
            help='why; it may be left out if the host is drained already',
        )
        parser.add_argument(
            '--from',
            metavar='<time>',
            type=arguments.time('from'),
            dest='start',
            help=(
                'the beginning to announce; until then servers stay, and new '
                'ones come'
            ),
        )
        parser.add_argument(
            '--until',
            metavar='<time>',
            type=_until,
            help=(
                'the end to announce, as 2026-11-24T06:00:00+00:00; nothing '
                'happens by itself then'
            ),
        )
        parser.add_argument(
            '--dry-run',
            action='store_true',
            help='change nothing, and say how each server would leave',
        )
        add_cold(parser)
        add_pace(parser)
        published.add_wait(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        super().run(parsed_args)
        if self._is_interrupted:
            return INTERRUPTED
        if self._is_plan:
            return 0
        return REMAINS if host_emptying.remaining(self._rows) else 0

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        cloud = drain_cloud.DrainCloud(
            nova_calls.client_of(self.app),
            accelerator_calls.client_of(self.app),
            parsed_args.host,
        )
        emptying = host_emptying.HostEmptying(
            cloud,
            allows_cold=parsed_args.cold,
            concurrency=parsed_args.concurrency,
            clock=time.monotonic,
            sleep=time.sleep,
        )
        known = cloud.drain()
        self._is_plan = parsed_args.dry_run
        if not parsed_args.dry_run:
            drain = cloud.begin(*_wanted(known, parsed_args))
            if drain['requested_at'] is None:
                self._is_plan = True
                self.warn(
                    'Servers stay where they are. New ones stay away from '
                    f'{drain["from"]} on. Run the command again then.'
                )
        if self._is_plan:
            self._rows = emptying.look()
            return COLUMNS, [_shown(row, 'planned') for row in self._rows]
        try:
            self._tell_plan(emptying.look())
            with show_progress() as tell:
                emptying.run(parsed_args.timeout, tell)
            self._tell_published(parsed_args)
        except KeyboardInterrupt:
            self._is_interrupted = True
            self.warn(GO_ON)
        self._rows = emptying.rows()
        return COLUMNS, [_shown(row) for row in self._rows]

    def _tell_published(self, parsed_args: argparse.Namespace) -> None:
        try:
            published.wait(
                accelerator_calls.client_of(self.app),
                [parsed_args.host],
                parsed_args.wait,
                self.warn,
            )
        except exceptions.CommandError as error:
            # The servers are told of all the same.
            self.warn(str(error))

    def _tell_plan(self, rows: Iterable[host_emptying.ServerRow]) -> None:
        for row in rows:
            self.warn(f'{row.name or row.uuid}: {row.way}: {row.why}')


class Undrain(printing.Command):
    """Enable the devices that the drain of a host has disabled.

    Devices that were disabled before, or have been disabled since, stay so.
    Servers do not come back by themselves.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_host(parser)
        published.add_wait(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        client = accelerator_calls.client_of(self.app)
        accelerator_calls.call(
            client, 'DELETE', drain_cloud.drain_path(parsed_args.host)
        )
        published.wait(client, [parsed_args.host], parsed_args.wait, self.warn)


class ListDrains(printing.Lister):
    """List the hosts that are drained or will be, with the reason."""

    nothing = 'No host is drained, and no drain is announced.'

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        drains = accelerator_calls.call(
            accelerator_calls.client_of(self.app), 'GET', '/drains'
        )['drains']
        return DRAIN_COLUMNS, [_of(drain) for drain in drains]


class ShowDrain(printing.ShowOne):
    """Show why a host is drained or will be, from when and until when."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_host(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        drain = accelerator_calls.call(
            accelerator_calls.client_of(self.app),
            'GET',
            drain_cloud.drain_path(parsed_args.host),
        )['drain']
        return DRAIN_COLUMNS, _of(drain)


def add_cold(parser: argparse.ArgumentParser) -> None:
    """Add the option to shut down guests."""
    parser.add_argument(
        '--cold',
        action='store_true',
        help=(
            'shut down guests that cannot go live, and boot them on '
            'other hosts'
        ),
    )


def add_pace(parser: argparse.ArgumentParser) -> None:
    """Add the options of how fast servers move, and for how long."""
    parser.add_argument(
        '--concurrency',
        metavar='<number>',
        type=arguments.number(_MAX_CONCURRENCY),
        default=2,
        help='how many servers move at a time (default: 2)',
    )
    parser.add_argument(
        '--timeout',
        metavar='<seconds>',
        type=arguments.number(7 * 24 * 3600),
        default=3600,
        help='when to stop waiting (default: 3600)',
    )


def _add_host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'host', metavar='<host>', help="Nova's name of the hypervisor"
    )


def _until(text: str) -> str:
    time = arguments.time('until')(text)
    if datetime.datetime.fromisoformat(time) <= datetime.datetime.now(
        datetime.UTC
    ):
        raise argparse.ArgumentTypeError(f'{text} is over')
    return time


def _wanted(
    known: dict[str, Any] | None, parsed_args: argparse.Namespace
) -> tuple[str, str | None, str | None]:
    """The reason, the end and the beginning.

    The reason and the end of the drain that there is are kept.

    :raises CommandError: there is no reason.
    """
    before = known or {'reason': None, 'until': None}
    reason = parsed_args.reason or before['reason']
    if not reason:
        raise exceptions.CommandError(
            f'Say with --reason why {parsed_args.host} is drained'
        )
    until = parsed_args.until or before['until']
    return reason, until, parsed_args.start


@contextlib.contextmanager
def show_progress() -> Iterator[Callable[[host_emptying.Progress], None]]:
    """A progress bar on a terminal, and nothing elsewhere."""
    terminal = console.Console(stderr=True)
    with progress.Progress(
        progress.TextColumn('Servers that have left'),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn('{task.description}', markup=False),
        console=terminal,
        transient=True,
        disable=not terminal.is_terminal,
    ) as bar:
        task = bar.add_task('', total=None)

        def show(now: host_emptying.Progress) -> None:
            bar.update(
                task,
                completed=now.left,
                total=now.total,
                description=now.now,
            )

        yield show


def _shown(row: host_emptying.ServerRow, result: str = '') -> tuple[str, ...]:
    return (
        row.uuid,
        row.name,
        row.status,
        row.way,
        result or ('left' if row.is_left else 'remains'),
        row.why,
    )


def _of(drain: dict[str, Any]) -> tuple[Any, ...]:
    return (
        drain['hostname'],
        drain['reason'],
        drain['from'],
        drain['until'],
        drain['is_overdue'],
        drain['requested_at'],
        drain['requested_by'],
        drain['devices'],
    )
