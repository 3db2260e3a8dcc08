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

from rich import console
from rich import progress


@contextlib.contextmanager
def shown(
    label: str, total: int, terminal: console.Console | None = None
) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal, and nothing elsewhere.

    :param terminal: by default the standard error stream
    :returns: a function that is told how much is done
    """
    terminal = terminal or console.Console(stderr=True)
    with progress.Progress(
        progress.TextColumn('{task.description}'),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=terminal,
        disable=not terminal.is_terminal,
    ) as bar:
        task = bar.add_task(label, total=total)

        def tell(done: int) -> None:
            bar.update(task, completed=min(done, total))

        yield tell
