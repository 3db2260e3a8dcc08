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


"""``nova-accel-manage audit``: accelerators of all hosts held for no one.

Placement may count a unit for no one, too, or not count one that is held.
Hosts find that and report it; with ``--placement`` Placement is asked.
"""

import argparse
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import datetime
import functools
from typing import NamedTuple

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.cmd import cells
from nova_accel.cmd import database_fleet
from nova_accel.db import client_arqs
from nova_accel.db import findings
from nova_accel.db import host
from nova_accel.db import host_arqs
from nova_accel.db.rows import arq_rows
from nova_accel.model import arq_types
from nova_accel.model import binding_repairs
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model import nova_server
from nova_accel.model.fleet import disagreement
from nova_accel.overview import commands
from nova_accel.overview import exit_status
from nova_accel.overview import printing

CONF = conf.CONF

#: How many hosts are read at a time, with their bindings and servers.
PAGE = 100

#: The age of an unbound ARQ whose creator must have died.
FORGOTTEN_AFTER = datetime.timedelta(days=1)

#: The kinds that hosts find of Placement, and those that the fleet does.
_OF_PLACEMENT = (finding.Kind.UNCOUNTED, finding.Kind.ALLOCATION)
_COUNTS = (disagreement.Subject.UNCOUNTED, disagreement.Subject.OVERCOUNTED)

#: The remedy of ARQs that Nova's own Cyborg client bound.
_DELETE = 'delete them'

COLUMNS = ('Host', 'Server', 'Role', 'ARQs', 'What is wrong', 'Remedy')


class AuditRow(NamedTuple):
    """A finding, and the ARQs that it is about.

    ``fix`` carries out its remedy; None if that is not possible from here.
    """

    found: finding.Finding
    role: str = ''
    arq_uuids: tuple[str, ...] = ()
    fix: Callable[[], None] | None = None

    def columns(self, remedy: str) -> tuple[str, ...]:
        found = self.found
        return (
            found.hostname or '',
            found.about or found.instance_uuid or '',
            self.role,
            ' '.join(self.arq_uuids),
            f'{found.words}, but {found.but}' if found.but else found.words,
            remedy,
        )


class Audit(exit_status.Answering, printing.Lister):
    """Show accelerators that are held for no one.

    The exit status is 0 if there are none or all are freed, 1 if some are
    left, and 2 if that could not be found out.
    """

    nothing = 'No accelerator is held for no one.'

    _left = 0

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--fix',
            action='store_true',
            help='free those that no host has to unplug first',
        )
        commands.add_placement(parser)
        return parser

    def answer(self, parsed_args: argparse.Namespace) -> int:
        cells.connect()
        printing.Lister.run(self, parsed_args)
        return 1 if self._left else 0

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        return COLUMNS, [
            row.columns(self._remedy(row, parsed_args.fix))
            for row in find(parsed_args.placement)
        ]

    def _remedy(self, row: AuditRow, is_to_be_fixed: bool) -> str:
        """The remedy to show, after carrying it out if wanted."""
        if is_to_be_fixed and row.fix is not None:
            try:
                row.fix()
                return 'done'
            except exceptions.AcceleratorError as error:
                self._left += 1
                return f'failed: {error}'
        self._left += 1
        return row.found.remedy


def find(asks_placement: bool = False) -> Iterator[AuditRow]:
    """All problems, by a few statements for each page of hosts.

    :param asks_placement: compare what Placement counts, too, by one request
        for each of our providers
    :raises ServiceUnavailable: the database of accelerators does not answer
    :raises ConfigurationError: Nova knows of no cell.
    """
    hosts = host.get_all(CONF.nova_accel.host_silence_s)
    for number in range(0, len(hosts), PAGE):
        page = {
            each['hostname']: each for each in hosts[number : number + PAGE]
        }
        # Nova is asked later, when each binding has its instance.
        bindings = host_arqs.get_of_hosts(page)
        servers = (
            cells.servers({each['instance_uuid'] for each in bindings})
            if bindings
            else {}
        )
        for each in bindings:
            yield from _check(
                each,
                page[each['hostname']],
                servers.get(each['instance_uuid']),
            )
    for request in client_arqs.get_forgotten(FORGOTTEN_AFTER):
        yield _forgotten(request)
    yield from map(AuditRow, findings.left(_OF_PLACEMENT))
    if asks_placement:
        for found in database_fleet.read(asks_placement=True).compared:
            if found.kind in _COUNTS:
                yield AuditRow(found)


def _check(
    found: host_arqs.HostBinding,
    of_host: host.HostRow,
    server: nova_server.Server | None,
) -> Iterator[AuditRow]:
    """A row for each fault of a binding."""
    role = None if found['role'] is None else arq_types.Role(found['role'])
    why = binding_repairs.why_unneeded(role, server, of_host['service_host'])
    cure = _DELETE
    if why is None:
        if server is None or server.is_busy or _are_bound(found['arqs']):
            return
        why = 'not all of its ARQs have a device'
        cure = 'rebuild or delete the server'
    elif role is not None:
        cure = binding_repairs.remedy(of_host['is_silent'])
    hostname, instance_uuid = found['hostname'], found['instance_uuid']
    uuids = tuple(request['uuid'] for request in found['arqs'])
    yield AuditRow(
        _found(why, cure, hostname, instance_uuid),
        found['role'] or 'not adopted',
        uuids,
        functools.partial(
            host_arqs.delete_unadopted, instance_uuid, hostname, uuids
        )
        if cure == _DELETE
        else None,
    )


def _are_bound(requests: Iterable[arq_rows.ArqFacts]) -> bool:
    return all(
        request['state'] in host_binding.HOLDING
        and request['attach_handle_uuid'] is not None
        for request in requests
    )


def _forgotten(request: arq_rows.ArqRow) -> AuditRow:
    since = request['updated_at'] or request['created_at']
    return AuditRow(
        _found(
            f'it is {request["state"]} and bound to nothing since {since}',
            'delete it',
        ),
        arq_uuids=(request['uuid'],),
        fix=lambda: client_arqs.delete_by_uuids([request['uuid']]),
    )


def _found(
    words: str, cure: str, hostname: str = '', instance_uuid: str = ''
) -> finding.Finding:
    return finding.Finding(
        disagreement.Subject.LEAK,
        words,
        instance_uuid=instance_uuid,
        hostname=hostname,
        cure=cure,
    )
