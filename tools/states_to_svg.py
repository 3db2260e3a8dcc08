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

"""Draws the states of an ARQ, as an SVG picture or as a table.

The manual runs this too, so that its picture cannot be out of date. Columns
are steps from the first state; what leads nowhere stands last, and the steps
to it are pale. A step to the right leaves a state at its right side, one back
runs below.
"""

import argparse
from collections.abc import Mapping
from collections.abc import Set
import pathlib
import sys

from nova_accel.model import arq_types
from pictures import canvas

Transitions = Mapping[arq_types.State, Set[arq_types.State]]

_BOX = (108, 34)
_GAP = (104, 46)
_MARGIN = 24


def svg(transitions: Transitions) -> str:
    """The picture; the state that is derived, never stored, is dashed."""
    places = _places(_columns(transitions))
    width = max(x for x, _y in places.values()) + _BOX[0] + _MARGIN
    height = max(y for _x, y in places.values()) + _BOX[1] + 3 * _MARGIN
    steps = [
        canvas.path(
            _path(places[state], places[target], height),
            'line' if transitions[target] else 'line last',
        )
        for state in transitions
        for target in sorted(transitions[state])
    ]
    boxes = [
        canvas.box(
            x,
            y,
            *_BOX,
            'zone' if state is arq_types.State.UNKNOWN else 'ours',
        )
        + canvas.text(x + _BOX[0] / 2, y + _BOX[1] / 2 + 5, state)
        for state, (x, y) in places.items()
    ]
    return canvas.picture(width, height, *steps, *boxes)


def _columns(transitions: Transitions) -> list[list[arq_types.State]]:
    """The states by the number of steps that lead to them."""
    last = [state for state, following in transitions.items() if not following]
    columns = [[arq_types.State.INITIAL]]
    placed = {arq_types.State.INITIAL, *last}
    while columns[-1]:
        columns.append(
            [
                state
                for state in transitions
                if state not in placed
                and any(state in transitions[before] for before in columns[-1])
            ]
        )
        placed.update(columns[-1])
    columns[-1] = last
    return columns


def _places(
    columns: list[list[arq_types.State]],
) -> dict[arq_types.State, tuple[float, float]]:
    """State -> left upper corner; each column is centred."""
    step = _BOX[1] + _GAP[1]
    tallest = max(len(column) for column in columns)
    return {
        state: (
            _MARGIN + number * (_BOX[0] + _GAP[0]),
            _MARGIN + (tallest - len(column) + 2 * row) * step / 2,
        )
        for number, column in enumerate(columns)
        for row, state in enumerate(column)
    }


def _path(
    source: tuple[float, float], target: tuple[float, float], height: float
) -> str:
    (x, y), (to_x, to_y) = source, target
    middle = _BOX[1] / 2
    if to_x > x:
        x += _BOX[0]
        reach = (to_x - x) / 2
        return (
            f'M{x},{y + middle} C{x + reach},{y + middle} '
            f'{to_x - reach},{to_y + middle} {to_x},{to_y + middle}'
        )
    if to_x == x:
        down = to_y > y
        x += _BOX[0] * (0.6 if down else 0.4)
        return (
            f'M{x},{y + _BOX[1] * down} L{x},{to_y + _BOX[1] * (not down)}'
            if abs(to_y - y) < 2 * (_BOX[1] + _GAP[1])
            else f'M{x},{y + _BOX[1] * down} Q{x + _BOX[0]},{(y + to_y) / 2} '
            f'{x},{to_y + _BOX[1] * (not down)}'
        )
    x += _BOX[0] / 2
    to_x += _BOX[0] / 2
    return (
        f'M{x},{y + _BOX[1]} Q{(x + to_x) / 2},{height} '
        f'{to_x},{to_y + _BOX[1]}'
    )


def table(transitions: Transitions) -> str:
    """A reStructuredText table: a row's state may become a column's."""
    states = list(transitions)
    lines = [
        '.. list-table::',
        '   :header-rows: 1',
        '   :stub-columns: 1',
        '',
    ]
    rows = [['from / to', *map(str, states)]]
    rows.extend(
        [
            str(state),
            *(
                'yes' if target in transitions[state] else ''
                for target in states
            ),
        ]
        for state in states
    )
    for first, *others in rows:
        lines.append(f'   * - {first}')
        lines.extend(f'     - {cell}'.rstrip() for cell in others)
    return '\n'.join([*lines, ''])


FORMATS = {'svg': svg, 'rst': table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--format', choices=FORMATS, default='svg')
    parser.add_argument(
        '--output',
        type=pathlib.Path,
        help='a file, instead of standard output',
    )
    arguments = parser.parse_args()
    text = FORMATS[arguments.format](arq_types.TRANSITIONS)
    if arguments.output:
        arguments.output.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == '__main__':
    main()
