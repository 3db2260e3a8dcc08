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


"""``nova-accel-manage audit``: accelerators of all hosts held for nobody.

Placement may count a unit for nobody, too, or not count one that is held.
Hosts find that and report it; with ``--placement`` Placement is asked.
"""

import argparse
from collections.abc import Callable
from collections.abc import Iterator
import dataclasses
import datetime

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.cmd import cells
from nova_accel.cmd import fleet_reading
from nova_accel.db import client_arqs
from nova_accel.db import findings
from nova_accel.db import host
from nova_accel.db import host_arqs
from nova_accel.db.rows import arq_rows
from nova_accel.model import arq_types
from nova_accel.model import binding_repairs
from nova_accel.model import finding as host_finding
from nova_accel.model import host_binding
from nova_accel.model import nova_server
from nova_accel.model.fleet import fleet_drift
from nova_accel.overview import answering
from nova_accel.overview import commands
from nova_accel.overview import printing

CONF = conf.CONF

#: How many hosts are read at a time, with their bindings and servers.
PAGE = 100

#: The age of an unbound ARQ whose creator must have died.
FORGOTTEN_AFTER = datetime.timedelta(days=1)

#: The kinds that hosts find of Placement, and those that the fleet does.
_OF_PLACEMENT = (host_finding.Kind.UNCOUNTED, host_finding.Kind.ALLOCATION)
_COUNTS = (fleet_drift.Kind.UNCOUNTED, fleet_drift.Kind.OVERCOUNTED)

COLUMNS = ('Host', 'Server', 'Role', 'ARQs', 'What is wrong', 'Remedy')


@dataclasses.dataclass(frozen=True)
class Finding:
    """One problem that was found.

    ``fix`` carries out ``remedy``; None if that is not possible from here.
    """

    hostname: str
    instance_uuid: str
    role: str
    arq_uuids: tuple[str, ...]
    why: str
    remedy: str
    fix: Callable[[], None] | None = None

    def row(self, remedy: str) -> tuple[str, ...]:
        return (
            self.hostname,
            self.instance_uuid,
            self.role,
            ' '.join(self.arq_uuids),
            self.why,
            remedy,
        )


class Audit(answering.Answering, printing.Lister):
    """Show accelerators that are held for nobody.

    The exit status is 0 if there are none or all are freed, 1 if some are
    left, and 2 if that could not be found out.
    """

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
            finding.row(self._remedy(finding, parsed_args.fix))
            for finding in find(parsed_args.placement)
        ]

    def _remedy(self, finding: Finding, is_to_be_fixed: bool) -> str:
        """The remedy to show, after carrying it out if wanted."""
        if is_to_be_fixed and finding.fix is not None:
            try:
                finding.fix()
                return 'done'
            except exceptions.AcceleratorError as error:
                self._left += 1
                return f'failed: {error}'
        self._left += 1
        return finding.remedy


def find(asks_placement: bool = False) -> Iterator[Finding]:
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
    for hostname, _since, what in findings.left(_OF_PLACEMENT):
        whose = what.instance_uuid or ''
        yield Finding(hostname, whose, '', (), what.words, what.remedy)
    if asks_placement:
        yield from map(
            _counted,
            (
                found
                for found in fleet_reading.read(asks_placement=True).drifts
                if found.kind in _COUNTS
            ),
        )


def _counted(found: fleet_drift.Drift) -> Finding:
    return Finding(
        found.hostname or '',
        found.whose,
        '',
        (),
        f'{found.says}, but {found.but}',
        found.remedy,
    )


def _check(
    found: host_arqs.HostBinding,
    of_host: host.HostRow,
    server: nova_server.Server | None,
) -> Iterator[Finding]:
    """The problem of a binding, if it has one."""
    role = None if found['role'] is None else arq_types.Role(found['role'])
    arq_uuids = tuple(request['uuid'] for request in found['arqs'])
    names = (
        found['hostname'],
        found['instance_uuid'],
        found['role'] or 'not adopted',
        arq_uuids,
    )
    why = binding_repairs.why_unneeded(role, server, of_host['service_host'])
    if why is not None and role is None:
        yield Finding(
            *names,
            why,
            'delete them',
            lambda: host_arqs.delete_unadopted(
                found['instance_uuid'], found['hostname'], arq_uuids
            ),
        )
    elif why is not None:
        yield Finding(
            *names, why, binding_repairs.remedy(of_host['is_silent'])
        )
    elif (
        server is not None
        and not server.is_busy
        and not all(map(_is_bound, found['arqs']))
    ):
        yield Finding(
            *names,
            'not all of its ARQs have a device',
            'rebuild or delete the server',
        )


def _is_bound(request: arq_rows.ArqFacts) -> bool:
    return (
        request['state'] in host_binding.HOLDING
        and request['attach_handle_uuid'] is not None
    )


def _forgotten(request: arq_rows.ArqRow) -> Finding:
    since = request['updated_at'] or request['created_at']
    return Finding(
        '',
        '',
        '',
        (request['uuid'],),
        f'it is {request["state"]} and bound to nothing since {since}',
        'delete it',
        lambda: client_arqs.delete_by_uuids([request['uuid']]),
    )
