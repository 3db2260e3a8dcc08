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

"""The output of the quickstart: progress for people, or a JSON document."""

from collections.abc import Iterable
from collections.abc import Sequence
import contextlib
import json
import sys
import traceback
from typing import Any
from typing import TextIO

import fixtures
from rich import box
from rich import console
from rich import markup
from rich import padding
from rich import table


class Report:
    """Collects the facts that are shown, and the expectations not met.

    :param as_json: progress goes to standard error, and :meth:`finish`
        prints one JSON document on standard output
    :ivar differences: one line for each expectation that was not met
    """

    def __init__(self, as_json: bool = False) -> None:
        self.differences: list[str] = []
        self._as_json = as_json
        self._steps: list[dict[str, Any]] = []
        self._console = _console(sys.stderr if as_json else sys.stdout)

    def step(self, title: str) -> None:
        """Begin a step; facts and checks belong to the last one begun."""
        self._steps.append({'title': title, 'facts': {}, 'checks': []})
        self._print(f'\n[bold]{len(self._steps)}. {markup.escape(title)}[/]')

    def line(self, text: str) -> None:
        """Print a line for people."""
        self._print(f'   {markup.escape(text)}')

    def fact(self, name: str, value: Any) -> None:
        """Add a fact to the JSON document only."""
        self._steps[-1]['facts'][name] = value

    def rows(
        self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Show a table; each row becomes an object of the document.

        :param rows: the cells; a list is shown as several lines
        """
        rows = list(rows)
        terminal = self._console.is_terminal
        view = table.Table(
            *(table.Column(column, overflow='fold') for column in columns),
            box=box.SIMPLE_HEAD if terminal else None,
            pad_edge=False,
        )
        for row in rows:
            view.add_row(
                *(
                    markup.escape(
                        ('\n' if terminal else ' ').join(cell)
                        if isinstance(cell, list)
                        else str(cell)
                    )
                    for cell in row
                )
            )
        self._print(f'   [italic]{markup.escape(name)}[/]')
        self._console.print(padding.Padding(view, (0, 0, 0, 5), expand=False))
        self.fact(name, [dict(zip(columns, row, strict=True)) for row in rows])

    def check(self, what: str, expected: Any, found: Any) -> None:
        """Compare a result with the one that the hardware must give."""
        good = expected == found
        self._steps[-1]['checks'].append(
            {
                'what': what,
                'good': good,
                'expected': repr(expected),
                'found': repr(found),
            }
        )
        if good:
            self._print(f'   [green]ok[/]   {markup.escape(what)}')
            return
        self.differences.append(
            f'{what}: expected {expected!r}, found {found!r}'
        )
        self._print(f'   [red]FAIL[/] {markup.escape(self.differences[-1])}')

    def busy(self, what: str) -> contextlib.AbstractContextManager[Any]:
        """Show that something takes a while, until it is done."""
        if self._console.is_terminal:
            return self._console.status(what)
        self._print(f'{what} ...')
        return contextlib.nullcontext()

    def text(self, text: str) -> None:
        """Print several lines for people, unchanged."""
        self._print(markup.escape(text))

    def finish(self, failure: Exception | None, log: str | None) -> None:
        """Print the outcome, and the JSON document if it is wanted.

        :param failure: of the step that could not be taken, if any
        :param log: the path of Nova's log
        """
        checks = sum(len(step['checks']) for step in self._steps)
        cause = None if failure is None else _cause(failure)
        if cause is None and not self.differences:
            self._print(f'\n[green]All {checks} checks are as expected.[/]')
        for line in self.differences:
            self._print(f'[red]not as expected:[/] {markup.escape(line)}')
        if cause is not None:
            self._print(f'[red]failed:[/] {markup.escape(cause)}')
        if log is not None:
            self._print(f"Nova's log is in {log}")
        if self._as_json:
            json.dump(
                {
                    'ok': cause is None and not self.differences,
                    'failure': cause,
                    'differences': self.differences,
                    'log': log,
                    'steps': self._steps,
                },
                sys.stdout,
                indent=2,
            )
            sys.stdout.write('\n')
            sys.stdout.flush()

    def _print(self, text: str) -> None:
        # The terminal folds the line, so that it can be copied whole.
        self._console.print(text, soft_wrap=True)


def _cause(failure: BaseException) -> str:
    """The exception that the fixtures library has wrapped."""
    while isinstance(failure, fixtures.MultipleExceptions):
        failure = failure.args[0][1]
    return ''.join(traceback.format_exception_only(failure)).strip()


def _console(file: TextIO) -> console.Console:
    """Colours on a terminal; elsewhere plain lines that are never folded."""
    if file.isatty():
        return console.Console(file=file, highlight=False)
    return console.Console(
        file=file, highlight=False, width=250, color_system=None
    )
