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


"""Which part of a list a client asks for, and in which order.

``sort``, ``limit`` and ``marker`` follow OpenStack's API guidelines.
"""

from collections.abc import Collection
import dataclasses

from nova_accel import exceptions

#: The longest page, and the default.
MAX_LIMIT = 1000

_DIRECTIONS = ('asc', 'desc')


@dataclasses.dataclass(frozen=True)
class SortKey:
    """A key to sort by, in ascending order unless ``descending`` is set."""

    name: str
    descending: bool = False


@dataclasses.dataclass(frozen=True)
class Page:
    """A part of a list; by default all of it, in its usual order.

    ``limit`` is the maximum number of rows. ``marker`` is the uuid of the last
    row of the previous page.
    """

    limit: int | None = None
    marker: str | None = None
    sort: tuple[SortKey, ...] = ()

    def is_all(self, amount: int) -> bool:
        """Whether a page with ``amount`` rows is the whole list."""
        return self.marker is None and (
            self.limit is None or amount < self.limit
        )


#: The whole list.
ALL = Page()


def parse_limit(text: str) -> int:
    """The wanted number of rows, at most :data:`MAX_LIMIT`.

    :raises InvalidRequest: it is not a positive number
    """
    if not (
        text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0
    ):
        raise exceptions.InvalidRequest(
            'The argument limit is no positive number'
        )
    return min(int(text), MAX_LIMIT)


def parse_sort(text: str, known: Collection[str]) -> tuple[SortKey, ...]:
    """Parse ``key:direction,key:direction``; directions are optional.

    :param known: the keys that the list can be sorted by
    :raises InvalidRequest: a key or direction is unknown, or a key occurs
        twice; the text names it
    """
    keys: dict[str, SortKey] = {}
    for part in text.split(','):
        name, _colon, direction = part.partition(':')
        if name not in known:
            raise exceptions.InvalidRequest(
                f'The argument sort has an unknown key: "{name[:255]}", the '
                f'keys are {", ".join(sorted(known))}'
            )
        if name in keys:
            raise exceptions.InvalidRequest(
                f'The argument sort has the key {name} more than once'
            )
        if part != name and direction not in _DIRECTIONS:
            raise exceptions.InvalidRequest(
                f'The argument sort has an unknown direction of {name}: '
                f'"{direction[:255]}", it is {" or ".join(_DIRECTIONS)}'
            )
        keys[name] = SortKey(name, direction == 'desc')
    return tuple(keys.values())
