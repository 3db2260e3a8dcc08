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

"""Processes that outlive the command that starts them.

Each has a name, a file that tells its process from a later one with the same
number, and a log. Only what the lab started is ever ended by it.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import json
import os
import pathlib
import subprocess
import time

import psutil

from lab import settings

_PIDS = settings.STATE / 'pid'


class LabError(Exception):
    """Something of the lab does not do what it should."""


def start(
    name: str,
    command: Sequence[str | os.PathLike[str]],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Start a process, unless that of the name runs."""
    if alive(name):
        return
    settings.LOGS.mkdir(parents=True, exist_ok=True)
    with log_of(name).open('ab') as log:
        process = subprocess.Popen(
            [os.fspath(part) for part in command],
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    adopt(name, process.pid)


def adopt(name: str, pid: int) -> None:
    """Note a process that was started otherwise."""
    _PIDS.mkdir(parents=True, exist_ok=True)
    (_PIDS / name).write_text(
        json.dumps({'pid': pid, 'created': psutil.Process(pid).create_time()})
    )


def running() -> list[str]:
    """The names of all that run."""
    if not _PIDS.is_dir():
        return []
    return sorted(path.name for path in _PIDS.iterdir() if alive(path.name))


def alive(name: str) -> bool:
    return _process(name) is not None


def process(name: str) -> psutil.Process:
    """:raises LabError: it does not run."""
    found = _process(name)
    if found is None:
        raise LabError(f'{name} does not run; its log is {log_of(name)}')
    return found


def stop(*names: str, seconds: float = 15) -> None:
    """Ask them to end, and end what has not after so many seconds."""
    families: list[psutil.Process] = []
    for name in names:
        found = _process(name)
        if found is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                families += [found, *found.children(recursive=True)]
                found.terminate()
    for member in _left_after(families, seconds):
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    _left_after(families, 5)
    for name in names:
        (_PIDS / name).unlink(missing_ok=True)


def kill(name: str) -> None:
    """End it at once, as ``kill -9`` does, its children too."""
    found = process(name)
    family = [found, *found.children(recursive=True)]
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    _left_after(family, 5)
    (_PIDS / name).unlink(missing_ok=True)


def log_of(name: str) -> pathlib.Path:
    return settings.LOGS / f'{name}.log'


def run(
    command: Sequence[str | os.PathLike[str]],
    environment: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout: float = 600,
) -> str:
    """Run a command to its end.

    :returns: its output
    :raises LabError: it failed; the message has what it said.
    """
    command = [os.fspath(part) for part in command]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **(environment or {})},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabError(
            f'{" ".join(command)}: no end after {timeout} s'
        ) from None
    except FileNotFoundError as error:
        raise LabError(f'{error.filename} is missing') from None
    if done.returncode:
        raise LabError(
            f'{" ".join(command)} ended with {done.returncode}: '
            f'{done.stdout}{done.stderr}'.strip()
        )
    return done.stdout


def wait_for(
    what: str,
    seconds: float,
    condition: Callable[[], object],
    interval: float = 0.2,
) -> None:
    """:raises LabError: the condition is not true after so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise LabError(
                f'{what}: not after {seconds} s (logs are in {settings.LOGS})'
            )
        time.sleep(interval)


def _left_after(
    family: Iterable[psutil.Process], seconds: float
) -> list[psutil.Process]:
    """Those that have not ended after so many seconds."""
    end = time.monotonic() + seconds
    left = list(filter(_runs, family))
    while left and time.monotonic() < end:
        time.sleep(0.05)
        left = list(filter(_runs, left))
    return left


def _runs(member: psutil.Process) -> bool:
    """A process that has ended stays a zombie until its parent looks."""
    try:
        return member.is_running() and member.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _process(name: str) -> psutil.Process | None:
    try:
        noted = json.loads((_PIDS / name).read_text())
        found = psutil.Process(noted['pid'])
        if found.create_time() == noted['created'] and _runs(found):
            return found
    except (FileNotFoundError, psutil.NoSuchProcess):
        pass
    return None
