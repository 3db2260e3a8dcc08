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

"""``nova-accel-manage import-cyborg``: from Cyborg to nova_accel, and back."""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import pathlib

from nova import context as nova_context
from nova import objects
from oslo_config import cfg

from nova_accel import exceptions
from nova_accel.cmd import cells
from nova_accel.cmd import configuration_fault
from nova_accel.cmd.cyborg import cyborg_database
from nova_accel.cmd.cyborg import steps
from nova_accel.model.cyborg import mapping
from nova_accel.model.cyborg import snapshot
from nova_accel.model.profiles import extra_specs
from nova_accel.overview import exit_status
from nova_accel.overview import printing
from nova_accel.state import durable_file

COLUMNS = ('What', 'Result')

LEFT = 1


class ImportCyborg(exit_status.Answering, printing.Lister):
    """Move from Cyborg 16 or 17 to nova_accel, and back, host by host.

    Cyborg's services must not run any more. Without further options, all that
    Cyborg has is imported. A step that was interrupted is repeated, and goes
    on; to repeat one that is done changes nothing.

    The exit status is 0 if nothing is left to do in this step, 1 if something
    is, and 2 if the step could not be done.
    """

    nothing = 'There is nothing to do.'

    _results: tuple[steps.StepResult, ...] = ()
    _device_specs: Mapping[str, tuple[str, ...]] = {}

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_source(parser)
        parser.add_argument(
            '--host',
            action='append',
            default=[],
            dest='hosts',
            metavar='<hostname>',
            help=(
                "Nova's name of a hypervisor that reports to nova_accel now: "
                "move its servers' allocations from Cyborg's providers; may "
                'be given several times'
            ),
        )
        parser.add_argument(
            '--undo',
            action='store_true',
            help='give the hosts back to Cyborg instead',
        )
        steps = parser.add_mutually_exclusive_group()
        steps.add_argument(
            '--dry-run',
            action='store_true',
            help='only tell what would be imported, and what would not',
        )
        steps.add_argument(
            '--finish',
            action='store_true',
            help="delete Cyborg's providers; there is no way back after it",
        )
        parser.add_argument(
            '--device-specs',
            type=pathlib.Path,
            metavar='<directory>',
            help=(
                'with an import: write a file for each host, with lines for '
                "its [nova_accel] device_spec that offer what Cyborg's agent "
                'offered'
            ),
        )
        parser.add_argument(
            '--json',
            action='store_true',
            help='print one JSON object, also with the lines of device_spec',
        )
        return parser

    def answer(self, parsed_args: argparse.Namespace) -> int:
        _check(parsed_args)
        cells.connect()
        self._results = tuple(self._do(parsed_args))
        self._show(parsed_args)
        return 0 if all(each.is_done for each in self._results) else LEFT

    def _do(
        self, parsed_args: argparse.Namespace
    ) -> Iterator[steps.StepResult]:
        cyborg = cyborg_database.CyborgDatabase(
            parsed_args.url or _url(parsed_args.config)
        )
        found = cyborg.read()
        if parsed_args.finish:
            yield from steps.finish(steps.read_origins(found))
        elif parsed_args.hosts:
            origins = steps.read_origins(found, parsed_args.hosts)
            for origin in origins.values():
                if parsed_args.undo:
                    yield from steps.undo(origin, cyborg)
                else:
                    yield from steps.switch(origin)
            if parsed_args.undo:
                yield from steps.remove_profiles(
                    mapping.read(found, mapping.NovaState()).profiles
                )
        else:
            imported = mapping.read(found, _nova(found))
            self._device_specs = {
                host.node.nodename: host.device_specs
                for host in imported.hosts
            }
            yield from steps.import_all(imported, parsed_args.dry_run)

    def _show(self, parsed_args: argparse.Namespace) -> None:
        if parsed_args.json:
            self.print_json(
                {
                    'results': [each._asdict() for each in self._results],
                    'device_specs': self._device_specs,
                }
            )
        else:
            printing.Lister.run(self, parsed_args)
        if parsed_args.device_specs:
            _write(parsed_args.device_specs, self._device_specs)

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterable[tuple[str, str]]]:
        return COLUMNS, ((each.what, each.result) for each in self._results)


def _add_source(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        '--from-config',
        dest='config',
        metavar='<file>',
        help='the cyborg.conf whose [database] says where the database is',
    )
    source.add_argument(
        '--from',
        dest='url',
        metavar='<url>',
        help=(
            'the URL of the database, which all users of this machine can '
            'see while the command runs'
        ),
    )


def _check(parsed_args: argparse.Namespace) -> None:
    """:raises InvalidRequest: options that do not go together"""
    if parsed_args.undo and not parsed_args.hosts:
        raise exceptions.InvalidRequest('--undo needs --host')
    if parsed_args.hosts and (parsed_args.dry_run or parsed_args.finish):
        raise exceptions.InvalidRequest(
            '--dry-run and --finish are for all hosts, without --host'
        )


def _url(path: str) -> str:
    """The URL of the database that a configuration of Cyborg names.

    :raises ConfigurationError: it names none
    """
    cyborg_conf = cfg.ConfigOpts()
    cyborg_conf.register_opt(cfg.StrOpt('connection', secret=True), 'database')
    try:
        cyborg_conf([], default_config_files=[path], default_config_dirs=[])
    except cfg.ConfigFileParseError as error:
        raise exceptions.ConfigurationError(
            f'--from-config: {configuration_fault.told(error)}'
        ) from None
    except cfg.Error as error:
        raise exceptions.ConfigurationError(
            f'--from-config: {error}'
        ) from error
    if not cyborg_conf.database.connection:
        raise exceptions.ConfigurationError(
            f'--from-config: {path} has no connection in its section database'
        )
    return str(cyborg_conf.database.connection)


def _nova(found: snapshot.Snapshot) -> mapping.NovaState:
    flavors: dict[str, list[str]] = {}
    context = nova_context.get_admin_context()
    for flavor in objects.FlavorList.get_all(context, sort_key='name'):
        name = extra_specs.profile(flavor.extra_specs)
        if name:
            flavors.setdefault(name, []).append(flavor.name)
    return mapping.NovaState(
        cells.compute_nodes(),
        cells.servers(mapping.instances(found)),
        flavors,
    )


def _write(
    directory: pathlib.Path, device_specs: Mapping[str, Iterable[str]]
) -> None:
    """One file for each host, which its nova-compute can read as it is.

    :raises InvalidName: a host, which says its own name, has one that is no
        name of a file. The files of the hosts before it are written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for nodename, lines in device_specs.items():
        if pathlib.PurePath(nodename).name != nodename:
            raise exceptions.InvalidName(
                f'host {nodename} gets no file, since that is no name of a '
                'file: copy its lines of device_spec from the output of --json'
            )
        durable_file.write(
            directory / f'{nodename}.conf',
            '[nova_accel]\n'
            + ''.join(f'device_spec = {line}\n' for line in lines),
        )
