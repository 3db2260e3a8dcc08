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

"""The bitstreams that a host has fetched, named by their hashes.

``<directory>/<sha256>`` is a bitstream, which was complete and verified when
it got that name. ``images/<uuid>.json`` names the file of an image in Glance,
and has Glance's hash at that time. Files in use are pinned and stay. The least
recently used other file is evicted first. A file's modification time is the
time of its last use.
"""

import collections
from collections.abc import Callable
from collections.abc import Container
from collections.abc import Iterator
import contextlib
import dataclasses
import errno
import json
import os
import pathlib
import re
import stat
import tempfile
import threading
from typing import IO
import uuid

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.state import durable_file

LOG = logging.getLogger(__name__)

_SHA256 = re.compile('[0-9a-f]{64}')
_UNFINISHED = 'new-'


@dataclasses.dataclass(frozen=True)
class Fetched:
    """A bitstream in the cache, pinned until :meth:`Cache.release`."""

    path: pathlib.Path
    sha256: str


class Cache:
    """The cache of one host; only one process may use it.

    Called from several threads at once.

    :raises ConfigurationError: the directory cannot be used.
    """

    def __init__(self, directory: pathlib.Path, max_bytes: int) -> None:
        self._directory = directory
        self._images = directory / 'images'
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._pins: collections.Counter[str] = collections.Counter()
        self._reserved = 0
        try:
            for path in (self._directory, self._images):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.chmod(0o700)
            self._remove_leftovers()
        except OSError as error:
            raise exceptions.ConfigurationError(
                '[nova_accel] bitstream_cache_directory cannot be used: '
                f'{error}'
            ) from error

    def pin(self, bitstream: fpga_bitstream.Bitstream) -> Fetched | None:
        """The fetched bitstream, None unless it is still the same in Glance.

        Its bytes were right when it was fetched; the caller verifies them
        again.
        """
        with self._lock:
            sha256 = self._known(bitstream)
            return None if sha256 is None else self._pin(sha256)

    def pin_kept(self, sha256: str) -> Fetched | None:
        """The entry with this hash, whatever Glance says, None if it is gone.

        The caller checks the hash of its bytes again.
        """
        with self._lock:
            try:
                found = (self._directory / sha256).lstat()
            except OSError:
                return None
            return (
                self._pin(sha256)
                if (_SHA256.fullmatch(sha256) and stat.S_ISREG(found.st_mode))
                else None
            )

    def _pin(self, sha256: str) -> Fetched:
        path = self._directory / sha256
        with _disk_errors():
            os.utime(path)
        self._pins[sha256] += 1
        return Fetched(path, sha256)

    def add(
        self,
        bitstream: fpga_bitstream.Bitstream,
        fetch: Callable[[IO[bytes]], str],
    ) -> Fetched:
        """Add a bitstream to the cache, and pin it.

        :param fetch: a function that writes all bytes into a file, verifies
            them and returns their sha256 in hexadecimal; if it raises, nothing
            is kept
        :raises DeviceError: the cache has no room, or the disk refuses.
        """
        image = self._image(bitstream)
        with (
            _disk_errors(),
            self._room(bitstream.size),
            self._unfinished() as file,
        ):
            self._allocate(file, bitstream.size)
            sha256 = fetch(file)
            file.flush()
            os.fsync(file.fileno())
            path = self._directory / sha256
            with self._lock:
                os.replace(file.name, path)
                durable_file.sync(self._directory)
                durable_file.write(
                    image, json.dumps({'sha256': sha256, **_seen(bitstream)})
                )
                self._pins[sha256] += 1
            return Fetched(path, sha256)

    def release(self, entry: Fetched, keep: bool = True) -> None:
        """Undo one pin.

        :param keep: false to remove a wrong file, unless someone else has it
            pinned
        """
        with self._lock:
            self._pins[entry.sha256] -= 1
            if self._pins[entry.sha256] == 0:
                del self._pins[entry.sha256]
                if not keep:
                    with _disk_errors():
                        durable_file.remove(entry.path)

    def _known(self, bitstream: fpga_bitstream.Bitstream) -> str | None:
        """The sha256 of an image, None if it has changed or is not cached."""
        try:
            noted = durable_file.read_json(self._image(bitstream))
            sha256 = noted.pop('sha256')
            if noted != _seen(bitstream) or not _SHA256.fullmatch(sha256):
                return None
            found = (self._directory / sha256).lstat()
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        if stat.S_ISREG(found.st_mode) and found.st_size == bitstream.size:
            return str(sha256)
        return None

    def _image(self, bitstream: fpga_bitstream.Bitstream) -> pathlib.Path:
        """:raises BitstreamRefused: its id is not a uuid."""
        try:
            return self._images / f'{uuid.UUID(bitstream.id)}.json'
        except ValueError as error:
            raise exceptions.BitstreamRefused(
                f'bitstream {bitstream} has no uuid'
            ) from error

    @contextlib.contextmanager
    def _room(self, size: int) -> Iterator[None]:
        """Reserve bytes of the cache's size during the body."""
        with self._lock:
            room = self._max_bytes - self._reserved - size
            # Evict nothing for a bitstream that would not fit even then.
            if self._used(self._pins) > room:
                raise exceptions.DeviceError(
                    f'the cache of bitstreams has no room for {size} bytes '
                    'beside what is in use (bitstream_cache_size_mb)'
                )
            while self._used() > room and self._evict():
                pass
            self._reserved += size
        try:
            yield
        finally:
            with self._lock:
                self._reserved -= size

    @contextlib.contextmanager
    def _unfinished(self) -> Iterator[IO[bytes]]:
        """A new file, which is removed unless it gets its final name."""
        with tempfile.NamedTemporaryFile(
            dir=self._directory, prefix=_UNFINISHED, delete=False
        ) as file:
            try:
                yield file
            finally:
                pathlib.Path(file.name).unlink(missing_ok=True)

    def _allocate(self, file: IO[bytes], size: int) -> None:
        """Allocate the blocks first, so that a full disk shows at once."""
        while True:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
                return
            except OSError as error:
                if error.errno in (errno.EOPNOTSUPP, errno.EINVAL):
                    return
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                with self._lock:
                    if not self._evict():
                        raise

    def _evict(self) -> bool:
        """Remove the least recently used file.

        :returns: false if all files are in use
        """
        for path, found in sorted(
            self._files(), key=lambda file: file[1].st_mtime_ns
        ):
            if path.name not in self._pins:
                LOG.info(
                    'Bitstream %s of %d bytes leaves the cache, to make room',
                    path.name,
                    found.st_size,
                )
                durable_file.remove(path)
                return True
        return False

    def _used(self, names: Container[str] | None = None) -> int:
        """The bytes of all files, or of those with these names."""
        return sum(
            found.st_size
            for path, found in self._files()
            if names is None or path.name in names
        )

    def _files(self) -> list[tuple[pathlib.Path, os.stat_result]]:
        return [
            (path, path.lstat())
            for path in self._directory.iterdir()
            if _SHA256.fullmatch(path.name)
        ]

    def _remove_leftovers(self) -> None:
        """Remove what a crash left, and the notes of evicted files."""
        for path in self._directory.glob(f'{_UNFINISHED}*'):
            path.unlink()
        names = {path.name for path, _found in self._files()}
        for path in self._images.iterdir():
            try:
                known = durable_file.read_json(path)['sha256'] in names
            except (OSError, ValueError, KeyError, TypeError):
                known = False
            if not known:
                try:
                    path.unlink()
                except IsADirectoryError:
                    LOG.warning('%s is no file of the cache', path)


def _seen(bitstream: fpga_bitstream.Bitstream) -> dict[str, str | int | None]:
    """The facts that change when an image gets other bytes."""
    return {
        'size': bitstream.size,
        'hash_algorithm': bitstream.hash_algorithm,
        'hash_value': bitstream.hash_value,
    }


@contextlib.contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise exceptions.DeviceError(
            f'the cache of bitstreams cannot be written: {error}'
        ) from error
