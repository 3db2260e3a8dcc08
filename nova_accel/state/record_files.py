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

"""Records that a host must not lose, each in a durable JSON file."""

from collections.abc import Callable
from collections.abc import Mapping
import json
import pathlib
from typing import Any
from typing import Generic
from typing import Protocol
from typing import TypeVar

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.state import durable_file

LOG = logging.getLogger(__name__)


class Entry(Protocol):
    """A record that can be stored.

    The entries of both journals are such records.
    """

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""


_Entry = TypeVar('_Entry', bound=Entry)


class RecordFiles(Generic[_Entry]):
    """The entries in a directory, by name.

    They are read from disk once, when nova-compute starts. From then on reads
    come from memory, and writes go to disk at once.

    :param parse: the reverse of an entry's ``to_dict``; it raises ValueError,
        KeyError, TypeError or AcceleratorError for malformed input
    :param what: a word for the entries in messages, such as ``accelerators``
    :param damage: the consequence of an unreadable file, and the cure
    """

    def __init__(
        self,
        directory: pathlib.Path,
        parse: Callable[[dict[str, Any]], _Entry],
        what: str,
        damage: str,
    ) -> None:
        self._directory = directory
        self._what = what
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._entries: dict[str, _Entry] = {}
        self._damaged: dict[str, str] = {}
        for path in sorted(self._directory.glob('*.json')):
            try:
                self._entries[path.stem] = parse(json.loads(path.read_text()))
            except (
                OSError,
                ValueError,
                KeyError,
                TypeError,
                exceptions.AcceleratorError,
            ) as error:
                self._damaged[path.stem] = (
                    f'the journal {path} of {what} is damaged ({error!r}): '
                    f'{damage}'
                )
                LOG.error(self._damaged[path.stem])

    def read(self, name: str) -> _Entry | None:
        """The entry of a name, None if there is none.

        :raises DeviceError: its file was unreadable.
        """
        if name in self._damaged:
            raise exceptions.DeviceError(self._damaged[name])
        return self._entries.get(name)

    def write(self, name: str, entry: _Entry) -> None:
        """Store an entry, so that it survives a crash of the host.

        :raises DiskError: the disk refused.
        """
        durable_file.write(self._path(name), json.dumps(entry.to_dict()))
        self._damaged.pop(name, None)
        self._entries[name] = entry

    def remove(self, name: str) -> None:
        """Forget an entry.

        :raises DiskError: the disk refused.
        """
        durable_file.remove(self._path(name))
        self._damaged.pop(name, None)
        self._entries.pop(name, None)

    def entries(self) -> list[_Entry]:
        """All readable entries."""
        return list(self._entries.values())

    @property
    def damaged(self) -> Mapping[str, str]:
        """The names of the unreadable entries, and what is wrong with each."""
        return dict(self._damaged)

    def _path(self, name: str) -> pathlib.Path:
        return self._directory / f'{name}.json'
