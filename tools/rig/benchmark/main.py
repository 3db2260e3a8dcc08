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

"""Benchmarks of accelerators: each command of ``tools/bench``.

``report`` measures a host with many accelerators, and ``fpga`` bitstreams.
For these, Nova's services, Placement and the accelerator API run in this
process with their databases, on loopback, over a simulated host.

``candidates`` measures Placement alone, with thousands of hosts.

``boards`` boots servers on NVSwitch boards and compares what they get with
what the boards can join.

``scheduler`` measures nova-scheduler in a cloud of many hosts, with a real
Placement and databases in this process. ``scheduler --simulate`` shows how
well devices are chosen, in clouds that it simulates.

``api`` measures the accelerator API as it is deployed, in uWSGI's processes
and with a MariaDB, but without the validation of tokens. ``api --peer``
measures Cyborg, too. ``attack`` measures what a client of the same API waits
for while others attack it. ``scale`` measures it in a cloud of many hosts,
through the restart of a controller and the failover of a database.
"""

import argparse
from collections.abc import Callable
from collections.abc import Sequence
import contextlib
import json
import logging
import os
import statistics
import sys
import time
from typing import Any
import warnings

from nova_accel import exceptions
from rig.benchmark import fleet
from rig.benchmark import placement_commands
from rig.benchmark import scale
from rig.benchmark import subcommands

