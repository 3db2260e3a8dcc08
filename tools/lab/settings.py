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

"""Where the lab keeps its state, and which ports it listens on."""

import os
import pathlib
import socket
from typing import NamedTuple

#: The top of the checkout.
CHECKOUT = pathlib.Path(__file__).resolve().parents[2]

#: Unix sockets live below the state directory, and the kernel takes 107
#: characters for the path of one.
_LONGEST = 60


def _state() -> pathlib.Path:
    state = pathlib.Path(os.environ.get('NOVA_ACCEL_LAB') or CHECKOUT / '.lab')
    if not state.is_absolute() or len(str(state)) > _LONGEST:
        raise SystemExit(
            f'lab: {state}: set NOVA_ACCEL_LAB to an absolute path of '
            f'{_LONGEST} characters at most'
        )
    return state


#: All that the lab writes is below it; deleting it starts over.
STATE = _state()

LOGS = STATE / 'log'

#: The virtual environment that all services run from.
VENV = pathlib.Path(os.environ['VIRTUAL_ENV'])

BIN = VENV / 'bin'

#: The password of every user that the lab makes.
PASSWORD = 'lab-secret'

REGION = 'RegionOne'


class Ports(NamedTuple):
    """The ports of the control plane, one after the other on 127.0.0.1."""

    rabbitmq: int
    keystone: int
    placement: int
    glance: int
    nova_api: int
    network: int
    #: The accelerator API's pool of its own.
    accelerator: int
    mariadb: int
    epmd: int
    rabbitmq_distribution: int

    @classmethod
    def starting_at(cls, first: int) -> 'Ports':
        return cls(*range(first, first + len(cls._fields)))

    @property
    def services(self) -> tuple[int, ...]:
        """What a compute host has to reach."""
        return self[: self.index(self.mariadb)]


def in_use(port: int) -> str:
    """Why nothing of ours can listen on a port, empty if it can."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(('127.0.0.1', port))
        except OSError as error:
            return error.strerror or str(error)
    return ''


def _ports() -> Ports:
    """Those of the last time, or a block that no one uses."""
    if PORT_FILE.exists():
        return Ports.starting_at(int(PORT_FILE.read_text()))
    for first in range(24000, 30000, len(Ports._fields)):
        ports = Ports.starting_at(first)
        if not any(map(in_use, ports)):
            return ports
    raise SystemExit('lab: no free ports from 24000 to 30000')


#: The first of the ports, written when they are taken.
PORT_FILE = STATE / 'port'

PORTS = _ports()
