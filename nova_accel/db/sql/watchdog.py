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

"""Cuts connections that are still in use at their deadline.

Nothing else frees a thread that waits for a server in C. One thread in each
process waits for the next deadline. It is started at its first use, so that a
process that forks later starts its own.
"""

import itertools
import os
import socket
import threading
import time

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: How long the thread waits if there is nothing to wait for.
_LONG_S = 3600.0


class _Watchdog:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        # Number -> when it is cut, and a descriptor of its own.
        self._watched: dict[int, tuple[float, socket.socket]] = {}
        self._wakes_at = 0.0
        threading.Thread(
            target=self._run, name='nova_accel-database', daemon=True
        ).start()

    def watch(self, descriptor: int, until: float) -> int:
        own = socket.socket(fileno=os.dup(descriptor))
        with self._changed:
            number = next(self._numbers)
            self._watched[number] = until, own
            if until < self._wakes_at:
                self._changed.notify()
        return number

    def release(self, number: int) -> None:
        with self._changed:
            _until, own = self._watched.pop(number, (0, None))
        if own is not None:
            own.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                overdue = self._overdue()
                while not overdue:
                    self._changed.wait(self._wakes_at - time.monotonic())
                    overdue = self._overdue()
            for own in overdue:
                _cut(own)

    def _overdue(self) -> list[socket.socket]:
        """The connections to cut; also sets when to look again."""
        now = time.monotonic()
        overdue = [
            number
            for number, (until, _own) in self._watched.items()
            if until <= now
        ]
        found = [self._watched.pop(number)[1] for number in overdue]
        self._wakes_at = min(
            (until for until, _own in self._watched.values()),
            default=now + _LONG_S,
        )
        return found


def _cut(connection: socket.socket) -> None:
    LOG.error(
        'The database of accelerators has not answered in time: its '
        'connection is cut'
    )
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError as error:
        LOG.debug('It was closed already: %s', error)
    connection.close()


class _OfProcess:
    """The watchdog of this process, or None before its first use."""

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._watchdog: _Watchdog | None = None
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        # A fork does not copy other threads, and one may have held the lock.
        self._starting = threading.Lock()
        self._watchdog = None

    def get(self) -> _Watchdog:
        with self._starting:
            if self._watchdog is None:
                self._watchdog = _Watchdog()
            return self._watchdog


_OF_PROCESS = _OfProcess()


def watch(descriptor: int, until: float) -> int:
    """Cut a connection at a moment of ``time.monotonic()``.

    :param descriptor: of its socket
    :returns: a number for :func:`release`
    """
    return _OF_PROCESS.get().watch(descriptor, until)


def release(number: int) -> None:
    """Leave a connection alone from now on; it may be cut already."""
    _OF_PROCESS.get().release(number)
