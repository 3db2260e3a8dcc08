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

"""How a request finds its route."""

from collections.abc import Iterable
from collections.abc import Mapping

import routes
import webob
import webob.exc

from nova_accel.api.http import microversion
from nova_accel.api.http import route


class Router:
    """Finds the route of a request in a table.

    A slash at the end of the path is ignored, as by Cyborg.
    """

    def __init__(self, table: route.Table) -> None:
        self._table = table
        self._paths_without_items = {path for path in table if '{' not in path}
        self._mapper = routes.Mapper(explicit=True)
        for path in table:
            self._mapper.connect(path, path)
        # Routes would make its expressions at the first request, and two
        # threads would make them at once.
        self._mapper.create_regs([])

    def match(self, request: webob.Request) -> route.Route:
        """The route, which :func:`.route.of` returns from then.

        The path's items are in ``request.urlvars`` then.

        :raises HTTPNotFound: no such path.
        :raises HTTPMethodNotAllowed: no such method; ``Allow`` has those that
            there are.
        :raises HTTPNotAcceptable: the request's microversion is older than
            the call.
        """
        request.urlvars, path = self._find(request.path_info.removesuffix('/'))
        methods = self._table[path]
        matched = methods.get(request.method)
        if matched is None:
            raise _not_allowed(methods)
        # Requests for the version documents, which are public, have none.
        if matched.since != microversion.VERSIONS[0]:
            if matched.is_hidden_before and not microversion.is_at_least(
                request, matched.since
            ):
                raise _not_allowed(
                    method for method in methods if method != request.method
                )
            microversion.require(request, matched.since)
        route.keep(request, matched)
        return matched

    def _find(self, path: str) -> tuple[Mapping[str, str], str]:
        """The items of a path, and the path in the table."""
        # Routes would try one path of the table after the other.
        if path in self._paths_without_items:
            return {}, path
        found = self._mapper.routematch(path)
        if found is None:
            raise webob.exc.HTTPNotFound()
        items, matched = found
        return items, matched.name


def _not_allowed(methods: Iterable[str]) -> webob.exc.HTTPMethodNotAllowed:
    return webob.exc.HTTPMethodNotAllowed(
        headers={'Allow': ', '.join(methods)}
    )
