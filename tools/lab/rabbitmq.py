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

"""A RabbitMQ of the lab's own."""

import contextlib
import os
import secrets
import shutil
import socket

from lab import processes
from lab import settings

_DIRECTORY = settings.STATE / 'rabbitmq'

_SERVER = '/usr/lib/rabbitmq/bin/rabbitmq-server'


def start() -> None:
    """Start it; :func:`wait` waits until it answers."""
    _DIRECTORY.mkdir(parents=True, exist_ok=True)
    cookie = _DIRECTORY / '.erlang.cookie'
    if not cookie.exists():
        cookie.write_text(secrets.token_hex(16))
        cookie.chmod(0o400)
    environment = _environment()
    processes.start(
        'epmd',
        [
            shutil.which('epmd') or 'epmd',
            '-address',
            '127.0.0.1',
            '-port',
            str(settings.PORTS.epmd),
        ],
        environment,
    )
    processes.start('rabbitmq', [_SERVER], environment)


def wait() -> None:
    processes.wait_for('rabbitmq', 90, _listens)


def _listens() -> bool:
    with (
        contextlib.suppress(OSError),
        socket.create_connection(
            ('127.0.0.1', settings.PORTS.rabbitmq), timeout=1
        ),
    ):
        return True
    return False


def _environment() -> dict[str, str]:
    ports = settings.PORTS
    return {
        'HOME': str(_DIRECTORY),
        'LC_ALL': 'C.UTF-8',
        'PATH': f'{os.environ["PATH"]}:/usr/sbin:/sbin',
        'ERL_EPMD_ADDRESS': '127.0.0.1',
        'ERL_EPMD_PORT': str(ports.epmd),
        'RABBITMQ_ADVANCED_CONFIG_FILE': str(_DIRECTORY / 'none.config'),
        'RABBITMQ_CONFIG_FILE': str(_DIRECTORY / 'none'),
        'RABBITMQ_CONFIG_FILES': str(_DIRECTORY / 'conf.d'),
        'RABBITMQ_CONF_ENV_FILE': '/dev/null',
        'RABBITMQ_DIST_PORT': str(ports.rabbitmq_distribution),
        'RABBITMQ_ENABLED_PLUGINS_FILE': str(_DIRECTORY / 'plugins'),
        'RABBITMQ_LOG_BASE': str(settings.LOGS),
        'RABBITMQ_MNESIA_BASE': str(_DIRECTORY / 'mnesia'),
        'RABBITMQ_NODENAME': f'lab{ports.rabbitmq}@localhost',
        'RABBITMQ_NODE_IP_ADDRESS': '127.0.0.1',
        'RABBITMQ_NODE_PORT': str(ports.rabbitmq),
        'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS': (
            '-kernel inet_dist_use_interface {127,0,0,1}'
        ),
    }
