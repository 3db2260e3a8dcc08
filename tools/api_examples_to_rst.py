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

"""Writes the examples of the REST API as reStructuredText, for the manual.

``unit.api.test_examples`` makes each call, so an example cannot be out of
date.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import json
import pathlib
import textwrap
from typing import Any

EXAMPLES = pathlib.Path(__file__).parents[1] / 'doc/api_examples.json'


def text() -> str:
    """All examples, in the order of the file."""
    return '\n'.join(
        line
        for example in json.loads(EXAMPLES.read_text())
        for line in _lines(example)
    )


def _lines(example: Mapping[str, Any]) -> Iterator[str]:
    title = f'``{example["call"]}``'
    yield from (title, '=' * len(title), '')
    yield f'As *{example["role"]}*, with {example["version"]}.'
    yield ''
    if example['body'] is not None:
        yield from _block(example['body'])
    yield f'{example["status"]}' + (
        '::' if example['answer'] is not None else ', without a body.'
    )
    yield ''
    if example['answer'] is not None:
        yield from _block(example['answer'], is_marked=True)


def _block(value: Any, is_marked: bool = False) -> Iterator[str]:
    """A block of JSON, after ``::`` if it is marked so."""
    if not is_marked:
        yield from ('.. code-block:: json', '')
    yield textwrap.indent(json.dumps(value, indent=2), '   ')
    yield ''
