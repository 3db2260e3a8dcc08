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

"""Why a value does not match a JSON schema, in work linear in its size.

jsonschema compares each item of a list with each other for ``uniqueItems`` if
it cannot sort them, looks at all items of a list that is too long, and makes
all errors to choose one. A body of 40 kB takes it 20 s then. Here the size of
a value comes first, and only some errors are looked at.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import itertools
import json
from typing import Any

import jsonschema

#: Among how many errors the best one is looked for.
_MOST_ERRORS = 100

#: The bound of a size -> the kind of the value that has it.
_BOUNDS: Mapping[str, type[Any]] = {
    'maxItems': list,
    'maxLength': str,
    'maxProperties': dict,
}

_Keyword = Callable[[Any, Any, Any, Any], Iterator[jsonschema.ValidationError]]


def fault(
    value: Any, schema: Mapping[str, Any]
) -> jsonschema.ValidationError | None:
    """The most helpful one of the mismatches, None if there is none.

    :param value: of JSON
    :raises RecursionError: the value is nested too deep
    """
    return jsonschema.exceptions.best_match(
        itertools.islice(
            _Validator(schema).iter_errors(value),
            _MOST_ERRORS,
        )
    )


def _unique_items(
    _validator: Any, wanted: Any, value: Any, _schema: Any
) -> Iterator[jsonschema.ValidationError]:
    """``uniqueItems`` of texts and numbers; ``items`` allows no others.

    The hash of a text is not foreseeable. A client could send numbers that
    all have the same one.
    """
    if not wanted or type(value) is not list:
        return
    seen = set()
    for item in value:
        if type(item) not in (str, int, float):
            continue
        # 1.0 is 1.
        text = json.dumps(item).removesuffix('.0')
        if text in seen:
            yield jsonschema.ValidationError(
                f'{item!r} is there more than once'
            )
            return
        seen.add(text)


def _after_size(check: _Keyword) -> _Keyword:
    """A keyword that does not look at a value that is too large."""

    def check_small(
        validator: Any, wanted: Any, value: Any, schema: Any
    ) -> Iterator[jsonschema.ValidationError]:
        if not any(
            isinstance(value, kind) and len(value) > schema[bound]
            for bound, kind in _BOUNDS.items()
            if bound in schema
        ):
            yield from check(validator, wanted, value, schema) or ()

    return check_small


_BASE = jsonschema.Draft202012Validator

# It has no types.
_extend: Any = jsonschema.validators.extend

_Validator = _extend(
    _BASE,
    {
        name: _after_size(check)
        for name, check in {
            **_BASE.VALIDATORS,
            'uniqueItems': _unique_items,
        }.items()
        if name not in _BOUNDS
    },
)
