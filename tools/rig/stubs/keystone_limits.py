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

"""Unified limits of the stub of Keystone, in memory."""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
import uuid

import webob

#: Collection -> the name of one of it, and what no two of it have in common.
_COLLECTIONS = {
    'registered_limits': (
        'registered_limit',
        ('service_id', 'region_id', 'resource_name'),
    ),
    'limits': (
        'limit',
        ('service_id', 'region_id', 'resource_name', 'project_id'),
    ),
}

#: What a limit has, if its maker does not say it.
_DEFAULTS = {'region_id': None, 'description': None}


class Limits:
    """What registered limits and limits of projects there are."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, dict[str, Any]]] = {
            name: {} for name in _COLLECTIONS
        }

    def answer(
        self, request: webob.Request, place: Iterable[str]
    ) -> webob.Response | None:
        """Answer a request about limits.

        :param place: the parts of its path after the version
        :returns: None if it is not about limits, or there is no such one
        """
        name, *rest = place
        if name == 'limits' and rest == ['model']:
            return webob.Response(json={'model': {'name': 'flat'}})
        if name not in _COLLECTIONS:
            return None
        if not rest:
            return self._all(name, request)
        found = self._found[name].get(rest[0])
        return None if found is None else self._one(name, found, request)

    def _all(self, name: str, request: webob.Request) -> webob.Response | None:
        match request.method:
            case 'GET':
                return webob.Response(
                    json={
                        name: chosen(self._found[name].values(), request.GET)
                    }
                )
            case 'POST':
                return self._make(name, request.json[name])
        return None

    def _make(
        self, name: str, wanted: list[Mapping[str, Any]]
    ) -> webob.Response:
        _one, identity = _COLLECTIONS[name]
        made = [
            {**_DEFAULTS, **each, 'id': uuid.uuid4().hex} for each in wanted
        ]
        for each in made:
            if any(
                all(each[key] == other[key] for key in identity)
                for other in self._found[name].values()
            ):
                return webob.Response(status=409, json={'error': each})
        self._found[name].update({each['id']: each for each in made})
        return webob.Response(status=201, json={name: made})

    def _one(
        self, name: str, found: dict[str, Any], request: webob.Request
    ) -> webob.Response | None:
        one, _identity = _COLLECTIONS[name]
        match request.method:
            case 'PATCH':
                found.update(request.json[one])
            case 'DELETE':
                del self._found[name][found['id']]
                return webob.Response(status=204)
            case 'GET':
                pass
            case _:
                return None
        return webob.Response(json={one: found})


def chosen(
    found: Iterable[Mapping[str, Any]], wanted: Mapping[str, str]
) -> list[Mapping[str, Any]]:
    """What has all that a query names; the rest of the query is ignored."""
    return [
        each
        for each in found
        if all(each[key] == wanted[key] for key in wanted if key in each)
    ]
