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

"""Files that survive a crash of the host, whole or not at all."""

from collections.abc import Iterable
from collections.abc import Iterator
from concurrent import futures
import contextlib
import json
import os
import pathlib
import stat
import tempfile
from typing import Any
from typing import IO

from nova_accel import exceptions

#: The longest file of plain JSON that is read, in bytes, unless its reader
#: says otherwise.
MAX_JSON_BYTES = 4 * 1024 * 1024

#: The ending of the name of a damaged file that was put aside.
DAMAGED = '.damaged'

# On a journaling file system a sync makes other writers wait, too.
_SYNC_BYTES = 16 * 1024 * 1024


def write(path: pathlib.Path, text: str, mode: int = 0o600) -> None:
    """Replace the content of a file.

    :param mode: who may read it, by default only its owner
    :raises DiskError: the disk refused, for example because it is full.
    """
    with _disk_errors(path, 'written'):
        _write(path, text, mode)


def _write(path: pathlib.Path, text: str, mode: int) -> None:
    with tempfile.NamedTemporaryFile(
        'w', dir=path.parent, suffix='.new', delete=False
    ) as file:
        try:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            pathlib.Path(file.name).unlink(missing_ok=True)
            raise
    sync(path.parent)


def write_chunks(file: IO[bytes], chunks: Iterable[bytes]) -> None:
    """Write the chunks, and sync them while more are coming.

    So a sync at the end takes little time.
    """
    with futures.ThreadPoolExecutor(1) as executor:
        synced: futures.Future[None] = futures.Future()
        synced.set_result(None)
        unsynced_bytes = 0
        for chunk in chunks:
            file.write(chunk)
            unsynced_bytes += len(chunk)
            if unsynced_bytes >= _SYNC_BYTES and synced.done():
                # The kernel reports a fault once, so no later sync would raise
                # it.
                synced.result()
                synced = executor.submit(os.fdatasync, file.fileno())
                unsynced_bytes = 0
        synced.result()


def read_json(path: pathlib.Path, max_bytes: int = MAX_JSON_BYTES) -> Any:
    """The plain JSON in a file.

    The file may have been torn, or put there by others.

    :param max_bytes: a longer file is not read
    :raises OSError: the disk does not give it; FileNotFoundError if there is
        no such file.
    :raises ValueError: it is no plain JSON, or too long.
    """
    # A pipe would never end.
    with open(path, 'rb', opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError('it is no regular file')
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f'it has more than {max_bytes} bytes')
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError('it is nested too deeply') from None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def put_aside(path: pathlib.Path) -> None:
    """Rename a damaged file, if it is there, so that no one reads it again.

    People can still look at it: it gets the ending :data:`DAMAGED`.

    :raises DiskError: the disk refused.
    """
    with _disk_errors(path, 'renamed'), contextlib.suppress(FileNotFoundError):
        os.replace(path, path.with_name(path.name + DAMAGED))
        sync(path.parent)


def remove(path: pathlib.Path) -> None:
    """Remove the file if it exists.

    :raises DiskError: the disk refused.
    """
    with _disk_errors(path, 'removed'):
        path.unlink(missing_ok=True)
        sync(path.parent)


def sync(directory: pathlib.Path) -> None:
    """Make renames and removals in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _disk_errors(path: pathlib.Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise exceptions.DiskError(
            f'{path.name} cannot be {what} on the host: '
            f'{error.strerror or error}'
        ) from error
