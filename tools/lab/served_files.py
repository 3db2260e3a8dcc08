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

"""A directory, shown with files whose writer waits until he is answered.

So are the files of a sysfs: what is written is done, or refused, when the
write returns. It is a file system in user space, by the protocol of the
kernel's ``include/uapi/linux/fuse.h``.
"""

from collections.abc import Callable
from collections.abc import Sequence
import errno
import os
import pathlib
import stat
import struct
import subprocess
from typing import ClassVar

_ROOT = 1
_MOST_BYTES = 4096
_EVER_S = 1 << 32

_IN_HEADER = struct.Struct('<IIQQIIII')
_OUT_HEADER = struct.Struct('<IiQ')
#: of READ, READDIR and WRITE: handle, offset, size, flags, owner, flags
_TRANSFER = struct.Struct('<QQIIQII')
_HANDLE = struct.Struct('<QII')

_LOOKUP, _FORGET, _GETATTR, _SETATTR, _READLINK = 1, 2, 3, 4, 5
_OPEN, _READ, _WRITE, _RELEASE, _FLUSH, _INIT = 14, 15, 16, 18, 25, 26
_OPENDIR, _READDIR, _RELEASEDIR = 27, 28, 29
_INTERRUPT, _BATCH_FORGET = 36, 42

_UNANSWERED = frozenset({_FORGET, _INTERRUPT, _BATCH_FORGET})

_READABLE, _WRITABLE = 0o400, 0o200


