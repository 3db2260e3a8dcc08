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

"""Much that is done at a time or in turn; a terminal shows the progress."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent import futures
from typing import TypeVar

from rich import console
from rich import progress

#: How many requests a service gets at a time.
AT_A_TIME = 8

_Q = TypeVar('_Q')
_A = TypeVar('_A')


def ask(
    words: str, question: Callable[[_Q], _A], things: Iterable[_Q]
) -> dict[_Q, _A]:
    """The answer for each thing.

    The first error ends it: questions that have not been asked are not asked
    then.

    :param words: what a terminal shows beside the progress
    """
    asked = list(things)
    with futures.ThreadPoolExecutor(AT_A_TIME) as executor:
        answers = executor.map(question, asked)
        return dict(
            zip(asked, _tracked(words, answers, len(asked)), strict=True)
        )


def one_by_one(words: str, things: Sequence[_Q]) -> Iterator[_Q]:
    """The things, for who does something with one after the other."""
    return _tracked(words, things, len(things))


def _tracked(words: str, things: Iterable[_Q], total: int) -> Iterator[_Q]:
    terminal = console.Console(stderr=True)
    yield from progress.track(
        things,
        words,
        total,
        console=terminal,
        transient=True,
        disable=not terminal.is_terminal,
    )
