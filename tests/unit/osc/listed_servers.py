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

"""Nova's API with servers that administrators list, and with Placement's."""

import json
import types
from typing import Any
from urllib import parse

from keystoneauth1 import noauth
from keystoneauth1 import session
from openstack.compute.v2 import _proxy as compute_proxy
from openstack.placement.v1 import _proxy as placement_proxy
import requests
from requests import adapters

_NOVA = 'http://nova.test'
_PLACEMENT = 'http://placement.test'


def server(uuid: str, host: str | None, **fields: Any) -> dict[str, Any]:
    """A server as Nova shows it to an administrator."""
    return {
        'id': uuid,
        'name': f'name of {uuid}',
        'status': 'ACTIVE',
        'tenant_id': 'project',
        'flavor': {'original_name': 'accel.1'},
        'image': {'id': 'image'},
        'OS-EXT-SRV-ATTR:host': host,
        'OS-EXT-STS:vm_state': 'active',
        'OS-EXT-STS:task_state': None,
        **fields,
    }


class Apis(adapters.BaseAdapter):
    """Both APIs.

    :ivar servers: uuid -> server
    :ivar hidden: the servers that no list has
    :ivar migrations: status -> (uuid, uuid of the server) of each
    :ivar of_placement: path -> what Placement answers
    :ivar asked: path and query of each request, without the page
    """

    page = 2

    def __init__(self) -> None:
        super().__init__()
        self.servers: dict[str, dict[str, Any]] = {}
        self.hidden: set[str] = set()
        self.migrations: dict[str, list[tuple[str, str]]] = {}
        self.of_placement: dict[str, Any] = {}
        self.asked: list[str] = []
        self.versions: set[str] = set()
        line = requests.Session()
        for url in (_NOVA, _PLACEMENT):
            line.mount(url, self)
        self._session = session.Session(auth=noauth.NoAuth(), session=line)
        self.compute = compute_proxy.Proxy(
            self._session, service_type='compute', endpoint_override=_NOVA
        )
        self.placement = placement_proxy.Proxy(
            self._session,
            service_type='placement',
            endpoint_override=_PLACEMENT,
        )
        # The SDK asks its connection for a cache.
        sdk = types.SimpleNamespace(
            _global_request_id=None,
            _api_cache_keys=set(),
            cache_enabled=False,
            current_location=None,
            _get_current_location=lambda **_of: None,
        )
        for proxy in (self.compute, self.placement):
            proxy._connection = sdk

    def send(
        self, request: requests.PreparedRequest, **_more: Any
    ) -> requests.Response:
        url = parse.urlsplit(request.url)
        self.versions.add(str(request.headers.get('OpenStack-API-Version')))
        query = dict(parse.parse_qsl(url.query))
        status, body = self._answer(str(url.netloc), str(url.path), query)
        response = requests.Response()
        response.status_code = status
        response.headers['Content-Type'] = 'application/json'
        response._content = json.dumps(body).encode()
        response.request, response.url = request, str(request.url)
        return response

    def close(self) -> None:
        """There is nothing to close."""

    def _answer(
        self, site: str, path: str, query: dict[str, str]
    ) -> tuple[int, Any]:
        if site == 'placement.test':
            self.asked.append(path)
            if path not in self.of_placement:
                return 404, {}
            return 200, self.of_placement[path]
        if path == '/servers/detail' and 'name' in query:
            return 200, {
                'servers': [
                    each
                    for each in self.servers.values()
                    if each['name'] == query['name']
                ]
            }
        if path == '/servers/detail':
            return 200, self._servers(query)
        if path == '/os-migrations':
            return 200, {
                'migrations': [
                    {'uuid': uuid, 'instance_uuid': server_uuid}
                    for uuid, server_uuid in self.migrations.get(
                        query['status'], ()
                    )
                ]
            }
        self.asked.append(path)
        found = self.servers.get(path.rpartition('/')[2])
        return (200, {'server': found}) if found else (404, {})

    def _servers(self, query: dict[str, str]) -> Any:
        """The page after the marker."""
        marker = query.get('marker')
        if marker is None:
            self.asked.append(f'/servers/detail {query["host"]}')
        assert query['all_tenants'] == 'True', query
        uuids = sorted(
            uuid
            for uuid, each in self.servers.items()
            if each.get('OS-EXT-SRV-ATTR:host') == query['host']
            and uuid not in self.hidden
        )
        rest = [uuid for uuid in uuids if marker is None or uuid > marker]
        some = rest[: self.page]
        body: dict[str, Any] = {
            'servers': [self.servers[uuid] for uuid in some]
        }
        if len(rest) > len(some):
            more = parse.urlencode({**query, 'marker': some[-1]})
            body['servers_links'] = [
                {'rel': 'next', 'href': f'{_NOVA}/servers/detail?{more}'}
            ]
        return body
