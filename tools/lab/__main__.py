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

"""``lab``: a real OpenStack on this machine, and real devices."""

import argparse
import os
import sys

from lab import command_line
from lab import control_plane
from lab import keystone
from lab import processes
from lab import settings
from lab.checks import runner


def main() -> int:
    arguments = command_line.parse()
    try:
        return _COMMANDS[arguments.command](arguments)
    except processes.LabError as error:
        print(f'lab: {error}', file=sys.stderr)
        return 1


def _up(_arguments: argparse.Namespace) -> int:
    control_plane.up()
    return 0


def _down(_arguments: argparse.Namespace) -> int:
    control_plane.down()
    return 0


def _wipe(_arguments: argparse.Namespace) -> int:
    control_plane.wipe()
    return 0


def _status(_arguments: argparse.Namespace) -> int:
    names = processes.running()
    for name in names:
        process = processes.process(name)
        family = [process, *process.children(recursive=True)]
        memory = sum(member.memory_info().rss for member in family)
        print(
            f'{name:24} pid {process.pid:<8} {memory >> 20:5} MiB in '
            f'{len(family)} processes'
        )
    if not names:
        print('nothing runs')
    return 0 if names else 1


def _env(_arguments: argparse.Namespace) -> int:
    print(f'export PATH={settings.BIN}:$PATH')
    for name, value in keystone.credentials().items():
        print(f'export {name}={value}')
    return 0


def _check(arguments: argparse.Namespace) -> int:
    if arguments.command not in runner.WITHOUT_CLOUD:
        control_plane.up()
        os.environ.update(keystone.credentials())
    return runner.run(
        arguments.command,
        arguments.regex,
        quick=arguments.quick,
        results=arguments.results,
    )


_COMMANDS = {
    'up': _up,
    'down': _down,
    'wipe': _wipe,
    'status': _status,
    'env': _env,
    **dict.fromkeys(command_line.SUITES, _check),
}


if __name__ == '__main__':
    sys.exit(main())
