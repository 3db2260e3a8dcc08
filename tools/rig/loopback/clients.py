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

"""REST clients with real tokens, for tests and the quickstart."""

from typing import Any

from nova.tests.functional.api import client
import requests

from rig.stubs import keystone as keystone_stub

TIMEOUT_S = 60


class ComputeClient(client.TestOpenStackClient):
    """Nova's test client with a real token, instead of headers of its own.

    :param roles: of the token, instead of the user's own
    """

    def __init__(
        self,
        keystone: keystone_stub.Keystone,
        user: keystone_stub.User,
        base_url: str,
        roles: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(
            user.name,
            base_url,
            user.project.id,
            user.roles if roles is None else roles,
        )
        self._token = keystone.issue(user, roles)

    def request(
        self,
        url: str,
        method: str = 'GET',
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> requests.Response:
        return requests.request(
            method,
            url,
            data=body,
            timeout=TIMEOUT_S,
            headers={
                'Content-Type': 'application/json',
                **(headers or {}),
                'X-Auth-Token': self._token,
            },
        )


class AcceleratorClient:
    """The accelerator API as one user sees it.

    :ivar microversion: the one that each request asks for; None asks for none
    """

    def __init__(
        self,
        keystone: keystone_stub.Keystone,
        user: keystone_stub.User,
        base_url: str,
        roles: tuple[str, ...] | None = None,
    ) -> None:
        self._keystone = keystone
        self._token = keystone.issue(user, roles)
        self._base_url = base_url
        self.microversion: str | None = 'latest'

    def request(
        self,
        method: str,
        path: str,
        service_user: keystone_stub.User | None = None,
        headers: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> requests.Response:
        """Send a request; an answer of any status is returned.

        :param service_user: a user whose token is sent beside the own one
        """
        sent = {'X-Auth-Token': self._token, **(headers or {})}
        if self.microversion is not None:
            sent['OpenStack-API-Version'] = f'accelerator {self.microversion}'
        if service_user is not None:
            sent['X-Service-Token'] = self._keystone.issue(service_user)
        return requests.request(
            method,
            self._base_url + path,
            headers=sent,
            timeout=TIMEOUT_S,
            **kwargs,
        )

    def get(self, path: str, **kwargs: Any) -> Any:
        """The body of the answer, which must be a success."""
        return self._checked('GET', path, **kwargs)

    def post(self, path: str, body: Any, **kwargs: Any) -> Any:
        return self._checked('POST', path, json=body, **kwargs)

    def put(self, path: str, body: Any, **kwargs: Any) -> Any:
        return self._checked('PUT', path, json=body, **kwargs)

    def patch(self, path: str, body: Any, **kwargs: Any) -> Any:
        return self._checked('PATCH', path, json=body, **kwargs)

    def delete(self, path: str, **kwargs: Any) -> Any:
        return self._checked('DELETE', path, **kwargs)

    def _checked(self, method: str, path: str, **kwargs: Any) -> Any:
        response = self.request(method, path, **kwargs)
        if response.status_code >= 400:
            raise client.OpenStackApiException(
                f'{method} {path}: {response.status_code} {response.text}',
                response,
            )
        return response.json() if response.content else None
