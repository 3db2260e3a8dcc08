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

"""The metrics of nova_accel, by Prometheus' rules for names.

All are gauges, as all come from the database of the moment: any process of the
API, or ``nova-accel-manage``, gives the same. So Prometheus' client needs no
mode for several processes.
"""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from importlib import metadata

from prometheus_client import core

from nova_accel import reason
from nova_accel.metrics import dcgm
from nova_accel.metrics import room
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model.fleet import fleet_numbers
from nova_accel.model.units import failure_cause
from nova_accel.model.units import unit_state

_Numbers = fleet_numbers.Numbers
_State = unit_state.UnitState

_KINDS = tuple(str(kind) for kind in finding.Kind)

#: The labels of ``nova_accel_arq_info``.
ARQ_LABELS = (
    'arq_id',
    'instance_id',
    'project_id',
    'hostname',
    'pci_bus_id',
    'device_id',
    'product',
    'resource_class',
    'role',
)


def of(
    numbers: _Numbers, most_series: int
) -> Iterator[core.GaugeMetricFamily]:
    """All metrics.

    :param most_series: how many series a metric may have that has one for
        each host or each ARQ
    """
    yield _gauge(
        'build_info',
        'The version of nova_accel that gives these metrics.',
        ('version',),
        [((metadata.version('nova-accel'),), 1)],
    )
    yield from _of_hosts(numbers, most_series)
    yield from _of_units(numbers)
    yield from _of_devices(numbers)
    yield from _of_arqs(numbers, most_series)
    yield _held(numbers, most_series)
    yield from _of_times(numbers)
    yield _failures(numbers)
    yield _findings(numbers)
    yield _gauge(
        'metrics_left_out',
        'Series that are missing because a metric would have too many, see '
        '[nova_accel] metrics_max_series.',
        ('metric',),
        [
            (
                ('nova_accel_arq_info',),
                max(0, numbers.in_use - len(numbers.bound[:most_series])),
            ),
            (
                ('nova_accel_units_held',),
                max(0, len(numbers.held) - most_series),
            ),
            (
                ('nova_accel_host_last_report_timestamp_seconds',),
                max(0, len(numbers.hosts) - most_series),
            ),
        ],
    )


def of_room(
    numbers: Sequence[room.RoomNumbers],
) -> Iterator[core.GaugeMetricFamily]:
    """The metric of room for device profiles, if any are asked for."""
    if numbers:
        yield _gauge(
            'profile_servers',
            'How many servers with the device profile could start now, and at '
            'least if all servers were packed anew.',
            ('device_profile', 'servers'),
            [
                sample
                for each in numbers
                for sample in (
                    ((each.profile, 'fit now'), each.now),
                    ((each.profile, 'fit if moved'), each.if_moved),
                )
            ],
        )


def _gauge(
    name: str,
    words: str,
    labels: Sequence[str],
    samples: Iterable[tuple[Sequence[str | None], float]],
) -> core.GaugeMetricFamily:
    family = core.GaugeMetricFamily(f'nova_accel_{name}', words, labels=labels)
    for values, number in samples:
        # The library escapes line feeds, and lets other control characters
        # through to who looks at the file or at a graph.
        family.add_metric(
            [reason.printable(value or '') for value in values], number
        )
    return family


def _of_hosts(
    numbers: _Numbers, most_series: int
) -> Iterator[core.GaugeMetricFamily]:
    silent = sum(host.is_silent for host in numbers.hosts)
    yield _gauge(
        'hosts',
        'Hosts that have reported accelerators. A silent one has not for '
        '[nova_accel] host_silence_s.',
        ('state',),
        [
            (('reporting',), len(numbers.hosts) - silent),
            (('silent',), silent),
        ],
    )
    yield _gauge(
        'host_last_report_timestamp_seconds',
        'When the host last reported, by the clock of the database.',
        ('hostname',),
        [
            ((host.hostname,), host.reported_at.timestamp())
            for host in numbers.hosts[:most_series]
        ],
    )


def _of_units(numbers: _Numbers) -> Iterator[core.GaugeMetricFamily]:
    by_class = fleet_numbers.by_class(numbers.units)

    def of_state(state: _State) -> list[tuple[tuple[str], float]]:
        return [
            ((resource_class,), amounts[state])
            for resource_class, amounts in by_class.items()
        ]

    yield _gauge(
        'units',
        'Units of accelerators that guests have or could have.',
        ('resource_class',),
        [
            ((resource_class,), sum(amounts.values()))
            for resource_class, amounts in by_class.items()
        ],
    )
    yield _gauge(
        'units_used',
        'Units that servers have.',
        ('resource_class',),
        of_state(_State.USED),
    )
    yield _gauge(
        'units_free',
        'Units that the next server can have.',
        ('resource_class',),
        of_state(_State.FREE),
    )
    yield _gauge(
        'units_unusable',
        'Units that no one has and no one can have.',
        ('resource_class', 'reason'),
        [
            ((resource_class, str(state)), amounts[state])
            for resource_class, amounts in by_class.items()
            for state in fleet_numbers.UNUSABLE
        ],
    )


