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

"""Read plain JSON into typed values, within bounds.

A file on a disk may be torn, restored under another name, or edited. An
answer may come from another release. So a ``from_dict`` reads each field
through this module. The error names the path of the first bad field, such as
``arqs[0].attach_handle.uuid``.

jsonschema, which checks what clients send, tells only whether a value is
right. Each value would then be described twice, and its types would stay
unknown to mypy. msgspec makes typed values, with fewer checks and worse texts
for as many lines: ``performance.rst`` has the figures.

Each parser takes any value, and raises :class:`Malformed`. A parser of a
caller's own may raise any ValueError or AcceleratorError.
"""

from collections.abc import Callable
from collections.abc import Mapping
import enum
import re
import reprlib
from typing import Any
from typing import TypeVar

from nova_accel import exceptions
from nova_accel.model import bounds

_T = TypeVar('_T')
_D = TypeVar('_D')
_K = TypeVar('_K')
_E = TypeVar('_E', bound=enum.Enum)

Parser = Callable[[Any], _T]

#: The most parts of a list or a mapping, unless its reader says otherwise.
MOST = 4096

#: The most parts of a list about all units of a host.
MANY = 2**20

#: The longest text that is no name, in characters.
MAX_WORDS = 64 * 1024

# The beginning of a value, for error texts: it may be huge, or deep.
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 64

_TEXT = re.compile(bounds.TEXT)
_UUID = re.compile(bounds.UUID)


class Malformed(ValueError):
    """A value is not as it has to be.

    :param path: of the bad field, empty for the value itself
    :param why: a text that follows the path
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f'{path or "it"} {why}')
        self._path = path
        self._why = why

    def below(self, name: str) -> 'Malformed':
        """The same fault, seen from the value that has this part."""
        dot = '.' if self._path and not self._path.startswith('[') else ''
        return Malformed(f'{name}{dot}{self._path}', self._why)


class Fields:
    """The fields of an object.

    Fields that no one asks for are ignored: a newer release may have them.

    :raises Malformed: the value is no object.
    """

    def __init__(self, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise _not(value, 'an object')
        self._value = value

    def __call__(self, name: str, parse: Parser[_T], *default: _D) -> _T | _D:
        """A field.

        :param default: what the field is if the object lacks it, at most one
        :raises Malformed: the field is missing or malformed.
        """
        if name not in self._value:
            if not default:
                raise Malformed(name, 'is missing')
            return default[0]
        return _within(name, parse, self._value[name])


def text(value: Any) -> str:
    """A text of at most 255 characters, as a database can keep it."""
    if not _TEXT.match(_short(value, bounds.MAX_TEXT)):
        raise _not(value, 'a text')
    return str(value)


def name(value: Any) -> str:
    """A text that is not empty."""
    if value == '':
        raise _not(value, 'a name')
    return text(value)


def words(value: Any) -> str:
    """A long text of any characters, such as the reason of a failure."""
    return _short(value, MAX_WORDS)


def uuid(value: Any) -> str:
    """A uuid in canonical form."""
    if not isinstance(value, str) or not _UUID.match(value):
        raise _not(value, 'a uuid')
    return value


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _not(value, 'true or false')
    return value


def integer(least: int, most: int) -> Parser[int]:
    """A parser of whole numbers from ``least`` to ``most``."""

    def parse(value: Any) -> int:
        # True is an int, too.
        if type(value) is not int or not least <= value <= most:
            raise _not(value, f'a number from {least} to {most}')
        return value

    return parse


def matching(pattern: str, what: str) -> Parser[str]:
    """A parser of texts that match a regular expression.

    :param what: a word for such a text, with its article
    """
    compiled = re.compile(pattern)

    def parse(value: Any) -> str:
        if not isinstance(value, str) or not compiled.match(value):
            raise _not(value, what)
        return value

    return parse


def one_of(kind: type[_E]) -> Parser[_E]:
    """A parser of the members of an enumeration."""

    def parse(value: Any) -> _E:
        for member in kind:
            if type(value) is str and value == member.value:
                return member
        known = ', '.join(str(member.value) for member in kind)
        raise _not(value, f'one of {known}')

    return parse


def traits(value: Any) -> tuple[str, ...]:
    """A list of traits, as Placement names them."""
    return _TRAITS(value)


def part(name: str, parse: Parser[_T]) -> Parser[_T]:
    """A parser of objects of which one field matters."""
    return lambda value: Fields(value)(name, parse)


def optional(parse: Parser[_T]) -> Parser[_T | None]:
    """A parser that also takes null."""
    return lambda value: None if value is None else parse(value)


def listed(parse: Parser[_T], most: int = MOST) -> Parser[tuple[_T, ...]]:
    """A parser of lists of at most ``most`` parts."""

    def parse_all(value: Any) -> tuple[_T, ...]:
        if not isinstance(value, list | tuple):
            raise _not(value, 'a list')
        _check_size(value, most)
        return tuple(
            _within(f'[{number}]', parse, each)
            for number, each in enumerate(value)
        )

    return parse_all


def mapped(
    parse_key: Parser[_K], parse: Parser[_T], most: int = MOST
) -> Parser[dict[_K, _T]]:
    """A parser of objects whose keys are not known before."""

    def parse_all(value: Any) -> dict[_K, _T]:
        if not isinstance(value, Mapping):
            raise _not(value, 'an object')
        _check_size(value, most)
        return {
            _within(f'[{_SHOWN.repr(key)}]', parse_key, key): _within(
                f'[{_SHOWN.repr(key)}]', parse, each
            )
            for key, each in value.items()
        }

    return parse_all


_TRAITS = listed(matching(bounds.PLACEMENT_NAME, 'a trait'))


def _short(value: Any, most: int) -> str:
    if not isinstance(value, str):
        raise _not(value, 'a text')
    if len(value) > most:
        raise Malformed('', f'has {len(value)} characters, not up to {most}')
    return value


def _check_size(value: Any, most: int) -> None:
    if len(value) > most:
        raise Malformed('', f'has {len(value)} parts, not up to {most}')


def _within(name: str, parse: Parser[_T], value: Any) -> _T:
    try:
        return parse(value)
    except Malformed as error:
        raise error.below(name) from None
    except (ValueError, exceptions.AcceleratorError) as error:
        raise Malformed(name, f'is wrong: {error}') from error


def _not(value: Any, wanted: str) -> Malformed:
    return Malformed('', f'is {_SHOWN.repr(value)}, not {wanted}')
