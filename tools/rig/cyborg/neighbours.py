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

"""The services that Cyborg talks to: Keystone, Placement and Nova."""

import secrets
from typing import Any

import fixtures
import placement.deploy
from placement.tests.functional.fixtures import placement as placement_fixture
import requests
import webob
import webob.dec

from rig.serving import wsgi_server
from rig.stubs import keystone

_PROJECT = keystone.Project('5d0c6f3b8f3e4c5d9b1f2a7e6c4d8a90', 'service')


class Neighbours(fixtures.Fixture):
    """A stub of Keystone, a real Placement and a stub of Nova, on loopback.

    Keystone has a catalog. Placement takes every caller for an administrator.
    Nova answers each external event with 200, and does nothing with it.

    :ivar user: Cyborg's
    :ivar auth_url: of Keystone
    """

    def _setUp(self) -> None:
        server = self.useFixture(wsgi_server.WsgiServer())
        self.user = keystone.User(
            '5e',
            'cyborg',
            secrets.token_urlsafe(),
            _PROJECT,
            ('admin', 'service'),
        )
        stub = keystone.Keystone(f'{server.url}/identity', [self.user])
        self.auth_url = server.mount('/identity', stub)
        self._placement_url = server.mount(
            '/placement',
            _placement(
                self.useFixture(
                    placement_fixture.PlacementFixture(use_intercept=False)
                )
            ),
        )
        stub.register('placement', 'placement', self._placement_url)
        stub.register(
            'compute',
            'nova',
            server.mount('/compute/v2.1', Nova(f'{server.url}/compute/v2.1')),
        )

    def make_provider(self, name: str) -> None:
        """Make a host's provider, as nova-compute does."""
        requests.post(
            f'{self._placement_url}/resource_providers',
            timeout=60,
            json={'name': name},
        ).raise_for_status()


class Nova:
    """A Nova that accepts external events, and does nothing with them.

    :param url: where it is mounted
    """

    def __init__(self, url: str) -> None:
        self._url = url

    @webob.dec.wsgify
    def __call__(self, request: webob.Request) -> webob.Response:
        if request.method == 'POST':
            return webob.Response(
                json={
                    'events': [
                        {**event, 'code': 200}
                        for event in request.json['events']
                    ]
                }
            )
        return webob.Response(
            json={
                'version': {
                    'id': 'v2.1',
                    'status': 'CURRENT',
                    'version': '2.103',
                    'min_version': '2.1',
                    'links': [{'rel': 'self', 'href': f'{self._url}/'}],
                }
            }
        )


def _placement(fixture: placement_fixture.PlacementFixture) -> Any:
    """The application; it takes every caller for an administrator."""
    application = placement.deploy.loadapp(fixture.conf_fixture.conf)

    def as_admin(environ: dict[str, Any], start_response: Any) -> Any:
        environ['HTTP_X_AUTH_TOKEN'] = 'admin'
        return application(environ, start_response)

    return as_admin
