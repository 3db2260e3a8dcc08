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

"""The ``nova.conf`` of a cloud on one machine, as its operator writes it."""

from collections.abc import Iterable
from collections.abc import Mapping
import pathlib
import shutil
import sys

from keystoneauth1 import loading as ks_loading
from oslo_config import cfg

import nova_accel
from nova_accel import exceptions
from rig.stubs import keystone

CONF = cfg.CONF

#: What nova-scheduler loads of ours.
FILTER = 'nova_accel.scheduler.candidate_filter.AcceleratorFilter'
WEIGHER = 'nova_accel.scheduler.weigher.AcceleratorWeigher'

Sections = Mapping[str, Mapping[str, str | Iterable[str]]]


def api_paste_path() -> pathlib.Path:
    """Our ``api-paste.ini``.

    :raises ConfigurationError: as :func:`_installed`
    """
    return _installed('api-paste.ini')


def pool(settings: Mapping[str, str]) -> str:
    """Our uWSGI file, with other values for some of its settings.

    :raises ConfigurationError: as :func:`_installed`
    :raises KeyError: it does not have one of them
    """
    left = dict(settings)
    lines = []
    for line in _installed('nova-accel-api-uwsgi.ini').read_text().split('\n'):
        name = line.partition('=')[0].strip()
        lines.append(f'{name} = {left.pop(name)}' if name in left else line)
    if left:
        raise KeyError(', '.join(left))
    return '\n'.join(lines)


def _installed(name: str) -> pathlib.Path:
    """A file of ``etc``, from the checkout or where pip has put it.

    :raises ConfigurationError: names the places that do not have it.
    """
    places = [
        root / 'etc/nova_accel' / name
        for root in (
            pathlib.Path(nova_accel.__file__).parents[1],
            pathlib.Path(sys.prefix),
        )
    ]
    for place in places:
        if place.is_file():
            return place
    raise exceptions.ConfigurationError(
        f'{name} is in none of {", ".join(map(str, places))}'
    )


def credentials(auth_url: str, user: keystone.User) -> dict[str, str]:
    """The options with which a section logs in as the user."""
    return {
        'auth_type': 'password',
        'auth_url': auth_url,
        'username': user.name,
        'password': user.password,
        'user_domain_name': 'Default',
        'project_domain_name': 'Default',
        'project_name': user.project.name,
    }


def token_validation(auth_url: str, service_user: keystone.User) -> Sections:
    """The sections with which an API has tokens validated."""
    return {
        'keystone_authtoken': {
            **credentials(auth_url, service_user),
            'www_authenticate_uri': auth_url,
            'service_token_roles': 'service',
            'service_token_roles_required': 'true',
        }
    }


def unified_limits(
    auth_url: str, service_user: keystone.User, endpoint_id: str
) -> Sections:
    """The sections with which Keystone's limits count.

    What has no registered limit is not limited.

    :param service_user: reads the system as a whole
    :param endpoint_id: of nova-api, in Keystone
    """
    login = credentials(auth_url, service_user)
    del login['project_name'], login['project_domain_name']
    return {
        'quota': {
            'driver': 'nova.quota.UnifiedLimitsDriver',
            'unified_limits_resource_list': '',
        },
        'oslo_limit': {
            **login,
            'system_scope': 'all',
            'endpoint_id': endpoint_id,
        },
    }


def sections(
    auth_url: str,
    service_user: keystone.User,
    state_path: str,
    filters: Iterable[str],
) -> Sections:
    """The sections that an operator adds to Nova's configuration.

    :param filters: the filters that are enabled already
    """
    login = credentials(auth_url, service_user)
    return {
        'DEFAULT': {
            'compute_driver': 'nova_accel.LibvirtDriver',
            'state_path': state_path,
        },
        'wsgi': {'api_paste_config': str(api_paste_path())},
        **token_validation(auth_url, service_user),
        'service_user': {**login, 'send_service_user_token': 'true'},
        'nova_accel_client': login,
        'filter_scheduler': {
            'weight_classes': f'nova.scheduler.weights.all_weighers,{WEIGHER}',
            'available_filters': [
                'nova.scheduler.filters.all_filters',
                FILTER,
            ],
            'enabled_filters': ','.join([*filters, 'AcceleratorFilter']),
        },
    }


def forget_credentials() -> None:
    """Unregister the options of the password plugin.

    Some are required once they are registered, and then nothing could parse
    a configuration without them.
    """
    for group in (
        'keystone_authtoken',
        'service_user',
        'nova_accel_client',
        'oslo_limit',
    ):
        if group in CONF:
            CONF.unregister_opts(
                ks_loading.get_auth_plugin_conf_options('password'), group
            )


def write(path: pathlib.Path, content: Sections) -> None:
    """Write the file; a list is an option that is given several times."""
    lines = []
    for section, options in content.items():
        lines.append(f'[{section}]')
        for name, value in options.items():
            values = [value] if isinstance(value, str) else value
            lines.extend(f'{name} = {one}' for one in values)
        lines.append('')
    path.write_text('\n'.join(lines))


def write_api(directory: pathlib.Path, connection: str) -> None:
    """Write the files that ``nova_accel.api.wsgi`` reads, without Keystone.

    :param connection: the URL of the database
    """
    shutil.copy(api_paste_path(), directory / 'api-paste.ini')
    write(
        directory / 'nova.conf',
        {
            'DEFAULT': {'state_path': str(directory)},
            'keystone_authtoken': {
                'www_authenticate_uri': 'http://identity.invalid'
            },
            'nova_accel_database': {'connection': connection},
        },
    )
