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

"""Nova's API and the accelerator API behind a Keystone, on loopback.

It is a mixin of test cases that start Nova's services. Its nova.conf is like
an operator's.
"""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

import pathlib
import secrets
from typing import Any

import fixtures
from nova.tests import fixtures as nova_fixtures
from oslo_config import cfg
import yaml

from nova_accel.testing import database
from rig.loopback import checked_schemas
from rig.loopback import clients
from rig.loopback import kept_connections
from rig.loopback import made_once
from rig.loopback import quiet_libraries
from rig.loopback import shared_statements
from rig.loopback import woken_workers
from rig.serving import nova_conf
from rig.serving import wsgi_server
from rig.stubs import keystone as keystone_stub

CONF = cfg.CONF

DEMO_PROJECT = keystone_stub.Project(nova_fixtures.PROJECT_ID, 'demo')
SERVICE_PROJECT = keystone_stub.Project(
    '2f4d7a6c5b1e4f0c8f3b8e7d6a9c0b1d', 'service'
)


def _user(
    number: int,
    name: str,
    project: keystone_stub.Project,
    *roles: str,
    system_roles: tuple[str, ...] = (),
) -> keystone_stub.User:
    return keystone_stub.User(
        f'{number:032x}',
        name,
        secrets.token_urlsafe(),
        project,
        roles,
        system_roles,
    )


class ControlPlane:
    """A mixin that comes before a test case of Nova's in the bases.

    :cvar PORT: the port of all services; 0 takes a free port
    :cvar DATABASE: the accelerator API's kind of database
    :cvar HAS_LIMITS: whether Keystone's limits count
    :cvar CLIENT_MICROVERSION: the one of that API in ``clouds.yaml``; None for
        the client's own, 2.0
    :ivar url: of nova-api; ``url/identity`` is Keystone
    :ivar state_path: Nova's directory, with ``nova.conf``
    :ivar sections: the sections of ``nova.conf``
    :ivar api: Nova's test client as the user demo, ``admin_api`` as admin
    :ivar accelerator: the accelerator API as admin, ``demo_accelerator`` as
        demo
    """

    PORT = 0
    DATABASE = 'sqlite'
    HAS_LIMITS = False
    CLIENT_MICROVERSION: str | None = '2.3'
    microversion = 'latest'

    # The test case that it is mixed into has these.
    ADMIN_API: bool
    addCleanup: Any
    useFixture: Any
    api_fixture: Any

    def setUp(self) -> None:
        # This is the last cleanup, after Nova's fixture has reset the options.
        self.addCleanup(nova_conf.forget_credentials)
        self.state_path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path
        )
        self.useFixture(kept_connections.KeptConnections())
        self.useFixture(shared_statements.SharedStatements())
        self.useFixture(woken_workers.WokenWorkers())
        self.useFixture(checked_schemas.CheckedSchemas())
        self.useFixture(made_once.MadeOnce())
        super().setUp()  # type: ignore[misc]

    def _listen(self) -> None:
        """Listen on an address, with Keystone and the API's database."""
        self.useFixture(quiet_libraries.QuietLibraries())
        self.server = self.useFixture(wsgi_server.WsgiServer(self.PORT))
        self.url = self.server.url
        self._setup_identity()
        self.useFixture(database.Database(self.DATABASE))

    def _setup_identity(self) -> None:
        self.demo = _user(1, 'demo', DEMO_PROJECT, 'member', 'reader')
        self.admin = _user(
            2, 'admin', DEMO_PROJECT, 'admin', 'member', 'reader'
        )
        self.nova = _user(
            3, 'nova', SERVICE_PROJECT, 'service', system_roles=('reader',)
        )
        self.keystone = keystone_stub.Keystone(
            f'{self.url}/identity', (self.demo, self.admin, self.nova)
        )
        self.auth_url = self.server.mount('/identity', self.keystone)
        self.keystone.register('compute', 'nova', f'{self.url}/v2.1')
        # The URL has the version: nova-conductor and nova-compute discover
        # none.
        self.keystone.register(
            'accelerator', 'nova-accel', f'{self.url}/accelerator/v2'
        )

    def _setup_configuration(self) -> None:
        self.nova_conf = self.state_path / 'nova.conf'
        self.sections = nova_conf.sections(
            self.auth_url,
            self.nova,
            str(self.state_path),
            CONF.filter_scheduler.enabled_filters,
        )
        if self.HAS_LIMITS:
            limits = nova_conf.unified_limits(
                self.auth_url, self.nova, 'nova-public'
            )
            self.sections = {**self.sections, **limits}
            # oslo.limit keeps its connection, which may be another cloud's.
            self.useFixture(
                fixtures.MonkeyPatch('oslo_limit.limit._SDK_CONNECTION', None)
            )
        nova_conf.write(self.nova_conf, self.sections)
        # This keeps the overrides and defaults that Nova's fixtures have set.
        CONF(
            [],
            project='nova',
            default_config_files=[str(self.nova_conf)],
            default_config_dirs=[],
        )

    def _setup_clients(self) -> None:
        url = f'{self.url}/v2.1'
        for name, user, roles in (
            ('api', self.demo, None),
            ('alternative_api', self.demo, None),
            ('admin_api', self.admin, None),
            ('alternative_admin_api', self.admin, None),
            ('reader_api', self.demo, ('reader',)),
            ('other_api', self.demo, ('other',)),
        ):
            api = clients.ComputeClient(self.keystone, user, url, roles)
            setattr(self.api_fixture, name, api)
        self.admin_api = self.api_fixture.admin_api
        self.api = self.admin_api if self.ADMIN_API else self.api_fixture.api
        self.api.microversion = self.microversion
        self.admin_api.microversion = self.microversion
        self.accelerator, self.demo_accelerator = (
            clients.AcceleratorClient(
                self.keystone, user, f'{self.url}/accelerator/v2'
            )
            for user in (self.admin, self.demo)
        )

    def write_clouds(self, *users: keystone_stub.User) -> pathlib.Path:
        """Write a ``clouds.yaml`` with a cloud of each user's name."""
        path = self.state_path / 'clouds.yaml'
        path.touch(mode=0o600)
        path.write_text(
            yaml.safe_dump(
                {
                    'clouds': {
                        user.name: self._cloud_entry(user) for user in users
                    }
                },
                sort_keys=False,
            )
        )
        return path

    def _cloud_entry(self, user: keystone_stub.User) -> dict[str, object]:
        version = self.CLIENT_MICROVERSION
        return {
            'region_name': keystone_stub.REGION,
            'identity_api_version': 3,
            **(
                {}
                if version is None
                else {'accelerator_default_microversion': version}
            ),
            'auth': {
                'auth_url': self.auth_url,
                'username': user.name,
                'password': user.password,
                'user_domain_name': 'Default',
                'project_name': user.project.name,
                'project_domain_name': 'Default',
            },
        }
