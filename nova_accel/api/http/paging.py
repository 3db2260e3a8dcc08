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


"""Lists in pages: what a request asks for, and the link to the next page."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any
from typing import TypeVar
from urllib import parse

import webob

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api.http import microversion
from nova_accel.api.http import representation
from nova_accel.api.http import request
from nova_accel.api.http import route
from nova_accel.model import paging

CONF = conf.CONF

#: The microversion from which on all lists have pages.
SINCE = '2.4'

#: The arguments of a list that has pages.
ARGUMENTS: Mapping[str, route.Argument] = {
    'limit': route.Argument('How many at most', since=SINCE),
    'marker': route.Argument(
        'Uuid of the last one that is known', since=SINCE
    ),
    'sort': route.Argument(
        'Keys and directions, as type:desc,uuid', since=SINCE
    ),
}

_Row = TypeVar('_Row', bound=Mapping[str, Any])


@dataclasses.dataclass(frozen=True)
class Query:
    """The part of a list that is asked for: the filters, and which page.

    :ivar is_whole: whether the client knows no pages and asks for the whole
        list; the page is then one longer than such a list may be
    """

    filters: Mapping[str, str]
    page: paging.Page
    is_whole: bool = False

    def answer(
        self,
        req: webob.Request,
        path: str,
        name: str,
        rows: Sequence[_Row],
        show: Callable[[_Row], dict[str, Any]],
    ) -> webob.Response:
        """The answer: the page and, if it is full, a link to the next.

        :param path: of the list
        :param name: of the list in the body
        :raises InvalidRequest: the list is too long for one answer.
        """
        if self.is_whole:
            check_length(
                rows, f'filter them, or ask for pages (microversion {SINCE})'
            )
        body: dict[str, Any] = {name: [show(row) for row in rows]}
        if not self.is_whole and len(rows) == self.page.limit:
            body[f'{name}_links'] = next_links(
                req, path, self.page.limit, rows[-1]['uuid']
            )
        return webob.Response(json_body=body)


def next_links(
    req: webob.Request, path: str, limit: int | None, marker: str
) -> list[dict[str, str]]:
    """The link to the page after the one that ends with the marker.

    :param path: of the list
    """
    query = parse.urlencode({**req.GET, 'limit': limit, 'marker': marker})
    [link] = representation.link(req, f'{path}?{query}')
    return [{**link, 'rel': 'next'}]


def limit_of_whole() -> int:
    """How many rows to read of a list that has no pages."""
    return int(CONF.nova_accel.max_unpaged) + 1


def check_length(rows: Sequence[Any], cure: str) -> None:
    """Check that a list is short enough for one answer.

    :param rows: no more than :func:`limit_of_whole`
    :raises InvalidRequest: it is too long; the fault has the cure.
    """
    if len(rows) >= limit_of_whole():
        raise exceptions.InvalidRequest(
            f'There are more than {CONF.nova_accel.max_unpaged}: {cure}'
        )


def query(req: webob.Request, keys: Iterable[str]) -> Query:
    """The query of a list; without pages it is for the whole list.

    :param keys: the keys that the list can be sorted by
    :raises InvalidRequest: names what is wrong
    """
    arguments = request.query(req)
    filters = {
        name: value
        for name, value in arguments.items()
        if name not in ARGUMENTS
    }
    if not microversion.is_at_least(req, route.of(req).query['limit'].since):
        return Query(filters, paging.Page(limit_of_whole()), is_whole=True)
    sort = arguments.get('sort')
    return Query(
        filters,
        paging.Page(
            paging.parse_limit(arguments.get('limit', str(paging.MAX_LIMIT))),
            arguments.get('marker'),
            () if sort is None else paging.parse_sort(sort, set(keys)),
        ),
    )
