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

"""Keystone, and what the lab needs in it."""

from collections.abc import Iterator
import contextlib

import openstack

from lab import configuration
from lab import processes
from lab import settings
from lab import wsgi

_URL = f'http://127.0.0.1:{settings.PORTS.keystone}/v3'

_SERVICES = {
    'compute': ('nova', f'{settings.PORTS.nova_api}/v2.1'),
    'image': ('glance', f'{settings.PORTS.glance}'),
    'network': ('neutron', f'{settings.PORTS.network}'),
    'placement': ('placement', f'{settings.PORTS.placement}'),
}


def credentials(user: str = 'admin', project: str = 'admin') -> dict[str, str]:
    """The environment of a client."""
    return {
        'OS_AUTH_URL': _URL,
        'OS_USERNAME': user,
        'OS_PASSWORD': settings.PASSWORD,
        'OS_PROJECT_NAME': project,
        'OS_USER_DOMAIN_ID': 'default',
        'OS_PROJECT_DOMAIN_ID': 'default',
        'OS_IDENTITY_API_VERSION': '3',
        'OS_REGION_NAME': settings.REGION,
        'OS_COMPUTE_API_VERSION': '2.96',
        'OS_PLACEMENT_API_VERSION': '1.39',
    }


@contextlib.contextmanager
def connection() -> Iterator[openstack.connection.Connection]:
    """A connection of the cloud's administrator."""
    found = openstack.connect(
        auth_url=_URL,
        username='admin',
        password=settings.PASSWORD,
        project_name='admin',
        user_domain_id='default',
        project_domain_id='default',
        region_name=settings.REGION,
    )
    try:
        yield found
    finally:
        found.close()


def make() -> None:
    """Make its tables, keys and first user."""
    path = configuration.write(
        'keystone.conf', configuration.template('keystone.conf')
    )
    manage = [settings.BIN / 'keystone-manage', '--config-file', path]
    owner = ['--keystone-user', 'root', '--keystone-group', 'root']
    for key_repository in ('fernet', 'credential'):
        (settings.STATE / 'etc' / key_repository).mkdir(
            mode=0o700, exist_ok=True
        )
    processes.run([*manage, 'db_sync'])
    processes.run([*manage, 'fernet_setup', *owner])
    processes.run([*manage, 'credential_setup', *owner])
    processes.run(
        [
            *manage,
            'bootstrap',
            '--bootstrap-password',
            settings.PASSWORD,
            '--bootstrap-region-id',
            settings.REGION,
            *(
                f'--bootstrap-{interface}-url={_URL}'
                for interface in ('public', 'internal', 'admin')
            ),
        ]
    )


def start() -> None:
    wsgi.start(
        'keystone',
        settings.PORTS.keystone,
        'keystone.wsgi.api',
        OS_KEYSTONE_CONFIG_FILES=settings.STATE / 'etc/keystone.conf',
    )


def wait() -> None:
    wsgi.wait('keystone', settings.PORTS.keystone)


def fill() -> None:
    """The catalogue, and the user of all services. Can be repeated."""
    with connection() as cloud:
        present = {service.type for service in cloud.identity.services()}
        for type_, (name, path) in _SERVICES.items():
            if type_ not in present:
                service = cloud.identity.create_service(type=type_, name=name)
                for interface in ('public', 'internal'):
                    cloud.identity.create_endpoint(
                        service_id=service.id,
                        interface=interface,
                        url=f'http://127.0.0.1:{path}',
                        region_id=settings.REGION,
                    )
        add_user(cloud, 'nova', 'service', ('admin', 'service'))
        # It reads the limits of all projects.
        cloud.identity.assign_system_role_to_user(
            cloud.identity.find_user('nova'),
            cloud.identity.find_role('reader'),
            'all',
        )


def add_user(
    cloud: openstack.connection.Connection,
    name: str,
    project_name: str,
    roles: tuple[str, ...],
) -> None:
    """Make a user, with roles in a project. Can be repeated."""
    identity = cloud.identity
    project = identity.find_project(project_name) or identity.create_project(
        name=project_name, domain_id='default'
    )
    user = identity.find_user(name) or identity.create_user(
        name=name,
        password=settings.PASSWORD,
        domain_id='default',
        default_project_id=project.id,
    )
    for role_name in roles:
        role = identity.find_role(role_name) or identity.create_role(
            name=role_name
        )
        identity.assign_project_role_to_user(project, user, role)
