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

"""nova_accel on the control plane, step by step as the guide says."""

from lab import configuration
from lab import keystone
from lab import mariadb
from lab import nova
from lab import processes
from lab import settings
from lab import wsgi


def make_database() -> None:
    """The guide's section *The database*."""
    processes.run(
        ['bash', '-e', '-s'],
        stdin=(
            'mysql() { mariadb --no-defaults --user=root '
            f'--socket={mariadb.SOCKET} "$@"; }}\n'
            + configuration.guide('database.sh')
        ),
    )


def upgrade_database() -> None:
    """Its tables, made or as the package needs them now."""
    commands = configuration.guide('tables.sh').replace(
        'nova-accel-manage',
        f'nova-accel-manage --config-file {nova.api_file()}',
    )
    processes.run(['bash', '-e', '-s'], stdin=commands)


def make_endpoints() -> None:
    """The guide's section *Keystone*."""
    processes.run(
        ['bash', '-e', '-s'],
        keystone.credentials(),
        stdin=configuration.guide('endpoints.sh'),
    )


def start_pool() -> None:
    """The API in processes of its own, for Nova's services."""
    path = configuration.write(
        'nova-accel-api-uwsgi.ini',
        configuration.installed('nova-accel-api-uwsgi.ini'),
    )
    (settings.STATE / 'sockets').mkdir(mode=0o700, exist_ok=True)
    wsgi.start_file(
        'nova-accel-api',
        path,
        OS_NOVA_CONFIG_DIR=nova.api_file().parent,
    )


def wait() -> None:
    wsgi.wait('nova-accel-api', settings.PORTS.accelerator)
