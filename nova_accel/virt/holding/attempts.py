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

"""How this host and the accelerator API agree on the number of an attempt.

The host counts on from its journal. The API may know of more, after a release
or if the journal was lost; then it says which number is the newest.

Only whoever has the instance's lock may count on from that: nobody else on
this host asks for anything of the instance meanwhile, so what it wants is the
newest. A request may reach the API late. Its sender has given up waiting, told
the API so with the same number, and let go of the lock. So nobody reads the
answer, nor the newest number that is in it.
"""

from collections.abc import Callable
import dataclasses
import time
from typing import TypeVar

from nova_accel import exceptions
from nova_accel.virt.holding import journal as journal_module

_R = TypeVar('_R')

#: How often the host counts on from what the API says. Once is enough unless
#: the host's number was out of reach, too.
_TIMES = 2


def agreed(journal: journal_module.Journal, entry: journal_module.Entry,
           ask: Callable[[int], _R]) -> tuple[journal_module.Entry, _R]:
    """Ask the API with a number that is newer than all that it knows.

    To be used under the instance's lock alone.

    :param entry: is journaled; so is each number before it is asked with,
        also when this raises
    :param ask: asks the API, with the number of the attempt
    :returns: the entry with the number that was admitted, and the answer
    """
    for _again in range(_TIMES):
        try:
            return entry, ask(entry.attempt)
        except (exceptions.StaleAttempt, exceptions.FarAttempt) as fault:
            entry = dataclasses.replace(
                entry, attempt=_after(fault.newest, entry.attempt))
            journal.write(entry)
    return entry, ask(entry.attempt)


def _after(newest: int | None, attempt: int) -> int:
    if newest is None:
        # An API of the release before, whose hosts took the time.
        return max(time.time_ns(), attempt + 1)
    return newest + 1
