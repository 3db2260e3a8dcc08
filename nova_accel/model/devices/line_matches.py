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

"""Lines of ``device_spec`` that have no effect, or not the whole one."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import difflib
import json
from typing import Any

from nova_accel import reason
from nova_accel.model.devices import device_spec

#: How many functions a text names.
_MAX_NAMED = 3

_ANY = device_spec.DeviceSpec('', '')

_KEYS = (
    'address',
    'vendor_id',
    'product_id',
    'subsystem_vendor_id',
    'subsystem_product_id',
)

_Functions = Sequence[device_spec.SpecFunction]


def shadowed(
    specs: Sequence[device_spec.DeviceSpec],
    functions: Iterable[device_spec.SpecFunction],
) -> Mapping[tuple[int, int], _Functions]:
    """The functions that two lines match, of which the first one applies.

    :returns: the indexes of the later and of the first line -> the functions
    """
    found: dict[tuple[int, int], list[device_spec.SpecFunction]] = {}
    for function in functions:
        matching = [
            index for index, spec in enumerate(specs) if spec.matches(function)
        ]
        for other in matching[1:]:
            found.setdefault((other, matching[0]), []).append(function)
    return found


def why_unmatched(spec: device_spec.DeviceSpec, functions: _Functions) -> str:
    """The key of a line that keeps it from all functions of the host.

    :param functions: all of the host, of which the line matches none
    """
    wanted = {
        key: getattr(spec, key)
        for key in _KEYS
        if getattr(spec, key) != getattr(_ANY, key)
    }
    wrong = [
        key for key in wanted if not _matching({key: wanted[key]}, functions)
    ]
    if not wrong:
        return f'no device has all of {_written(wanted)}' + _what_is_there(
            wanted, functions
        )
    return '; '.join(
        f'no device has {_written({key: wanted[key]})}'
        + _hint(key, wanted, functions)
        for key in wrong
    )


def _hint(key: str, wanted: Mapping[str, str], functions: _Functions) -> str:
    """The value that was probably meant, nothing if none is likely."""
    others = {other: wanted[other] for other in wanted if other != key}
    found = _matching(others, functions) if others else []
    if found:
        return f'; with {_written(others)} there is {_named(found)}'
    near = difflib.get_close_matches(
        wanted[key], {_value(each, key) for each in functions}, 1
    )
    return f' (did you mean "{near[0]}"?)' if near else ''


def _what_is_there(wanted: Mapping[str, str], functions: _Functions) -> str:
    """The functions at the address of a line, nothing if it has none."""
    if 'address' not in wanted:
        return ''
    there = _matching({'address': wanted['address']}, functions)
    return f': there is {_named(there)}'


def _matching(wanted: Mapping[str, str], functions: _Functions) -> _Functions:
    keys: dict[str, Any] = dict(wanted)
    spec = dataclasses.replace(_ANY, **keys)
    return [each for each in functions if spec.matches(each)]


def _value(function: device_spec.SpecFunction, key: str) -> str:
    board = function.subsystem
    values = {
        'address': str(function.address),
        'vendor_id': function.vendor_id,
        'product_id': function.product_id,
        'subsystem_vendor_id': '' if board is None else board.vendor_id,
        'subsystem_product_id': '' if board is None else board.product_id,
    }
    return values[key]


def _named(functions: _Functions) -> str:
    return reason.some(
        [
            f'{each.address} ({each.vendor_id}:{each.product_id})'
            for each in functions
        ],
        _MAX_NAMED,
    )


def _written(keys: Mapping[str, str]) -> str:
    """The keys as a line has them."""
    return json.dumps(keys)[1:-1]
