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

"""The number of an attempt, on which this host and the API agree.

The host takes the next number after those of its journal. The API may know
greater ones, after a release or if the journal was lost. It then answers with
the newest number, and the host continues from there.

Only a thread that has the instance's lock may do that. No other thread of
this host asks for anything of the instance meanwhile, so its request is the
newest. A request may reach the API late. Its sender has then stopped waiting,
told the API so with the same number, and released the lock. So nobody reads
the answer, nor the newest number in it.
"""

from collections.abc import Callable
import dataclasses
from typing import TypeVar

from nova_accel import exceptions
from nova_accel.virt.holding import attach_journal

_R = TypeVar('_R')

#: How often the host continues from the number that the API says. Once is
#: enough, unless the API also finds the host's number too far ahead.
_TIMES = 2


def agreed(
    journal: attach_journal.Journal,
    entry: attach_journal.Entry,
    ask: Callable[[int], _R],
) -> tuple[attach_journal.Entry, _R]:
    """Ask the API with a number that is newer than all that it knows.

    The caller must have the instance's lock.

    :param entry: is journaled already. Each further number is journaled
        before it is used, and stays so when this raises
    :param ask: asks the API, with the number of the attempt
    :returns: the entry with the number that was admitted, and the answer
    """
    for _again in range(_TIMES):
        try:
            return entry, ask(entry.attempt)
        except (exceptions.StaleAttempt, exceptions.FarAttempt) as fault:
            entry = dataclasses.replace(
                entry, attempt=_last(fault.newest, entry.attempt) + 1
            )
            journal.write(entry)
    return entry, ask(entry.attempt)


def granted(
    journal: attach_journal.Journal,
    entry: attach_journal.Entry,
    before: attach_journal.Entry | None,
    ask: Callable[[int], _R],
) -> tuple[attach_journal.Entry, _R]:
    """As :func:`agreed`, for an attempt to hold more than before.

    If the API refuses, the instance holds what it held before. If it does not
    answer, what it may have bound is to be released.

    :param before: what the instance held before, None for nothing
    """
    try:
        return agreed(journal, entry, ask)
    except Exception as error:
        _give_up(
            journal,
            journal.read(entry.instance_uuid, entry.role) or entry,
            before,
            error,
        )
        raise


def _give_up(
    journal: attach_journal.Journal,
    entry: attach_journal.Entry,
    before: attach_journal.Entry | None,
    error: Exception,
) -> None:
    """Journal what the instance holds after an acquire that failed."""
    refused = isinstance(
        error, exceptions.AcceleratorError
    ) and not isinstance(error, exceptions.ServiceUnavailable)
    if refused and before is not None:
        journal.write(before)
    elif refused:
        journal.remove(entry)
    elif entry.step is attach_journal.Step.ACQUIRING:
        # The API may have bound something: its answer may be lost.
        journal.write(
            dataclasses.replace(entry, step=attach_journal.Step.RELEASING)
        )


def _last(newest: int | None, attempt: int) -> int:
    return attempt if newest is None else newest
