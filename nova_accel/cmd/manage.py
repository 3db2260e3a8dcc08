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
from cliff import commandmanager
from nova import config as nova_config
from oslo_config import cfg

from nova_accel import exceptions
from nova_accel.cmd import configuration_fault
from nova_accel.db.migrations import migration
from nova_accel.db.sql import engine
from nova_accel.overview import printing

#: The words of a command line that only asks what there is.
_HELP = frozenset({'help', 'complete'})


class DbSync(printing.Command):
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
        self.print_line(f'The database is at version {migration.version()}')


class DbVersion(printing.Command):
    """Print the version of the database, and what that means."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        version = migration.version()
        self.print_line(f'{version or "none"} ({_meaning(version)[1]})')


class DbCheck(printing.Command):
    """Check that the database answers and has the tables of this release.

    The exit status is 0 if services of this release can use it, otherwise 1.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        is_usable, words = _meaning(migration.version())
        place = f' ({engine.place()})' if engine.place() else ''
        self.print_line(
            f'The database of accelerators answers{place}. It has {words}'
        )
        return 0 if is_usable else 1


def _meaning(version: str | None) -> tuple[bool, str]:
    """Whether this release can use a database of the version, and why."""
    newest = migration.newest()
    if version == newest:
        return True, 'the tables of this release'
    if version is None:
        return False, 'no tables: run "nova-accel-manage db sync"'
    if migration.is_known(version):
        return False, (
            f'the tables of an older release, and this one needs {newest}: '
            'run "nova-accel-manage db sync"'
        )
    return True, (
        'the tables of a newer release: upgrade what is still of this one'
    )


class Manage(app.App):
    """The program; it reads Nova's configuration files and runs a command."""

    NAME = 'nova-accel-manage'
    DEFAULT_VERBOSE_LEVEL = 0

    def __init__(self) -> None:
        super().__init__(
            description='Manage the accelerators of Nova.',
            version=metadata.version('nova-accel'),
            # The entry points of setup.cfg.
            command_manager=commandmanager.CommandManager('nova_accel.manage'),
            # "host list --help" is about that command.
            deferred_help=True,
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
        # A user who asks for help may be unable to read the configuration.
        if not argv or _HELP.intersection(argv):
            return
        arguments = [self.NAME]
        for path in self.options.config_file:
            arguments += ['--config-file', path]
        for path in self.options.config_dir:
            arguments += ['--config-dir', path]
        try:
            nova_config.parse_args(
                arguments, configure_db=False, init_rpc=False
            )
        except cfg.ConfigFileParseError as error:
            raise exceptions.ConfigurationError(
                configuration_fault.told(error)
            ) from None

    def interact(self) -> None:
        """Without a command, list the commands."""
        self.run_subcommand(['help'])


def main(argv: Sequence[str] | None = None) -> int:
    """:returns: the exit status"""
    return Manage().run(list(sys.argv[1:] if argv is None else argv))
