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

"""The base of all commands: it prints nothing that a terminal would obey.

Hosts, tenants and devices choose many of the texts that a command shows. One
may have sequences that move the cursor, or a line that somebody else seems to
have printed. So no command writes to the output itself, and each cell, line
and fault passes this module.
"""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import itertools
import json
from typing import Any

from cliff import command
from cliff import lister
from cliff import show

from nova_accel import reason


class Unprintable(Exception):
    """A fault whose own words had to be made printable."""


class Command(command.Command):
    """A command whose output is printable."""

    def run(self, parsed_args: argparse.Namespace) -> int:
        """:raises Unprintable: in the place of a fault with other words"""
        with printable_faults():
            return super().run(parsed_args)

    def print_line(self, line: str) -> None:
        """Print a line."""
        self.app.stdout.write(f'{reason.printable(line)}\n')

    def print_json(self, document: Any) -> None:
        """Print a JSON document, in ASCII alone."""
        json.dump(document, self.app.stdout, indent=1)
        self.app.stdout.write('\n')

    def warn(self, line: str) -> None:
        """Print a line on the standard error."""
        self.app.stderr.write(f'{reason.printable(line)}\n')


class Lister(Command, lister.Lister):
    """A command that shows a table."""

    #: The line for a person in place of a table without rows.
    nothing = 'There is none.'

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
    ) -> int:
        rows = (tuple(map(terminal_value, row)) for row in data)
        first = next(rows, None)
        if first is None and parsed_args.formatter == 'table':
            self.print_line(self.nothing)
            return 0
        status: int = super().produce_output(
            parsed_args,
            column_names,
            itertools.chain([] if first is None else [first], rows),
        )
        return status


class ShowOne(Command, show.ShowOne):
    """A command that shows the fields of one thing."""

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Any],
    ) -> int:
        status: int = super().produce_output(
            parsed_args, column_names, tuple(map(terminal_value, data))
        )
        return status


@contextlib.contextmanager
def printable_faults() -> Iterator[None]:
    """Let no fault out of the body that has words for a terminal.

    The caller of a command prints its fault.

    :raises Unprintable: in the place of such a fault
    """
    try:
        yield
    except Exception as fault:
        words = str(fault)
        if words.isprintable():
            raise
        raise Unprintable(
            f'{type(fault).__name__}: {reason.printable(words)}'
        ).with_traceback(fault.__traceback__) from None


def terminal_value(value: Any) -> Any:
    """A value for a terminal: numbers as they are, the rest as a text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return reason.printable(str(value))
