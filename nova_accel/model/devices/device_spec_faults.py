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

"""Why a line of ``device_spec`` is refused, in words for the operator.

The schema says what is wrong in terms of JSON Schema. The operator needs to
read which key it is, and what it may have. The ``description`` of a key's
schema has the latter, to follow "must be".
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import difflib
import json
from typing import Any

import jsonschema


def describe(
    error: jsonschema.ValidationError, keys: Mapping[str, Mapping[str, Any]]
) -> str:
    """The fault in one clause, with the key that has it.

    :param keys: the keys that a line may have, with their schemas
    """
    # jsonschema's types allow an error without them.
    value: Any = error.instance
    required: Any = error.validator_value
    if error.path:
        key = str(error.path[0])
        return (
            f'"{key}" has {json.dumps(value)}, and must be '
            f'{_allowed(keys[key])}'
        )
    match error.validator:
        case 'additionalProperties':
            unknown = sorted(value.keys() - keys.keys())
            return (
                f'unknown key {" and ".join(_with_nearest(unknown, keys))}, '
                f'the keys are {", ".join(sorted(keys))}'
            )
        case 'required':
            missing = [f'"{key}"' for key in required if key not in value]
            return f'{" and ".join(missing)} is needed'
        case _:
            return 'it must be a JSON object, such as {"vendor_id": ...}'


def _allowed(schema: Mapping[str, Any]) -> str:
    words: str = schema.get('description') or 'one of ' + ', '.join(
        map(json.dumps, schema['enum'])
    )
    return words


def _with_nearest(
    unknown: Iterable[str], keys: Iterable[str]
) -> Iterator[str]:
    """The unknown keys, each with the known one that looks like it."""
    for key in unknown:
        near = difflib.get_close_matches(key, keys, 1)
        yield json.dumps(key) + (
            f' (did you mean "{near[0]}"?)' if near else ''
        )
