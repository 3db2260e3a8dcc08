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

"""The accelerator API in this process, for tests of the compute plane."""

from collections.abc import Iterable
from typing import Any

import fixtures
from keystoneauth1 import adapter
from keystoneauth1 import noauth
from keystoneauth1 import session
import requests
from requests import adapters
from wsgi_intercept import interceptor

from nova_accel import conf
from nova_accel.api import app
from nova_accel.api.middleware import context
from nova_accel.client import accelerator_api
from nova_accel.testing import database

CONF = conf.CONF

_URL = 'http://accelerator.test'


class _Line(adapters.HTTPAdapter):
    """The network between a host and the API."""

    def __init__(self, api: 'AcceleratorApi') -> None:
        super().__init__()
        self._api = api

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        if self._api.refuse:
            raise requests.ConnectionError('refused')
        answer = super().send(*args, **kwargs)
        if self._api.lose_answers:
            raise requests.ConnectionError('the answer was lost')
        return answer


class AcceleratorApi(fixtures.Fixture):
    """The real API over a real database, and an adapter to it.

    :param roles: of the caller; by default it is a compute host
    :ivar adapter: of a caller that has logged in
    :ivar lose_answers: while it is true, requests are served but their
        answers are lost on the way
    :ivar refuse: while it is true, no request arrives
    """

    def __init__(self, roles: Iterable[str] = ('service',)) -> None:
        super().__init__()
        self._roles = ','.join(roles)

    def _setUp(self) -> None:
        CONF(
            [], project='nova', default_config_files=[], default_config_dirs=[]
        )
        self.addCleanup(CONF.reset)
        self.useFixture(database.Database())
        self.lose_answers = False
        self.refuse = False
        self._app = context.Context(app.factory({}))
        intercept = interceptor.RequestsInterceptor(
            lambda: self._serve, url=_URL
        )
        intercept.install_intercept()
        self.addCleanup(intercept.uninstall_intercept)
        line = requests.Session()
        line.mount(_URL, _Line(self))
        self.adapter = adapter.Adapter(
            session.Session(auth=noauth.NoAuth(), session=line),
            service_type='accelerator',
            endpoint_override=_URL,
            raise_exc=False,
        )

    def client(self, hostname: str) -> accelerator_api.AcceleratorApi:
        """The client of a host's nova-compute."""
        return accelerator_api.AcceleratorApi(self.adapter, hostname)

    def _serve(
        self, environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        environ.update(
            HTTP_X_USER_ID='nova',
            HTTP_X_PROJECT_ID='service',
            HTTP_X_ROLES=self._roles,
        )
        return self._app(environ, start_response)
