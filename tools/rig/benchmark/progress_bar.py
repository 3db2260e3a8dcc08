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

"""How far a benchmark is that takes minutes."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import time

from rich import console
from rich import progress

#: Into how many parts the lines divide the work.
_LINES = 20


@contextlib.contextmanager
def shown(
    label: str, total: int, terminal: console.Console | None = None
) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal, and a line for each part of it elsewhere.

    :param terminal: by default the standard error stream
    :returns: a function that is told how much is done
    """
    terminal = terminal or console.Console(stderr=True)
    shown_on = _bar if terminal.is_terminal else _lines
    with shown_on(label, total, terminal) as tell:
        yield lambda done: tell(min(done, total))


@contextlib.contextmanager
def _bar(
    label: str, total: int, terminal: console.Console
) -> Iterator[Callable[[int], None]]:
    with progress.Progress(
        progress.TextColumn('{task.description}'),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=terminal,
    ) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextlib.contextmanager
def _lines(
    label: str, total: int, terminal: console.Console
) -> Iterator[Callable[[int], None]]:
    begin = time.monotonic()
    parts = 0

    def tell(done: int) -> None:
        nonlocal parts
        if done * _LINES // total > parts:
            parts = done * _LINES // total
            seconds = time.monotonic() - begin
            terminal.print(
                f'{label}: {done}/{total}, {seconds:.0f} s', highlight=False
            )

    yield tell