_TIMES = 500
_VFS = 8
_HOST = 'compute1'


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print one JSON object on standard output."""
    arguments = _parse(argv)
    # Nova reads this when it is imported, so the imports have to come later.
    os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'True')
    warnings.simplefilter('ignore')
    # Only the result goes to standard output. Nova logs to the stream that is
    # standard output when Nova is imported.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            result = arguments.measure(arguments)
        except exceptions.ConfigurationError as fault:
            print(fault, file=sys.stderr)
            return 1
    print(json.dumps(result, indent=2))
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='bench', description=__doc__)
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    _add_report(commands)
    _add_fpga(commands)
    placement_commands.add(commands)
    _add_scheduler(commands)
    _add_claims(commands)
    _add_api(commands)
    _add_attack(commands)
    scale.add(commands)
    fleet.add(commands)
    return parser.parse_args(argv)


def _add_report(commands: subcommands.Commands) -> None:
    command = commands.add_parser(
        'report',
        help=(
            'what the report of a host, its resource update and '
            'a claim cost, with its devices pooled and apart'
        ),
    )
    command.set_defaults(measure=_report)
    command.add_argument(
        '--devices',
        type=_multiple,
        default=64,
        metavar='N',
        help=f'a multiple of {_VFS} (default: 64)',
    )
    _add_database(command)


def _add_database(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        '--database',
        choices=('sqlite', 'mysql', 'postgresql'),
        default='sqlite',
        help=(
            'that of the accelerator API (default: sqlite); the servers of '
            'the others are named as for the tests, by '
            'OS_TEST_DBAPI_ADMIN_CONNECTION'
        ),
    )


def _add_claims(commands: subcommands.Commands) -> None:
    command = commands.add_parser(
        'claims',
        help=(
            'whether each of 8 to 32 servers that are scheduled at once, on '
            'one answer of Placement, gets one of the last free devices'
        ),
    )
    command.set_defaults(measure=_claims)
    subcommands.add_numbers(
        command,
        ('boots', 10_000, 'how many servers are scheduled'),
    )


def _add_fpga(commands: subcommands.Commands) -> None:
    command = commands.add_parser(
        'fpga',
        help=(
            'what it costs to fetch and verify a bitstream, compared with '
            'sha256 and sha512 of its bytes alone; and how long a server '
            'takes whose FPGA is programmed while its image is downloaded'
        ),
    )
    command.set_defaults(measure=_fpga)
    subcommands.add_numbers(
        command,
        ('bitstream-mb', 64, 'size of the bitstream in MiB'),
        ('times', 9, 'how often that is measured; the median counts'),
        ('image-s', 10, 'seconds that the image is downloaded'),
        ('program-s', 8, 'seconds that the FPGA is programmed'),
    )


def _add_scheduler(commands: subcommands.Commands) -> None:
    command = commands.add_parser(
        'scheduler',
        help=(
            'what our request filters, host filter and weigher cost '
            'nova-scheduler, beside its own weighers: CPU time, statements '
            'and requests to Placement'
        ),
    )
    command.set_defaults(measure=_scheduler)
    command.add_argument(
        '--hosts',
        type=subcommands.positive,
        nargs='+',
        default=[1000, 10000],
        metavar='N',
        help=(
            'in clouds of so many hosts, with eight devices each (default: '
            '1000 10000)'
        ),
    )
    subcommands.add_numbers(
        command,
        ('rounds', 9, 'how often each is measured; the median counts'),
    )
    _add_database(command)
    command.add_argument(
        '--simulate',
        choices=('fpga', 'gpu', 'shapes'),
        help=(
            'instead, choose devices for many servers in a cloud in memory: '
            'fpga says how many need no programming, gpu how many are '
            'refused, and shapes how many are placed on cards that may be '
            'whole, vGPUs or GPU instances'
        ),
    )
    command.add_argument(
        '--picture',
        metavar='FILE',
        help='with --simulate shapes, draw the cards over time, as SVG',
    )


def _add_api(commands: subcommands.Commands) -> None:
    command = commands.add_parser(
        'api',
        help=(
            'how fast the API is with uWSGI and MariaDB: cycles of creating, '
            'binding, getting and deleting an accelerator request (ARQ), and '
            'the statements of SQL that the server counts in a cycle; and '
            'the report of a host of 256 devices'
        ),
    )
    command.set_defaults(measure=_api)
    command.add_argument(
        '--others',
        type=subcommands.natural,
        nargs='+',
        default=[0, 1000, 100000],
        metavar='N',
        help='beside so many other ARQs (default: 0 1000 100000)',
    )
    command.add_argument(
        '--clients',
        type=subcommands.positive,
        nargs='+',
        default=[1, 8],
        metavar='N',
        help='with so many clients at once (default: 1 8)',
    )
    subcommands.add_numbers(
        command,
        ('seconds', 7, 'that each of it is measured'),
    )
    command.add_argument(
        '--peer',
        action='store_true',
        help=(
            'measure Cyborg 17, too, and say how many times as many cycles '
            'the API does; each is asked by a member of a project without '
            'other ARQs and by an administrator, Cyborg beside 1,000 others '
            'at most, which are bound at first and not bound then. This '
            'machine needs a RabbitMQ, of which rabbitmqctl may make a '
            'virtual host'
        ),
    )


def _add_attack(commands: subcommands.Commands) -> None:
    command = commands.add_parser(
        'attack',
        help=(
            'the longest wait of a client of the API, with uWSGI as it is '
            'deployed and SQLite, beside a hundred slow clients, and beside '
            'many calls that wait for hosts or are costly to refuse'
        ),
    )
    command.set_defaults(measure=_attack)
    subcommands.add_numbers(
        command,
        ('seconds', 20, 'that each attack goes on'),
    )


def _attack(arguments: argparse.Namespace) -> dict[str, Any]:
    from rig.benchmark import attack

    return attack.figures(arguments.seconds)


def _multiple(text: str) -> int:
    number = int(text)
    if number <= 0 or number % _VFS:
        raise argparse.ArgumentTypeError(f'no multiple of {_VFS}: {text}')
    return number


def _api(arguments: argparse.Namespace) -> dict[str, Any]:
    from rig.benchmark import api
    from rig.benchmark import cycle as benchmark_cycle

    scale = benchmark_cycle.Scale(
        arguments.others, arguments.clients, arguments.seconds
    )
    if not arguments.peer:
        return api.figures(scale)
    from rig.benchmark import peer

    return peer.compared(scale)


def _scheduler(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.simulate:
        return _simulated(arguments)
    from rig.benchmark import scheduler_cloud
    from rig.benchmark import scheduler_cost

    return {
        'devices_of_a_host': scheduler_cloud.SchedulerCloud.DEVICES,
        'database': arguments.database,
        **scheduler_cost.by_hosts(
            {
                hosts: _measured_in(
                    scheduler_cloud.SchedulerCloud(hosts, arguments.database),
                    scheduler_cost.figures,
                    arguments.rounds,
                )
                for hosts in arguments.hosts
            }
        ),
    }


def _simulated(arguments: argparse.Namespace) -> dict[str, Any]:
    from rig.benchmark.simulation import fpga
    from rig.benchmark.simulation import gpu
    from rig.benchmark.simulation import shapes

    simulations: dict[str, Callable[[], dict[str, Any]]] = {
        'fpga': fpga.figures,
        'gpu': gpu.figures,
        'shapes': lambda: shapes.figures(arguments.picture),
    }
    return simulations[arguments.simulate]()


def _report(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        'devices': arguments.devices,
        'database': arguments.database,
        **{
            name: _measured(arguments, is_pooled)
            for name, is_pooled in (('pooled', True), ('apart', False))
        },
    }


def _claims(arguments: argparse.Namespace) -> dict[str, Any]:
    from rig.benchmark import claims

    return claims.measure(arguments.boots)


def _fpga(arguments: argparse.Namespace) -> dict[str, Any]:
    """The figures of ``fpga``; each part adds its own keys."""
    from rig.benchmark import fpga

    return {
        **fpga.verification(arguments.bitstream_mb, arguments.times),
        **_measured_in(
            fpga.BootCloud(),
            fpga.boots,
            arguments.image_s,
            arguments.program_s,
        ),
    }


def _measured(
    arguments: argparse.Namespace, is_pooled: bool
) -> dict[str, Any]:
    from rig.benchmark import cloud as benchmark_cloud

    def measure(cloud: Any) -> dict[str, Any]:
        cloud.start(_HOST, arguments.devices // _VFS, _VFS, is_pooled)
        return figures(cloud, _HOST)

    return _measured_in(
        benchmark_cloud.BenchmarkCloud(arguments.database), measure
    )


def _measured_in(
    cloud: Any, measure: Callable[..., dict[str, Any]], *arguments: Any
) -> dict[str, Any]:
    """The figures of a measurement in a cloud, which ends after it."""
    try:
        cloud.setUp()
        return measure(cloud, *arguments)
    finally:
        # Otherwise Nova would log to the terminal from here on.
        logging.disable()
        cloud.doCleanups()
        logging.disable(logging.NOTSET)


def figures(cloud: Any, host: str, times: int = _TIMES) -> dict[str, Any]:
    """The costs of a host of a cloud at the moment.

    :param cloud: a :class:`rig.benchmark.cloud.BenchmarkCloud`
    :param times: how often ``update_provider_tree`` is measured
    """
    from rig.benchmark import calls

    # The first call of each kind fills caches.
    cloud.boot_and_delete(accelerated=True)
    cloud.update(host)
    update = cloud.provider_update(host)
    milliseconds = {
        name: sorted(_timed(update, times, clock))
        for name, clock in (
            ('elapsed', time.perf_counter),
            ('cpu', time.thread_time),
        )
    }
    with calls.counted() as cycle:
        cloud.report(host)
    with calls.counted() as periodic:
        cloud.update(host)
    boots = {}
    for name, accelerated in (('boot', True), ('boot_without', False)):
        with calls.counted() as boot:
            server = cloud.boot(accelerated)
        cloud.delete(server)
        boots[f'placement_calls_of_{name}'] = dict(boot.placement)
    return {
        'providers': len(cloud.accelerator_providers(host)),
        'update_provider_tree_ms': {
            name: {
                'median': round(statistics.median(found), 3),
                'p99': round(found[int(len(found) * 0.99)], 3),
            }
            for name, found in milliseconds.items()
        },
        'unchanged_report': {
            'http_calls': cycle.api + cycle.placement.total(),
            'sql_statements': cycle.statements,
        },
        'placement_calls_of_resource_update': dict(periodic.placement),
        **boots,
    }


def _timed(
    call: Callable[[], Any], times: int, clock: Callable[[], float]
) -> list[float]:
    """The milliseconds that each of several calls took."""
    found = []
    for _time in range(times):
        begin = clock()
        call()
        found.append((clock() - begin) * 1000)
    return found


if __name__ == '__main__':
    sys.exit(main())
