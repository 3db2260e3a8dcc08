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

"""Copy files of the cache of bitstreams, and no others.

nova-compute's user owns the cache, and may have put anything into it: a link
to a file of root, a pipe, or a file under another one's name. So a file is
taken only if it is a plain file of the cache's owner, and has the contents
that its name says.
"""

import hashlib
import os
import pathlib
import re
import stat

from oslo_config import cfg

from nova_accel import root_options

_NAME = re.compile('[0-9a-f]{64}')

_UNSET = 'state_path is not set'

_CHUNK = 1 << 20


def copy(bitstream: str, target: pathlib.Path) -> None:
    """Copy a file of the cache into a new one of root.

    :param bitstream: its path, ``<bitstream_cache_directory>/<sha256>``
    :raises ValueError: it is no file of the cache, or its contents are not
        what its name says.
    :raises OSError: it is not there, or cannot be read.
    """
    path = pathlib.PurePath(bitstream)
    directory = _cache()
    if path.parent != directory or _NAME.fullmatch(path.name) is None:
        raise ValueError(
            f'bitstream {bitstream[:200]!r} is no file of {directory}, '
            '[nova_accel] bitstream_cache_directory, that is named by its '
            'sha256'
        )
    source = _opened(directory, path.name)
    try:
        created = os.open(
            target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
        )
        try:
            with open(created, 'wb') as written:
                digest = hashlib.sha256()
                while chunk := os.read(source, _CHUNK):
                    digest.update(chunk)
                    written.write(chunk)
            if digest.hexdigest() != path.name:
                raise ValueError(
                    f'bitstream {bitstream} does not have the sha256 of its '
                    'name'
                )
        except BaseException:
            target.unlink()
            raise
    finally:
        os.close(source)


def _cache() -> pathlib.Path:
    """:raises ValueError: the configuration does not say where it is."""
    if 'state_path' not in cfg.CONF:
        # It is Nova's, which is not imported here.
        cfg.CONF.register_opt(cfg.StrOpt('state_path', default=_UNSET))
    directory = cfg.CONF[root_options.GROUP].bitstream_cache_directory
    if not directory.startswith('/'):
        raise ValueError(
            f'[nova_accel] bitstream_cache_directory is {directory!r}, which '
            'is no absolute path, in the configuration that this process of '
            'root was started with: set it, or [DEFAULT] state_path'
        )
    return pathlib.Path(directory)


def _opened(directory: pathlib.Path, name: str) -> int:
    """A descriptor of a plain file; nothing that it names is followed."""
    parent = os.open(
        directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    )
    try:
        # The type can only be checked after opening; O_NONBLOCK keeps a pipe
        # from blocking.
        file = os.open(
            name,
            os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
            dir_fd=parent,
        )
        try:
            found, owner = os.fstat(file), os.fstat(parent).st_uid
            if not stat.S_ISREG(found.st_mode):
                raise ValueError(
                    f'bitstream {directory / name}: no plain file'
                )
            if found.st_uid != owner:
                # A hard link has the owner of the file that it is one of.
                raise ValueError(
                    f'bitstream {directory / name} belongs to user '
                    f'{found.st_uid}, not to {owner} as its directory does'
                )
        except BaseException:
            os.close(file)
            raise
        return file
    except OSError as error:
        raise OSError(
            error.errno, f'{error.strerror}: {directory / name}'
        ) from error
    finally:
        os.close(parent)
