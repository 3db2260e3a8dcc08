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

import json
from typing import Any

import testtools
import webob
import webob.dec

from rig.benchmark import cycle
from rig.serving import wsgi_server

_STATUSES = {'POST': 201, 'PATCH': 202, 'GET': 200, 'DELETE': 204}


class Api:
    """Answers as Cyborg does.

    :param states: what the ARQ is in, one after the other
    :ivar asked: method, path with query, body
    """

    def __init__(self, *states: str) -> None:
        self._states = list(states)
        self.asked: list[tuple[str, str, Any]] = []
        self.headers: dict[str, str] = {}

    @webob.dec.wsgify
    def __call__(self, request: webob.Request) -> webob.Response:
        body = json.loads(request.body) if request.body else None
        self.asked.append((request.method, request.path_qs, body))
        self.headers = dict(request.headers)
        response = webob.Response(status=_STATUSES[request.method])
        if request.method == 'POST':
            response.json = {'arqs': [{'uuid': 'u1'}]}
        if request.method == 'GET':
            response.json = {'arqs': [{'state': self._states.pop(0)}]}
        return response


class TestClient(testtools.TestCase):
    def client(
        self,
        api: Api,
        caller: str = 'member',
    ) -> cycle.Client:
        server = self.useFixture(wsgi_server.WsgiServer())
        server.mount('/', api)
        port = int(server.url.rpartition(':')[2])
        return cycle.Client(cycle.Target(port, 'gold', 'host1', 'rp1'), caller)

    def test_cycle(self) -> None:
        api = Api('Initial', 'BindStarted', 'Bound')
        client = self.client(api)
        client.cycle()
        self.assertEqual(
            ['POST', 'PATCH', 'GET', 'GET', 'GET', 'DELETE'],
            [method for method, _path, _body in api.asked],
        )
        self.assertEqual({'device_profile_name': 'gold'}, api.asked[0][2])
        [[uuid, patch]] = api.asked[1][2].items()
        values = {entry['path']: entry['value'] for entry in patch}
        self.assertEqual(
            ('u1', 'host1', 'rp1'),
            (uuid, values['/hostname'], values['/device_rp_uuid']),
        )
        of_instance = (
            '/v2/accelerator_requests?instance=' + values['/instance_uuid']
        )
        self.assertEqual(
            [of_instance] * 4, [path for _method, path, _body in api.asked[2:]]
        )
        self.assertEqual(
            {'create': 1, 'bind': 1, 'get': 3, 'delete': 1},
            {step: len(times) for step, times in client.latencies_ms.items()},
        )

    def test_an_arq_that_is_not_bound_is_no_cycle(self) -> None:
        client = self.client(Api('BindStarted', 'BindFailed'))
        self.assertRaises(AssertionError, client.cycle)

    def test_who_asks(self) -> None:
        for caller, roles in cycle.ROLES.items():
            api = Api('Bound')
            self.client(api, caller).cycle()
            self.assertEqual(
                (roles, 'service'),
                (api.headers['X-Roles'], api.headers['X-Service-Roles']),
            )
