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

"""Run a vendor's tool, the only way in which this package starts a program.

A tool may hang, write without end, and write what is no UTF-8, such as the
name of a process. So its time and its output are bounded, and what it says is
bytes until the caller takes the text of it.
"""

from collections.abc import Sequence
import contextlib
import os
import pathlib
import selectors
import subprocess
import tempfile
import time
from typing import IO
from typing import NamedTuple

from oslo_concurrency import processutils

#: The most bytes that a caller reads who does not say how many.
MAX_OUTPUT = 1 << 20

#: The exit status of ``flock`` when another program still runs. Neither the
#: tools' own statuses nor those of ``timeout`` are near it.
BUSY = 200

#: The exit statuses of ``timeout``: the time was over, or it had to kill.
TIMED_OUT = (124, 137)

#: How much is kept of output that is only for people.
_KEPT = 1 << 16

_KILL_AFTER_S = 5


class ToolAnswer(NamedTuple):
    """An exit status, and the two outputs of a tool."""

    status: int
    output: bytes
    errors: bytes

    @property
    def text(self) -> str:
        """The standard output; a byte that is not UTF-8 becomes U+FFFD."""
        return self.output.decode(errors='replace')

    @property
    def said(self) -> str:
        """The end of what the tool said about its failure."""
        errors = self.errors.decode(errors='replace').strip()
        return (errors or self.text.strip())[-500:]

    def check(self, command: Sequence[str]) -> 'ToolAnswer':
        """Refuse a failure.

        :raises ProcessExecutionError: the exit status is not 0.
        """
        if self.status:
            raise processutils.ProcessExecutionError(
                self.text,
                self.errors.decode(errors='replace'),
                self.status,
                ' '.join(command),
            )
        return self


def run(
    command: Sequence[str],
    timeout_s: int,
    *,
    most: int | None = MAX_OUTPUT,
    lock: pathlib.Path | None = None,
    text: str = '',
) -> ToolAnswer:
    """Run a program, and end it and its children when its time is over.

    :param most: the most bytes of each output; None keeps the end of each,
        however long it is
    :param lock: a file of root; the program runs after all others that were
        begun with it. A program that a killed process has left still has the
        lock. It is waited for, so it changes nothing after a later one.
    :param text: the program's input
    :returns: its status is of :data:`TIMED_OUT` or :data:`BUSY` if the time
        was over, 127 if there is no such program
    :raises ValueError: an output is longer than ``most``.
    :raises OSError: the program cannot be started, or the kernel does not end
        it (:class:`TimeoutError`).
    """
    started = (
        *(_after_others(lock, timeout_s) if lock is not None else ()),
        # It also ends the program's children.
        'timeout',
        f'--kill-after={_KILL_AFTER_S}',
        str(timeout_s),
        *command,
    )
    with tempfile.TemporaryFile() as source:
        source.write(text.encode())
        source.seek(0)
        process = subprocess.Popen(  # noqa: S603
            started,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
    pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe]
    try:
        output, errors = _read(
            pipes,
            most,
            (2 if lock else 1) * timeout_s + 2 * _KILL_AFTER_S,
        )
        return ToolAnswer(process.wait(_KILL_AFTER_S), output, errors)
    except (TimeoutError, subprocess.TimeoutExpired) as error:
        raise TimeoutError(
            f'{command[0]} cannot be ended: the kernel is still working'
        ) from error
    finally:
        for pipe in pipes:
            pipe.close()
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_AFTER_S)


def _after_others(lock: pathlib.Path, timeout_s: int) -> tuple[str, ...]:
    # Anybody who may read the file could hold the lock. flock would create it
    # readable for all.
    os.close(
        os.open(
            lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
    )
    return (
        'flock',
        f'--wait={timeout_s}',
        f'--conflict-exit-code={BUSY}',
        str(lock),
    )


def _read(
    streams: Sequence[IO[bytes]], most: int | None, timeout_s: float
) -> list[bytes]:
    """All that a program writes into some streams.

    :raises ValueError: it is too much.
    :raises TimeoutError: it goes on for too long.
    """
    deadline = time.monotonic() + timeout_s
    found = {stream.fileno(): bytearray() for stream in streams}
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0, deadline - time.monotonic()))
            if time.monotonic() >= deadline:
                raise TimeoutError(f'no end of output after {timeout_s} s')
            for key, _events in ready:
                chunk = os.read(key.fd, 1 << 16)
                if not chunk:
                    selector.unregister(key.fileobj)
                kept = found[key.fd]
                kept += chunk
                if most is None:
                    del kept[:-_KEPT]
                elif len(kept) > most:
                    raise ValueError(f'more than {most} bytes of output')
    return [bytes(kept) for kept in found.values()]
