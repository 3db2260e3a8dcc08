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

"""The command line of ``lab``, which needs nothing but Python.

So ``tools/lab/lab --help`` says what there is before anything is made.
"""

import argparse
import pathlib

_DESCRIPTION = 'A real OpenStack on this machine, and real devices.'

SUITES = {
    'e2e': 'the checks of servers on hosts with made-up devices',
    'devices': 'the checks in a virtual machine with real devices',
    'fpga': 'FPGAs programmed from Glance, there',
    'operations': 'what is done to servers with real devices, there',
    'moves': 'servers that go with them from one such machine to another',
    'topology': "the PCI tree and NUMA nodes in a guest are the host's",
    'manual': "the manual's commands, from its installation to a server",
    'latency': 'how long a boot takes, with and without accelerators',
}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='lab', description=_DESCRIPTION)
    commands = parser.add_subparsers(
        dest='command', required=True, metavar='COMMAND'
    )
    commands.add_parser(
        'up', help='start all that does not run; made at the first time'
    )
    commands.add_parser('status', help='what runs, and what it takes')
    commands.add_parser('down', help='end all; what is stored stays')
    commands.add_parser('wipe', help='end all and forget what is stored')
    commands.add_parser(
        'env', help='the environment of a client, for a shell to source'
    )
    for suite, text in SUITES.items():
        command = commands.add_parser(suite, help=text)
        command.add_argument(
            'regex',
            nargs='?',
            default='',
            help='run only those whose names match',
        )
        command.add_argument(
            '--quick',
            action='store_true',
            help='leave the long ones out, and say which',
        )
        command.add_argument(
            '--results',
            type=pathlib.Path,
            help=(
                'append a line to this file for each check: its exit status '
                'and its name'
            ),
        )
    return parser.parse_args()


if __name__ == '__main__':
    parse()
