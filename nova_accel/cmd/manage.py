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

"""``nova-accel-manage``: the operator's tool beside the database."""

import argparse
from collections.abc import Sequence
from importlib import metadata
import sys

from cliff import app
from cliff import command
from cliff import commandmanager
from nova import config as nova_config

from nova_accel.db import migration


class DbSync(command.Command):
    """Bring the database to the schema of this release."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'version',
            nargs='?',
            default='head',
            metavar='<version>',
            help='the version to go to, by default the newest',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        migration.sync(parsed_args.version)
        self.app.stdout.write(
            f'The database is at version {migration.version()}\n'
        )


class DbVersion(command.Command):
    """Print the version of the database, nothing if it has no tables."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.app.stdout.write(f'{migration.version() or ""}\n')


class Manage(app.App):
    """The program; it reads Nova's configuration files and runs a command."""

    NAME = 'nova-accel-manage'
    DEFAULT_VERBOSE_LEVEL = 0

    def __init__(self) -> None:
        super().__init__(
            description='Manage the accelerators of Nova.',
            version=metadata.version('nova-accel'),
            # Those of the entry points, see setup.cfg.
            command_manager=commandmanager.CommandManager(
                'nova_accel.manage'
            ),
        )
        for option in ('--config-file', '--config-dir'):
            self.parser.add_argument(
                option,
                action='append',
                default=[],
                metavar='<path>',
                help=(
                    'like that of any Nova service; may be given several times'
                ),
            )

    def initialize_app(self, argv: Sequence[str]) -> None:
        arguments = [self.NAME]
        for path in self.options.config_file:
            arguments += ['--config-file', path]
        for path in self.options.config_dir:
            arguments += ['--config-dir', path]
        nova_config.parse_args(arguments, configure_db=False, init_rpc=False)

    def interact(self) -> None:
        """Without a command, list the commands."""
        self.run_subcommand(['help'])


def main(argv: Sequence[str] | None = None) -> int:
    """:returns: the exit status"""
    return Manage().run(list(sys.argv[1:] if argv is None else argv))
