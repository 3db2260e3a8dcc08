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

"""Whether a value matches a JSON schema, found without the library.

jsonschema explains each mismatch, and takes 80 ms for the report of a host of
256 devices. Nearly all values are right, and that is found here by a function
for each keyword. A no need not be right:
:mod:`nova_accel.api.http.full_check` then decides, and says why.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import re
from typing import Any

_Check = Callable[[Any], bool]
_Schema = Mapping[str, Any]

# The identity of a schema -> the schema and its check. The schemas are
# constants of modules, and being kept here, no other gets the identity of one.
_CHECKS: dict[int, tuple[_Schema, _Check]] = {}


def matches(value: Any, schema: _Schema) -> bool:
    """Whether a value surely matches a schema.

    :param schema: a constant: its check is made once
    :raises KeyError: the schema has a keyword that is not known here
    """
    known = _CHECKS.get(id(schema))
    if known is None:
        known = _CHECKS[id(schema)] = schema, _all(schema)
    return known[1](value)


def _all(schema: _Schema) -> _Check:
    """The check of all keywords of a schema, first that of the type."""
    return functools.reduce(
        _both,
        [
            check
            for name in sorted(schema, key=lambda name: name != 'type')
            if (check := _KEYWORDS[name](schema[name], schema)) is not None
        ],
    )


def _both(first: _Check, second: _Check) -> _Check:
    return lambda value: first(value) and second(value)


_TYPES: Mapping[str, _Check] = {
    'array': lambda value: type(value) is list,
    'boolean': lambda value: type(value) is bool,
    # So is 1.0, says jsonschema then.
    'integer': lambda value: type(value) is int,
    'null': lambda value: value is None,
    'object': lambda value: type(value) is dict,
    'string': lambda value: type(value) is str,
}


def _type(names: str | Sequence[str], _schema: _Schema) -> _Check:
    if isinstance(names, str):
        return _TYPES[names]
    return _any([_TYPES[name] for name in names])


def _any_of(schemas: Sequence[_Schema], _schema: _Schema) -> _Check:
    return _any([_all(schema) for schema in schemas])


def _any(checks: Sequence[_Check]) -> _Check:
    return lambda value: any(check(value) for check in checks)


def _enum(values: Collection[str], _schema: _Schema) -> _Check:
    texts = frozenset(values)
    return lambda value: type(value) is str and value in texts


def _const(wanted: str, schema: _Schema) -> _Check:
    return _enum([wanted], schema)


def _pattern(pattern: str, _schema: _Schema) -> _Check:
    search = re.compile(pattern).search
    return lambda value: type(value) is not str or search(value) is not None


def _size(kind: type[Any], least: int, most: float) -> _Check:
    return lambda value: type(value) is not kind or least <= len(value) <= most


def _maximum(most: int, _schema: _Schema) -> _Check:
    return lambda value: type(value) is not int or value <= most


def _minimum(least: int, _schema: _Schema) -> _Check:
    return lambda value: type(value) is not int or value >= least


def _items(schema: _Schema, _schema: _Schema) -> _Check:
    check = _all(schema)
    return lambda value: type(value) is not list or all(map(check, value))


def _unique_items(_wanted: bool, _schema: _Schema) -> _Check:
    return lambda value: (
        type(value) is not list
        or (
            all(type(item) is str for item in value)
            and len(set(value)) == len(value)
        )
    )


def _property_names(schema: _Schema, _schema: _Schema) -> _Check:
    check = _all(schema)
    return lambda value: type(value) is not dict or all(map(check, value))


def _required(names: Collection[str], _schema: _Schema) -> _Check:
    wanted = frozenset(names)
    return lambda value: type(value) is not dict or wanted <= value.keys()


def _properties(properties: Mapping[str, _Schema], schema: _Schema) -> _Check:
    checks = {name: _all(each) for name, each in properties.items()}
    return _each_property(checks, schema.get('additionalProperties', True))


def _additional_properties(
    others: bool | _Schema, schema: _Schema
) -> _Check | None:
    # With others, this is the check of "properties".
    return None if 'properties' in schema else _each_property({}, others)


def _each_property(
    checks: Mapping[str, _Check], others: bool | _Schema
) -> _Check:
    check_other: _Check = (
        (lambda _value: others) if isinstance(others, bool) else _all(others)
    )

    return lambda value: (
        type(value) is not dict
        or all(
            checks.get(name, check_other)(of_name)
            for name, of_name in value.items()
        )
    )


#: Keyword -> what makes its check from its value and the schema it is in;
#: None if the check of another keyword has it.
_KEYWORDS: Mapping[str, Callable[[Any, _Schema], _Check | None]] = {
    'additionalProperties': _additional_properties,
    'anyOf': _any_of,
    'const': _const,
    'enum': _enum,
    'items': _items,
    'maxItems': lambda most, _schema: _size(list, 0, most),
    'maxLength': lambda most, _schema: _size(str, 0, most),
    'maxProperties': lambda most, _schema: _size(dict, 0, most),
    'maximum': _maximum,
    'minItems': lambda least, _schema: _size(list, least, float('inf')),
    'minLength': lambda least, _schema: _size(str, least, float('inf')),
    'minProperties': lambda least, _schema: _size(dict, least, float('inf')),
    'minimum': _minimum,
    'pattern': _pattern,
    'properties': _properties,
    'propertyNames': _property_names,
    'required': _required,
    'type': _type,
    'uniqueItems': _unique_items,
}
