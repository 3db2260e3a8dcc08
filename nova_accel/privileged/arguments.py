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

"""Check the plain arguments of callers, which may be of any type.

Each error names the argument. Only builtin exceptions reach the caller, which
is another process.
"""

import math


def text(name: str, value: object) -> str:
    """:raises ValueError: it is no text."""
    if not isinstance(value, str):
        raise ValueError(f'{name} is no text, but {_shown(value)}')
    return value


def integer(name: str, value: object, least: int, most: int) -> int:
    """:raises ValueError: it is no integer, too small or too large."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not least <= value <= most
    ):
        raise ValueError(
            f'{name} is {_shown(value)}, not a number from {least} to {most}'
        )
    return value


def seconds(name: str, value: object, most: int) -> int:
    """A time limit, rounded up to whole seconds.

    :raises ValueError: it is no number, not above 0, or too large.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 < value <= most
    ):
        raise ValueError(
            f'{name} is {_shown(value)}, not more than 0 and at most {most} s'
        )
    return math.ceil(value)


def _shown(value: object) -> str:
    """Some characters of it, however much it is."""
    shown = repr(value[:50] if isinstance(value, str | bytes) else value)
    return shown if len(shown) <= 100 else f'{shown[:100]}...'
