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

"""Records that a host must not lose, each in a durable JSON file.

A file may be torn, edited, or put there under another name. One that is not
the entry that its name says is damaged: no one gets it as an entry, and the
others are read as ever.
"""

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


class Storable(Protocol):
    """A record that can be stored.

    The entries of both journals are such records.
    """

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""


_Entry = TypeVar('_Entry', bound=Storable)


class RecordFiles(Generic[_Entry]):
    """The entries in a directory, by name.

    They are read from disk once, when nova-compute starts. From then on reads
    come from memory, and writes go to disk at once.

    A damaged file stays where it is until its entry is written or removed.
    Then it is put aside, see :func:`.durable_file.put_aside`.

    :param parse: the reverse of an entry's ``to_dict``; it raises ValueError
        or AcceleratorError for malformed input
    :param name_of: the name of an entry, which its file has to have
    :param what: a word for the entries in messages, such as ``accelerators``
    :param damage: the consequence of a damaged file, and the cure
    """

    def __init__(
        self,
        directory: pathlib.Path,
        parse: Callable[[Any], _Entry],
        name_of: Callable[[_Entry], str],
        what: str,
        damage: str,
    ) -> None:
        self._directory = directory
        self._parse = parse
        self._name_of = name_of
        self._what = what
        self._damage = damage
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._entries: dict[str, _Entry] = {}
        self._damaged: dict[str, str] = {}
        for path in sorted(self._directory.glob('*.json')):
            try:
                self._entries[path.stem] = self._read(path)
            # One file must not keep nova-compute from starting.
            except Exception as error:
                self.refuse(path.stem, str(error))

    def _read(self, path: pathlib.Path) -> _Entry:
        entry = self._parse(durable_file.read_json(path))
        name = self._name_of(entry)
        if name != path.stem:
            raise ValueError(f'by its content it is {name}')
        return entry

    def refuse(self, name: str, why: str) -> None:
        """Take an entry for damaged, and log it."""
        self._entries.pop(name, None)
        self._damaged[name] = (
            f'the journal {self._path(name)} of {self._what} is damaged '
            f'({why}): {self._damage}'
        )
        LOG.error(self._damaged[name])

    def read(self, name: str) -> _Entry | None:
        """The entry of a name, None if there is none.

        :raises DeviceError: its file is damaged.
        """
        if name in self._damaged:
            raise exceptions.DeviceError(self._damaged[name])
        return self._entries.get(name)

    def write(self, entry: _Entry) -> None:
        """Store an entry, so that it survives a crash of the host.

        :raises DiskError: the disk refused.
        """
        name = self._name_of(entry)
        if name in self._damaged:
            durable_file.put_aside(self._path(name))
        durable_file.write(self._path(name), json.dumps(entry.to_dict()))
        self._damaged.pop(name, None)
        self._entries[name] = entry

    def remove(self, name: str) -> None:
        """Forget an entry.

        :raises DiskError: the disk refused.
        """
        if name in self._damaged:
            durable_file.put_aside(self._path(name))
        else:
            durable_file.remove(self._path(name))
        self._damaged.pop(name, None)
        self._entries.pop(name, None)

    def entries(self) -> list[_Entry]:
        """All entries that are not damaged."""
        return list(self._entries.values())

    @property
    def damaged(self) -> Mapping[str, str]:
        """The names of the damaged entries, and what is wrong with each."""
        return dict(self._damaged)

    def _path(self, name: str) -> pathlib.Path:
        return self._directory / f'{name}.json'
