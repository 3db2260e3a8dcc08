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

"""A sequence of calls, drawn from lines of text.

The first line names who takes part, from left to right, separated by commas;
a ``*`` before a name marks the code of nova_accel. Then each line is a step::

    user, *nova-scheduler, Placement
    user -> nova-scheduler: create a server
    nova-scheduler: merges the groups of the profile
    nova-scheduler -> Placement: asks for candidates
"""

from collections.abc import Iterator
import re
import textwrap

from pictures import canvas

_COLUMN = 138
_MARGIN = 14
_HEAD = 34
_LINE = 15

#: Characters of a line of words between two that are one column apart.
_CHARACTERS = 21

_CALL = re.compile(r'(?P<source>[^:]+?) -> (?P<target>[^:]+): (?P<words>.+)')
_NOTE = re.compile(r'(?P<source>[^:]+): (?P<words>.+)')


def svg(source: str) -> str:
    """:raises ValueError: a line is none of these, or names nobody"""
    first, *lines = [line for line in source.splitlines() if line.strip()]
    names = [name.strip() for name in first.split(',')]
    places = {
        name.lstrip('*'): _MARGIN + _COLUMN * (number + 0.5)
        for number, name in enumerate(names)
    }
    y = _MARGIN + _HEAD + 12.0
    steps = []
    for line in lines:
        drawn, height = _step(line, places, y)
        steps.append(drawn)
        y += height
    heads = ''.join(
        _participant(name, place, y)
        for name, place in zip(names, places.values(), strict=True)
    )
    width = 2 * _MARGIN + _COLUMN * len(names)
    return canvas.picture(width, y + _MARGIN, heads, *steps)


def _participant(name: str, x: float, bottom: float) -> str:
    width = _COLUMN - 12
    return ''.join(
        (
            canvas.path(f'M{x},{_MARGIN + _HEAD} L{x},{bottom}', 'pale'),
            canvas.box(
                x - width / 2,
                _MARGIN,
                width,
                _HEAD,
                'ours' if name.startswith('*') else 'box',
            ),
            canvas.text(x, _MARGIN + 22, name.lstrip('*'), 'title'),
        )
    )


def _step(line: str, places: dict[str, float], y: float) -> tuple[str, float]:
    """The step, and how high it is."""
    try:
        if call := _CALL.fullmatch(line):
            return _call(
                places[call['source']], places[call['target']], call, y
            )
        if note := _NOTE.fullmatch(line):
            return _note(places[note['source']], note['words'], y)
    except KeyError as error:
        raise ValueError(f'{line}: no one is called {error}') from error
    raise ValueError(f'{line}: neither a call nor a note')


def _call(
    x: float, to_x: float, call: re.Match[str], y: float
) -> tuple[str, float]:
    columns = abs(to_x - x) / _COLUMN
    words = textwrap.wrap(call['words'], int(_CHARACTERS * columns))
    end = y + _LINE * len(words) + 6
    return (
        ''.join(
            (
                *_lines((x + to_x) / 2, y, words),
                canvas.path(f'M{x},{end} L{to_x},{end}'),
            )
        ),
        end - y + 12,
    )


def _note(x: float, text: str, y: float) -> tuple[str, float]:
    words = textwrap.wrap(text, _CHARACTERS)
    height = _LINE * len(words) + 8
    width = _COLUMN - 6
    return (
        ''.join(
            (
                canvas.box(x - width / 2, y, width, height, 'zone'),
                *_lines(x, y + 2, words),
            )
        ),
        height + 10,
    )


def _lines(x: float, y: float, words: list[str]) -> Iterator[str]:
    for number, line in enumerate(words, 1):
        yield canvas.text(x, y + _LINE * number - 3, line, 'small')
