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

"""DevStack's functions for ini files, as ``inc/ini-config`` describes them.

``ini.py FUNCTION FILE SECTION OPTION [VALUE...]``
"""

from collections.abc import Callable
import pathlib
import re
import sys


class Ini:
    """The lines of a file, which need not exist."""

    def __init__(self, path: pathlib.Path, section: str, option: str) -> None:
        self._path = path
        self._lines = path.read_text().splitlines() if path.exists() else []
        self._head = f'[{section}]'
        self._option = option
        self._is_option = re.compile(rf'{re.escape(option)}[ \t]*=').match

    def set(self, value: str) -> None:
        """Replace the value, or add it to the section, which is made."""
        found = self._found()
        self._make_section()
        line = f'{self._option} = {" ".join(value.split())}'
        if found:
            for index in found:
                self._lines[index] = line
        else:
            self._add(line)

    def set_multiline(self, *values: str) -> None:
        """Let the option have these values, which have no blanks."""
        self.delete()
        self._make_section()
        for value in reversed(' '.join(values).split()):
            self._add(f'{self._option} = {value}')

    def add_literal(self, value: str) -> None:
        """Add a value, if the section is there."""
        if self._head in self._lines:
            self._add(f'{self._option} = {value}')

    def get(self) -> None:
        """Print all values."""
        print(
            *(
                self._lines[index].partition('=')[2].strip()
                for index in self._found()
            )
        )

    def delete(self) -> None:
        for index in reversed(self._found()):
            del self._lines[index]

    def write(self) -> None:
        self._path.write_text('\n'.join([*self._lines, '']))

    def _found(self) -> list[int]:
        """The places of the option's lines."""
        found, is_here = [], False
        for index, line in enumerate(self._lines):
            if line.startswith('['):
                is_here = line == self._head
            elif is_here and self._is_option(line):
                found.append(index)
        return found

    def _make_section(self) -> None:
        if self._head not in self._lines:
            self._lines += ['', self._head]

    def _add(self, line: str) -> None:
        self._lines.insert(self._lines.index(self._head) + 1, line)


def main(
    name: str, path: str, section: str, option: str, *values: str
) -> None:
    ini = Ini(pathlib.Path(path), section, option)
    function: Callable[..., None] = getattr(ini, name)
    function(*values)
    if name != 'get':
        ini.write()


if __name__ == '__main__':
    main(*sys.argv[1:])