def _of_devices(numbers: _Numbers) -> Iterator[core.GaugeMetricFamily]:
    yield _gauge(
        'devices',
        'Devices that hosts report. A faulty one has a fault.',
        ('state',),
        [
            (('healthy',), numbers.devices - numbers.faulty_devices),
            (('faulty',), numbers.faulty_devices),
        ],
    )


def _of_arqs(
    numbers: _Numbers, most_series: int
) -> Iterator[core.GaugeMetricFamily]:
    yield _gauge(
        'arqs',
        'Accelerator requests by their stored state.',
        ('state',),
        [
            ((str(state),), numbers.arqs.get(state, 0))
            for state in arq_types.State
            if state is not arq_types.State.UNKNOWN
        ],
    )
    yield _gauge(
        'arq_info',
        'The server that has a unit, and the device of the unit; pci_bus_id '
        'is in the form of DCGM.',
        ARQ_LABELS,
        [(_arq_labels(arq), 1) for arq in numbers.bound[:most_series]],
    )


def _held(numbers: _Numbers, most_series: int) -> core.GaugeMetricFamily:
    return _gauge(
        'units_held',
        'Units that a project has now; a bill is made of it.',
        ('project_id', 'product', 'resource_class', 'shape'),
        [(kind, amount) for *kind, amount in numbers.held[:most_series]],
    )


def _arq_labels(arq: fleet_numbers.BoundArq) -> tuple[str | None, ...]:
    """The values of :data:`ARQ_LABELS`."""
    return (
        arq.uuid,
        arq.instance_uuid,
        arq.project_id,
        arq.hostname,
        dcgm.bus_id(arq.address),
        arq.device_uuid,
        arq.product,
        arq.resource_class,
        arq.role,
    )


def _of_times(numbers: _Numbers) -> Iterator[core.GaugeMetricFamily]:
    for name, words, seconds in (
        (
            'bind_seconds',
            'So many per cent of the recent bindings took at most so long, '
            'with all repetitions in the database.',
            numbers.bind_s,
        ),
        (
            'programming_seconds',
            'So many per cent of the recent programmings of FPGA regions '
            'that ended well took at most so long.',
            numbers.programming_s,
        ),
    ):
        yield _gauge(
            name,
            words,
            ('percentile',),
            [
                ((str(percent),), value)
                for percent, value in fleet_numbers.percentiles(
                    seconds
                ).items()
            ],
        )
    yield _gauge(
        'programmings',
        'Recent programmings of FPGA regions.',
        ('state',),
        [
            (('running',), numbers.programmings_running),
            (('programmed',), len(numbers.programming_s)),
            (('failed',), len(numbers.programming_failures)),
        ],
    )


def _failures(numbers: _Numbers) -> core.GaugeMetricFamily:
    by_class = fleet_numbers.by_class(numbers.units)
    return _gauge(
        'failures',
        'Failures that the database knows of: recent programmings, '
        'accelerator requests that are BindFailed, units whose cleaning '
        'failed, and faulty devices.',
        ('stage', 'cause'),
        [
            *_counted(
                'programming',
                failure_cause.Programming,
                map(
                    failure_cause.of_programming, numbers.programming_failures
                ),
            ),
            *_counted(
                'binding',
                failure_cause.BindingCause,
                map(failure_cause.of_binding, numbers.bind_failures),
            ),
            (
                ('cleaning', 'device'),
                sum(
                    amounts[_State.CLEANING_FAILED]
                    for amounts in by_class.values()
                ),
            ),
            (('health', 'device'), numbers.faulty_devices),
        ],
    )


def _counted(
    stage: str, causes: Iterable[str], found: Iterable[str]
) -> list[tuple[tuple[str, str], float]]:
    amounts = collections.Counter(found)
    return [((stage, str(cause)), amounts[cause]) for cause in causes]


def _findings(numbers: _Numbers) -> core.GaugeMetricFamily:
    """Kinds that only newer hosts know are counted together."""
    amounts: collections.Counter[tuple[str, bool]] = collections.Counter()
    for (kind, is_repaired), amount in numbers.findings.items():
        known = kind if kind in _KINDS else fleet_numbers.OTHERS
        amounts[known, is_repaired] += amount
    return _gauge(
        'findings',
        'What hosts have found wrong in their last comparison.',
        ('kind', 'state'),
        [
            ((kind, state), amounts[kind, is_repaired])
            for kind in (*_KINDS, fleet_numbers.OTHERS)
            for state, is_repaired in (('open', False), ('repaired', True))
        ],
    )
