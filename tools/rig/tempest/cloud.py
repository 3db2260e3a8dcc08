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

"""The cloud for the API tests of cyborg-tempest-plugin."""

from collections.abc import Sequence
import pathlib
import secrets
from typing import Any

import fixtures
from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1.identity import v3
import yaml

from nova_accel.client import accelerator_api
from nova_accel.testing import reports
from rig.serving import api as served_api
from rig.serving import nova_conf
from rig.serving import wsgi_server
from rig.stubs import keystone as keystone_stub

_PROJECT = keystone_stub.Project('a' * 32, 'tempest')
_SERVICE = keystone_stub.Project('b' * 32, 'service')

#: Name -> the persona's own role, and the roles that it implies. There are two
#: administrators, because a test class takes each user only once. It takes
#: one as ``admin`` and one as ``project_admin``.
_PERSONAS = {
    'admin': ('admin', 'manager', 'member', 'reader'),
    'project-admin': ('admin', 'manager', 'member', 'reader'),
    'manager': ('manager', 'member', 'reader'),
    'member': ('member', 'reader'),
    'reader': ('reader',),
}


class TempestCloud(fixtures.Fixture):
    """Keystone's stub, the API in uWSGI and a host that has reported to it.

    :param new_defaults: whether policies have new defaults and scopes, in
        ``[oslo_policy]`` and for Tempest
    :param directory: for ``tempest.conf``, and the files that it names
    :ivar tempest_conf: the path of that file
    """

    def __init__(self, directory: pathlib.Path, new_defaults: bool) -> None:
        super().__init__()
        self._directory = directory
        self._new_defaults = str(new_defaults)

    def _setUp(self) -> None:
        server = self.useFixture(wsgi_server.WsgiServer())
        self._nova = _user(0, 'nova', _SERVICE, 'service')
        self._users = [
            _user(number, name, _PROJECT, *roles)
            for number, (name, roles) in enumerate(_PERSONAS.items(), 1)
        ]
        self._system_admin = keystone_stub.User(
            'f' * 32,
            'system-admin',
            secrets.token_urlsafe(),
            _PROJECT,
            (),
            system_roles=('admin', 'member', 'reader'),
        )
        keystone = keystone_stub.Keystone(
            f'{server.url}/identity',
            [self._nova, *self._users, self._system_admin],
        )
        self._auth_url = server.mount('/identity', keystone)
        api = self.useFixture(
            served_api.ServedApi(
                sections={
                    **nova_conf.token_validation(self._auth_url, self._nova),
                    'oslo_policy': {
                        'enforce_new_defaults': self._new_defaults,
                        'enforce_scope': self._new_defaults,
                        'policy_file': self._write_policy(),
                    },
                }
            )
        )
        keystone.register('accelerator', 'nova-accel', f'{api.url}/v2')
        self._report()
        self._write_accounts()
        self._write_conf()

    def _write_policy(self) -> str:
        """Let a project's managers see devices, as in Cyborg.

        :returns: the path of the file
        """
        path = self._directory / 'policy.yaml'
        path.write_text(
            yaml.safe_dump(
                {
                    f'nova_accel:{resource}:{action}': (
                        'role:admin or role:manager'
                    )
                    for resource in ('device', 'deployable', 'attribute')
                    for action in ('list', 'show')
                }
            )
        )
        return str(path)

    def _report(self) -> None:
        """Report devices like a host's nova-compute, with its own token."""
        host = reports.SimulatedHost(functions=1)
        login = v3.Password(
            f'{self._auth_url}/v3',
            username=self._nova.name,
            password=self._nova.password,
            user_domain_name='Default',
            project_name=_SERVICE.name,
            project_domain_name='Default',
        )
        client = accelerator_api.AcceleratorApi(
            adapter.Adapter(
                session.Session(login),
                raise_exc=False,
                service_type='accelerator',
            ),
            host.hostname,
        )
        client.report(
            host.node_uuid, host.service_host, 'digest', host.reported()
        )

    def _write_accounts(self) -> None:
        accounts = [
            _account(user, user.roles, project_name=user.project.name)
            for user in (self._nova, *self._users)
        ]
        accounts.append(
            _account(
                self._system_admin,
                self._system_admin.system_roles,
                system='all',
            )
        )
        self._accounts = self._directory / 'accounts.yaml'
        self._accounts.touch(mode=0o600)
        self._accounts.write_text(yaml.safe_dump(accounts))

    def _write_conf(self) -> None:
        self.tempest_conf = self._directory / 'tempest.conf'
        absent = ('cinder', 'glance', 'horizon', 'neutron', 'nova', 'swift')
        nova_conf.write(
            self.tempest_conf,
            {
                'DEFAULT': {'log_file': str(self._directory / 'tempest.log')},
                'auth': {
                    'use_dynamic_credentials': 'False',
                    'test_accounts_file': str(self._accounts),
                },
                'identity': {
                    'auth_version': 'v3',
                    'uri_v3': f'{self._auth_url}/v3',
                    'region': keystone_stub.REGION,
                },
                'oslo_concurrency': {
                    'lock_path': str(self._directory / 'locks')
                },
                'service_available': {
                    'cyborg': 'True',
                    **dict.fromkeys(absent, 'False'),
                },
                'cyborg_policy': {'enforce_new_defaults': self._new_defaults},
            },
        )


def _user(
    number: int, name: str, project: keystone_stub.Project, *roles: str
) -> keystone_stub.User:
    return keystone_stub.User(
        f'{number:032x}', name, secrets.token_urlsafe(), project, roles
    )


def _account(
    user: keystone_stub.User, roles: Sequence[str], **scope: str
) -> dict[str, Any]:
    """A user as ``accounts.yaml`` has it.

    It has its own role only. Otherwise a test that asks for a member might
    get the manager.
    """
    return {
        'username': user.name,
        'password': user.password,
        'user_domain_name': 'Default',
        'roles': [roles[0]],
        **scope,
    }
