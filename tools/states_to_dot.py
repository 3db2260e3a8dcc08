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
"""Writes the states of an ARQ, from the table that the code obeys.

The manual runs this too, so that its picture cannot be out of date.
"""

import argparse
from collections.abc import Mapping
from collections.abc import Set
import pathlib
import sys

from nova_accel.model import arq

Transitions = Mapping[arq.State, Set[arq.State]]


def dot(transitions: Transitions) -> str:
    """Graphviz text; the state that is derived, never stored, is dashed."""
    lines = ['digraph arq {', '    node [shape=box, style=rounded];']
    for state, following in transitions.items():
        if state is arq.State.UNKNOWN:
            lines.append(f'    {state} [style="rounded,dashed"];')
        lines.extend(f'    {state} -> {target};'
                     for target in sorted(following))
    return '\n'.join([*lines, '}', ''])


def table(transitions: Transitions) -> str:
    """A reStructuredText table: a row's state may become a column's."""
    states = list(transitions)
    lines = ['.. list-table::', '   :header-rows: 1', '   :stub-columns: 1',
             '']
    rows = [['from / to', *map(str, states)]]
    rows.extend(
        [str(state), *('yes' if target in transitions[state] else ''
                       for target in states)]
        for state in states)
    for first, *others in rows:
        lines.append(f'   * - {first}')
        lines.extend(f'     - {cell}'.rstrip() for cell in others)
    return '\n'.join([*lines, ''])


FORMATS = {'dot': dot, 'rst': table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--format', choices=FORMATS, default='dot')
    parser.add_argument('--output', type=pathlib.Path,
                        help='a file, instead of standard output')
    arguments = parser.parse_args()
    text = FORMATS[arguments.format](arq.TRANSITIONS)
    if arguments.output:
        arguments.output.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == '__main__':
    main()
