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

"""Nova's control plane."""

import pathlib

from lab import configuration
from lab import processes
from lab import settings
from lab import wsgi

_SCHEDULER = 'nova-scheduler/nova.conf'

_CONDUCTOR = 'nova-conductor/nova.conf'


def api_file() -> pathlib.Path:
    """The configuration of nova-api, which is that of our API too."""
    return settings.STATE / 'etc/nova-api/nova.conf'


def configure() -> None:
    common = configuration.template('nova.conf')
    databases = configuration.template('nova-databases.conf')
    ours = configuration.guide('nova-database.conf')
    authtoken = configuration.template('authtoken.conf')
    configuration.write(
        'nova-api/nova.conf', common, databases, authtoken, ours
    )
    configuration.write(
        _SCHEDULER,
        common,
        databases,
        ours,
        configuration.guide('nova-scheduler.conf'),
        configuration.guide('nova-scheduler-compat.conf'),
    )
    configuration.write(_CONDUCTOR, common, databases)


def make() -> None:
    """Make its tables and its cells."""
    manage = [settings.BIN / 'nova-manage', '--config-file', api_file()]
    cell0 = (
        f'mysql+pymysql://lab:{settings.PASSWORD}@127.0.0.1:'
        f'{settings.PORTS.mariadb}/nova_cell0?charset=utf8'
    )
    processes.run([*manage, 'api_db', 'sync'])
    processes.run(
        [*manage, 'cell_v2', 'map_cell0', '--database_connection', cell0]
    )
    processes.run([*manage, 'db', 'sync'])
    if 'cell1' not in processes.run([*manage, 'cell_v2', 'list_cells']):
        processes.run([*manage, 'cell_v2', 'create_cell', '--name', 'cell1'])


def start_api() -> None:
    """nova-api with one worker and one thread: whoever waits, waits."""
    path = configuration.write(
        'nova-api.ini', configuration.guide('nova-api.ini')
    )
    wsgi.start_file(
        'nova-api',
        path,
        f'--http-socket=127.0.0.1:{settings.PORTS.nova_api}',
        '--processes=1',
        '--threads=1',
        '--master',
        OS_NOVA_CONFIG_DIR=api_file().parent,
    )


def wait_api() -> None:
    wsgi.wait('nova-api', settings.PORTS.nova_api)


def start_services() -> None:
    for name, file in (
        ('nova-conductor', _CONDUCTOR),
        ('nova-scheduler', _SCHEDULER),
    ):
        processes.start(
            name,
            [
                settings.BIN / name,
                '--config-file',
                settings.STATE / 'etc' / file,
            ],
        )
