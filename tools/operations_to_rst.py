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

"""Writes the manual's tables of server operations, as the tests have them.

The manual runs this too, so that its tables cannot be out of date.
"""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator
import itertools
import pathlib
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'tests'))

from functional import changes_by_state
from functional import operations

_COLUMNS = [
    (flavor, device)
    for flavor in operations.FLAVORS
    for device in operations.DEVICES
]


def table() -> str:
    """A reStructuredText table, and footnotes that name places in Nova.

    :raises LookupError: no test shows a cell, or Nova does not forbid it.
    """
    rows = itertools.groupby(operations.cells(), lambda cell: cell[:2])
    shown = operations.shown()
    lines = [
        '.. list-table::',
        '   :header-rows: 1',
        '   :widths: 34 9 9 9 9 30',
        '',
    ]
    lines += _row('Operation', *map(' '.join, _COLUMNS), 'Shown by')
    for (operation, case), cells in rows:
        row = {(cell.flavor, cell.device): cell for cell in cells}
        for cell in row.values():
            if cell not in shown:
                raise LookupError(f'no test shows {cell}')
        lines += _row(
            f'{operation}: {case}' if case else f'**{operation}**',
            *(_text(row.get(column)) for column in _COLUMNS),
            *_names(
                name
                for cell in row.values()
                if not cell.forbidden
                for name in shown[cell]
            ),
        )
    lines += [
        '',
        *itertools.chain(
            *map(_footnote, sorted(set(operations.FORBIDDEN.values())))
        ),
    ]
    return '\n'.join([*lines, ''])


def changes() -> str:
    """A reStructuredText table of accelerators that change, by state.

    A sentence follows on the operations that Nova refuses meanwhile.
    """
    lines = ['.. list-table::', '   :header-rows: 1', '']
    lines += _row('The server', *changes_by_state.Operation)
    for state, outcomes in changes_by_state.TABLE.items():
        lines += _row(state.text, *outcomes.values())
    *others, last = changes_by_state.REFUSED_MEANWHILE
    lines += [
        '',
        *textwrap.wrap(
            'While a change goes on, Nova answers 409 to these operations: '
            f'{", ".join(others)} and {last}.'
        ),
    ]
    return '\n'.join([*lines, ''])


def _row(*cells: str) -> Iterator[str]:
    start = '   * -'
    for cell in cells:
        first, *others = cell.split('\n')
        yield f'{start} {first}'.rstrip()
        yield from (f'       {line}' for line in others)
        start = '     -'


def _text(cell: operations.Cell | None) -> str:
    if cell is None:
        return '\\-'
    if cell.forbidden:
        return f'no [#{operations.FORBIDDEN[cell.operation]}]_'
    return '✓'


def _names(names: Iterable[str]) -> Iterator[str]:
    """``module`` and below it its tests, in one cell."""
    methods: dict[str, list[str]] = {}
    for name in names:
        module, method = name.split('.')
        found = methods.setdefault(module, [])
        if method not in found:
            found.append(method)
    yield '\n'.join(
        f'``{line}``'
        for module, found in methods.items()
        for line in (module, *found)
    )


def _footnote(method: str) -> Iterator[str]:
    yield f'.. [#{method}] Nova forbids it to servers with Cyborg\'s key:'
    yield f'   ``{operations.place(method)}``.'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        '--changes',
        action='store_true',
        help='the table of accelerators that change, by the server\'s state',
    )
    parser.add_argument(
        '--output',
        type=pathlib.Path,
        help='a file, instead of standard output',
    )
    arguments = parser.parse_args()
    text = changes() if arguments.changes else table()
    if arguments.output:
        arguments.output.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == '__main__':
    main()