class ServedFiles:
    """What is shown of a directory at another place.

    As in a sysfs, even root can neither read nor write what has no mode for
    it. Names that begin with a dot are not listed.

    :param write: does what is written to a file, given its path below the
        directory. It raises OSError to refuse, and the process that writes
        gets its errno. One request is served after the other.
    """

    def __init__(
        self, directory: pathlib.Path, write: Callable[[str, bytes], None]
    ) -> None:
        self._directory = directory
        self._write = write
        # A path keeps its node when it goes and comes again.
        self._paths = {_ROOT: ''}
        self._nodes: dict[str, int] = {}
        self._listings: dict[int, Sequence[os.DirEntry[str]]] = {}
        self._device = os.open('/dev/fuse', os.O_RDWR)

    def mount(self, place: pathlib.Path) -> None:
        """Show it; who looks now waits until he is served."""
        subprocess.run(
            [
                'mount',
                '-i',
                '-t',
                'fuse',
                '-o',
                f'fd={self._device},rootmode=40000,user_id=0,group_id=0,'
                'allow_other',
                'lab',
                place,
            ],
            pass_fds=[self._device],
            check=True,
        )

    def serve(self) -> None:
        """Serve all requests until it is unmounted."""
        while True:
            try:
                message = os.read(self._device, _MOST_BYTES + 65536)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                if error.errno not in (errno.EINTR, errno.ENOENT):
                    raise
            else:
                self._serve_one(message)

    def _serve_one(self, message: bytes) -> None:
        _size, code, request, node, *_caller = _IN_HEADER.unpack_from(message)
        if code in _UNANSWERED:
            return
        status, answer = 0, b''
        try:
            handler = self._HANDLERS.get(code)
            if handler is None:
                raise OSError(errno.ENOSYS, 'unknown request')
            answer = handler(self, node, message[_IN_HEADER.size :])
        except OSError as error:
            status = -(error.errno or errno.EIO)
        os.write(
            self._device,
            _OUT_HEADER.pack(_OUT_HEADER.size + len(answer), status, request)
            + answer,
        )

    def _initialise(self, _node: int, _body: bytes) -> bytes:
        major, minor = 7, 31
        return struct.pack(
            '<IIIIHHIIHHI28x',
            major,
            minor,
            _MOST_BYTES,
            0,
            0,
            0,
            _MOST_BYTES,
            1,
            0,
            0,
            0,
        )

    def _look_up(self, parent: int, body: bytes) -> bytes:
        name = body.rstrip(b'\0').decode()
        path = f'{self._paths[parent]}{name}'
        status = os.lstat(self._directory / path)
        node = self._nodes.setdefault(path, len(self._nodes) + _ROOT + 1)
        self._paths[node] = (
            f'{path}/' if stat.S_ISDIR(status.st_mode) else path
        )
        # That the name is there is remembered: that it still is, is asked.
        return struct.pack('<QQQQII', node, 0, _EVER_S, 0, 0, 0) + _attributes(
            node, status
        )

    def _describe(self, node: int, _body: bytes) -> bytes:
        return struct.pack('<QII', 0, 0, 0) + _attributes(
            node, os.lstat(self._place(node))
        )

    def _follow(self, node: int, _body: bytes) -> bytes:
        return os.fsencode(os.readlink(self._place(node)))

    def _open(self, node: int, body: bytes) -> bytes:
        mode = os.lstat(self._place(node)).st_mode
        access = struct.unpack_from('<I', body)[0] & os.O_ACCMODE
        if (access != os.O_WRONLY and not mode & _READABLE) or (
            access != os.O_RDONLY and not mode & _WRITABLE
        ):
            raise OSError(errno.EACCES, 'it has no mode for that')
        direct_io = 1
        return _HANDLE.pack(0, direct_io, 0)

    def _read(self, node: int, body: bytes) -> bytes:
        _handle, offset, size, *_flags = _TRANSFER.unpack_from(body)
        return self._place(node).read_bytes()[offset : offset + size]

    def _write_file(self, node: int, body: bytes) -> bytes:
        _handle, _offset, size, *_flags = _TRANSFER.unpack_from(body)
        self._write(self._paths[node], body[_TRANSFER.size :][:size])
        return struct.pack('<II', size, 0)

    def _open_directory(self, node: int, _body: bytes) -> bytes:
        with os.scandir(self._place(node)) as entries:
            listing = sorted(
                (entry for entry in entries if entry.name[0] != '.'),
                key=lambda entry: entry.name,
            )
        handle = max(self._listings, default=0) + 1
        self._listings[handle] = listing
        return _HANDLE.pack(handle, 0, 0)

    def _list(self, _node: int, body: bytes) -> bytes:
        handle, offset, size, *_flags = _TRANSFER.unpack_from(body)
        answer = b''
        for number, entry in enumerate(
            self._listings[handle][offset:], offset + 1
        ):
            name = os.fsencode(entry.name)
            kind = stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)
            record = (
                struct.pack(
                    '<QQII', entry.inode(), number, len(name), kind >> 12
                )
                + name
            )
            record += bytes(-len(record) % 8)
            if len(answer) + len(record) > size:
                break
            answer += record
        return answer

    def _close_directory(self, _node: int, body: bytes) -> bytes:
        del self._listings[_HANDLE.unpack_from(body)[0]]
        return b''

    def _nothing(self, _node: int, _body: bytes) -> bytes:
        return b''

    def _place(self, node: int) -> pathlib.Path:
        return self._directory / self._paths[node]

    _HANDLERS: ClassVar[
        dict[int, Callable[['ServedFiles', int, bytes], bytes]]
    ] = {
        _INIT: _initialise,
        _LOOKUP: _look_up,
        _GETATTR: _describe,
        # A writer truncates first, which changes nothing.
        _SETATTR: _describe,
        _READLINK: _follow,
        _OPEN: _open,
        _READ: _read,
        _WRITE: _write_file,
        _RELEASE: _nothing,
        _FLUSH: _nothing,
        _OPENDIR: _open_directory,
        _READDIR: _list,
        _RELEASEDIR: _close_directory,
    }


def _attributes(node: int, status: os.stat_result) -> bytes:
    changed = int(status.st_mtime)
    return struct.pack(
        '<6Q10I',
        node,
        status.st_size,
        0,
        changed,
        changed,
        changed,
        0,
        0,
        0,
        status.st_mode,
        1,
        0,
        0,
        0,
        _MOST_BYTES,
        0,
    )
