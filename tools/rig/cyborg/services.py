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

"""The released Cyborg, with one host of accelerators.

It is in a virtual environment of its own. ``tools/bench`` makes that, and
names it in ``NOVA_ACCEL_CYBORG_VENV``.
"""

import functools
import os
import pathlib
import secrets
import shutil

import fixtures
import sqlalchemy as sa

from nova_accel import exceptions
from rig.cyborg import neighbours
from rig.cyborg import programs
from rig.serving import nova_conf
from rig.serving import process
from rig.serving import usage
from rig.serving import uwsgi

HOSTNAME = 'benchmark'

#: The number of handles that Cyborg's driver "fake" has on a host.
HANDLES = 16

#: The group of a device profile that asks for one of the handles.
GROUP = {'resources:FPGA': '1', 'trait:CUSTOM_FAKE_DEVICE': 'required'}


def without_tokens(paste: str) -> str:
    """Cyborg's ``api-paste.ini`` without ``authtoken``.

    Its API then believes every caller's ``X-Roles``, ``X-Project-Id``,
    ``X-User-Id`` and ``X-Service-Roles``.
    """
    return paste.replace(' authtoken api_v2', ' api_v2')


class Cyborg(process.StartedFixture):
    """cyborg-api in uWSGI, cyborg-conductor, cyborg-agent and RabbitMQ.

    The agent's driver is Cyborg's "fake". The agent is stopped as soon as the
    devices are reported. ARQs without a bitstream are bound without it, and
    its report of each minute would be measured, too.

    :param database_url: of a database of MySQL without tables
    :param processes: of the API
    :ivar port: of the API, on 127.0.0.1
    :ivar rp_uuid: the provider of the devices
    :raises ConfigurationError: a program is not installed or does not start;
        the text has its output
    """

    def __init__(self, database_url: str, processes: int) -> None:
        super().__init__()
        self._url = database_url
        self._processes = processes
        self._prefix = programs.prefix()

    def start(self) -> None:
        self._configure()
        self._make_tables()
        self._start()

    def _setUp(self) -> None:
        self._directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path
        )
        self._conf = self._directory / 'cyborg.conf'
        self._neighbours = self.useFixture(neighbours.Neighbours())

    def usage(self) -> usage.Usage:
        """What the processes use; the agent's is that before its end."""
        return usage.total(
            [self._of_agent, self._conductor.usage(), self._api.usage()]
        )

    def _configure(self) -> None:
        paste = self._directory / 'api-paste.ini'
        paste.write_text(
            without_tokens(
                (self._prefix / 'etc/cyborg/api-paste.ini').read_text()
            )
        )
        login = nova_conf.credentials(
            self._neighbours.auth_url, self._neighbours.user
        )
        nova_conf.write(
            self._conf,
            {
                'DEFAULT': {
                    'host': HOSTNAME,
                    'state_path': str(self._directory),
                    'transport_url': self._message_bus(),
                },
                'agent': {
                    'enabled_drivers': 'fake_driver',
                    'resource_provider_name': HOSTNAME,
                },
                'api': {'api_paste_config': str(paste)},
                'database': {'connection': self._url},
                'nova': login,
                'oslo_concurrency': {'lock_path': str(self._directory)},
                'placement': login,
            },
        )

    def _message_bus(self) -> str:
        """A virtual host in this machine's RabbitMQ, for its user "guest"."""
        name = f'nova_accel_{secrets.token_hex(8)}'
        _rabbitmqctl('add_vhost', name)
        self.addCleanup(_rabbitmqctl, 'delete_vhost', name)
        _rabbitmqctl('set_permissions', '-p', name, 'guest', '.*', '.*', '.*')
        return f'rabbit://guest:guest@127.0.0.1:5672/{name}'

    def _make_tables(self) -> None:
        process.run(
            self._prefix / 'bin/cyborg-dbsync',
            '--config-file',
            self._conf,
            'upgrade',
        )

    def _start(self) -> None:
        self._conductor = self._service('conductor')
        # The threads that receive the conductor's answers do not survive a
        # fork.
        self._api = self.useFixture(
            uwsgi.Module(
                self._prefix,
                'cyborg.wsgi.api',
                self._processes,
                self._directory / 'api.log',
                {},
                options=(
                    '--enable-threads',
                    '--lazy-apps',
                    f'--pyargv=--config-file {self._conf}',
                ),
            )
        )
        self.port = self._api.port
        self._api.wait('/v2')
        self._neighbours.make_provider(HOSTNAME)
        agent = self._service('agent')
        agent.wait_for(self._is_reported)
        self._of_agent = agent.usage()
        agent.stop()

    def _service(self, name: str) -> process.Process:
        return self.useFixture(
            process.Process(
                [
                    self._prefix / f'bin/cyborg-{name}',
                    '--config-file',
                    self._conf,
                ],
                self._directory / f'{name}.log',
            )
        )

    def _is_reported(self) -> bool:
        with self._engine.connect() as connection:
            self.rp_uuid = connection.scalar(
                sa.text('SELECT rp_uuid FROM deployables')
            )
        return self.rp_uuid is not None

    @functools.cached_property
    def _engine(self) -> sa.Engine:
        return sa.create_engine(self._url, poolclass=sa.NullPool)


def _rabbitmqctl(*arguments: str) -> None:
    program = shutil.which(
        'rabbitmqctl', path=f'{os.environ["PATH"]}:/usr/sbin'
    )
    if program is None:
        raise exceptions.ConfigurationError(
            'Cyborg needs a RabbitMQ, and there is no rabbitmqctl'
        )
    process.run(program, '--quiet', *arguments)
