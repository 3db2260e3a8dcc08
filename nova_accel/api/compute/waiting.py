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

"""How many calls wait for hosts: never as many as there are threads.

A call that waits for a host holds the thread that serves it, for half an hour
at most. The other calls need threads, too, and so does ``/healthcheck``.
"""

from collections.abc import Iterator
import contextlib
import sys
import threading
from typing import Any

from nova_accel import conf
from nova_accel import exceptions

CONF = conf.CONF


class _Places:
    """The places of this process for calls that wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = 0

    def take(self) -> None:
        """:raises TooBusy: there is none, or no thread would be left"""
        # Its processes have this module, which is in no file; others do not.
        uwsgi = sys.modules.get('uwsgi')
        most = _most(1 if uwsgi is None else uwsgi.cores)
        with self._lock:
            if self._taken >= most or not _is_another_left(uwsgi):
                raise exceptions.TooBusy(
                    f'{self._taken} calls of this process of the API wait for '
                    'compute hosts, and no other may: [nova_accel] '
                    'waiting_calls, and the threads of the web server, limit '
                    'them'
                )
            self._taken += 1

    def give_back(self) -> None:
        with self._lock:
            self._taken -= 1


_PLACES = _Places()


@contextlib.contextmanager
def place() -> Iterator[None]:
    """Have one of the places while the body waits for a host.

    :raises TooBusy: all are taken
    """
    places = _PLACES
    places.take()
    try:
        yield
    finally:
        places.give_back()


def _most(threads: int) -> int:
    configured: int | None = CONF.nova_accel.waiting_calls
    return max(1, threads // 2) if configured is None else configured


def _is_another_left(uwsgi: Any) -> bool:
    """Whether somebody still serves the other calls.

    A process with one thread asks for the others of its server. It counts as
    busy itself. So if all ask at once, none of them may wait.
    """
    if uwsgi is None or uwsgi.cores > 1 or uwsgi.numproc == 1:
        return True
    return any(worker['status'] == b'idle' for worker in uwsgi.workers())
