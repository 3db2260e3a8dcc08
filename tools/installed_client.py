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
"""Checks the environment that runs it: it has the client, and little else.

Each of our commands tells its help, and ``openstack`` finds one of ours and
one of its own. The programs of Nova's hosts say what they lack.
"""

import contextlib
from importlib import metadata
import io
import pathlib
import subprocess
import sys

#: The most distributions that the client may bring, with its own.
_MOST = 69

#: What only services need.
_OF_SERVICES = {'nova', 'oslo-db', 'oslo-messaging', 'sqlalchemy'}

_OPENSTACK = (
    'accelerator device profile list',
    'accelerator fleet list',
)


def _check_size() -> None:
    names = {
        each.metadata['Name'].lower().replace('.', '-')
        for each in metadata.distributions()
    }
    if len(names) > _MOST:
        raise SystemExit(
            f'the client brings {len(names)} distributions, and the most is '
            f'{_MOST}: {", ".join(sorted(names))}'
        )
    if names & _OF_SERVICES:
        raise SystemExit(f'the client brings {names & _OF_SERVICES}')


def _check_commands() -> None:
    points = metadata.distribution('nova-accel').entry_points.select(
        group='openstack.accelerator.v2'
    )
    if not points:
        raise SystemExit('the client has no command')
    for point in points:
        parser = point.load()(None, None).get_parser(point.name)
        with contextlib.redirect_stdout(io.StringIO()):
            parser.print_help()


def _run(*command: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _check_openstack() -> None:
    for words in _OPENSTACK:
        done = _run(
            *(sys.executable, '-m', 'openstackclient.shell'),
            *words.split(),
            '--help',
        )
        if done.returncode or f'{words} [-h]' not in done.stdout:
            raise SystemExit(f'{words}: {done.stdout}')


def _check_programs_of_hosts() -> None:
    for name in ('nova-accel-manage', 'nova-accel-status'):
        done = _run(pathlib.Path(sys.executable).with_name(name), '--help')
        if done.returncode != 1 or 'nova-accel[services]' not in done.stdout:
            raise SystemExit(f'{name}: {done.stdout}')


if __name__ == '__main__':
    _check_size()
    _check_commands()
    _check_openstack()
    _check_programs_of_hosts()
