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

"""A MariaDB of the lab's own."""

import os
import shutil

from lab import processes
from lab import settings

_DIRECTORY = settings.STATE / 'mariadb'

SOCKET = settings.STATE / 'mariadb.sock'

_DATABASES = (
    'keystone',
    'placement',
    'glance',
    'nova_api',
    'nova_cell0',
    'nova_cell1',
)

_CLIENT = ('--no-defaults', f'--socket={SOCKET}', '--user=root')


def start() -> None:
    if not (_DIRECTORY / 'mysql').is_dir():
        shutil.rmtree(_DIRECTORY, ignore_errors=True)
        processes.run(
            [
                'mariadb-install-db',
                '--no-defaults',
                '--user=root',
                f'--datadir={_DIRECTORY}',
                '--skip-test-db',
                '--auth-root-authentication-method=socket',
            ]
        )
    # Nothing in it need outlive a crash of the machine.
    processes.start(
        'mariadb',
        [
            'mariadbd',
            '--no-defaults',
            '--user=root',
            f'--datadir={_DIRECTORY}',
            f'--socket={SOCKET}',
            f'--pid-file={_DIRECTORY}/pid',
            f'--port={settings.PORTS.mariadb}',
            '--bind-address=127.0.0.1',
            '--max-connections=500',
            '--innodb-flush-log-at-trx-commit=0',
            '--skip-name-resolve',
        ],
        {'PATH': _path()},
    )
    processes.wait_for('mariadb', 60, _answers)
    query(
        f"CREATE USER IF NOT EXISTS lab@'127.0.0.1' "
        f"IDENTIFIED BY '{settings.PASSWORD}'; "
        "GRANT ALL ON *.* TO lab@'127.0.0.1';"
        + ''.join(
            f'CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb3;'
            for name in _DATABASES
        )
    )


def query(statement: str, database: str = '') -> str:
    """:returns: the rows, tabs between columns"""
    return processes.run(
        [
            'mariadb',
            *_CLIENT,
            '--batch',
            '--skip-column-names',
            database,
            '--execute',
            statement,
        ]
    )


def _answers() -> bool:
    try:
        query('SELECT 1')
    except processes.LabError:
        return False
    return True


def _path() -> str:
    return f'{os.environ["PATH"]}:/usr/sbin:/sbin'
