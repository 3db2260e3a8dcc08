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

"""Files below a directory that are recorded, and fail on demand.

The calls of the operating system are replaced, so that it does not matter in
which way a driver reads.
"""

import errno
import io
import os

import fixtures

#: (the module that everybody calls, its function)
_CALLS = (
    (io, 'open'),
    (os, 'listdir'),
    (os, 'scandir'),
    (os, 'readlink'),
    (os, 'stat'),
    (os, 'lstat'),
)

#: What a file can say instead of its value.
CONTENTS = {
    'NULs': bytes(64),
    'no text': b'\xff\xfe\x80\n',
    '1 MB': b'7' * (1 << 20),
}

#: How a file can fail.
ERRORS = ('EIO', 'EBUSY', 'EINVAL', 'EACCES', 'ENOENT')


class FailingFiles(fixtures.Fixture):
    """All accesses to files below a directory.

    :ivar seen: the paths below the directory -> the calls that looked at them
    :ivar failing: the path that has a trouble now
    :ivar trouble: one of :data:`ERRORS` and :data:`CONTENTS`
    """

    def __init__(self, root):
        super().__init__()
        self._root = f'{root}/'
        self.seen = {}
        self.failing = self.trouble = None

    def _setUp(self):
        for module, name in _CALLS:
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'{module.__name__}.{name}',
                    self._failing(name, getattr(module, name)),
                )
            )

    def _failing(self, name, call):
        def instead(path, *arguments, **more):
            below = self._below(path)
            if below is None:
                return call(path, *arguments, **more)
            self.seen.setdefault(below, set()).add(name)
            if below == self.failing:
                if self.trouble in ERRORS:
                    number = getattr(errno, self.trouble)
                    raise OSError(number, os.strerror(number), str(path))
                if name == 'open':
                    return io.BytesIO(CONTENTS[self.trouble])
            return call(path, *arguments, **more)

        return instead

    def _below(self, path):
        text = (
            os.path.normpath(path)
            if isinstance(path, os.PathLike)
            else (path if isinstance(path, str) else '')
        )
        return (
            text.removeprefix(self._root)
            if text.startswith(self._root)
            else None
        )
