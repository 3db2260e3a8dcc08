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

"""The benchmark of Placement's work for a request, ``tools/bench candidates``.

A real Placement answers in this process, with an SQLite in memory. One host's
providers are made through its API, and copied in the database for the others.
"""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import gc
import time
from typing import Any

import fixtures
from nova import objects
from placement import db_api
from placement import deploy
from placement.db.sqlalchemy import models

from nova_accel.model import naming
from nova_accel.model.devices import hardware
from nova_accel.model.profiles import device_profile
from nova_accel.model.providers import provider_layout
from nova_accel.testing import reports
from nova_accel.testing import scheduling
from rig.benchmark import row_copies

_HOST = reports.SimulatedHost('compute', regions=())
_NUMA_NODES = 2

#: Resource class -> units of a host.
_OF_THE_HOST = {'VCPU': 64, 'MEMORY_MB': 65536}


class TimedPlacement(scheduling.Placement):
    """A Placement that knows its CPU time.

    :ivar cpu_s: of all answers so far, without the work of the client
    """

    cpu_s = 0.0

    def _setUp(self) -> None:
        load = deploy.loadapp
        self.useFixture(
            fixtures.MonkeyPatch(
                'placement.deploy.loadapp',
                lambda *arguments: self._timed(load(*arguments)),
            )
        )
        super()._setUp()

    def _timed(self, application: Any) -> Any:
        def answer(environ: Any, start_response: Any) -> list[bytes]:
            begin = time.process_time()
            body = list(application(environ, start_response))
            self.cpu_s += time.process_time() - begin
            return body

        return answer


def figures(hosts: int, devices: int, times: int) -> dict[str, Any]:
    """Placement's CPU time for a request, by how devices are pooled.

    :param hosts: the number of hosts, none of which has any server
    :param devices: the number of devices of each host
    :param times: how often each request is measured; the fastest counts
    """
    functions = _functions(devices)
    found = {
        'pooled': _measured(hosts, functions, times),
        'pooled_by_numa_node': _measured(
            hosts,
            [
                dataclasses.replace(each, pooled_by_numa_node=True)
                for each in functions
            ],
            times,
        ),
        'apart': _measured(
            hosts,
            [dataclasses.replace(each, pooled=False) for each in functions],
            times,
        ),
    }
    return {
        'hosts': hosts,
        'devices': devices,
        **found,
        'pooled_is_faster': {
            name: round(
                found['apart']['cpu_ms'][name] / milliseconds,
                1,
            )
            for name, milliseconds in found['pooled']['cpu_ms'].items()
        },
    }


def _functions(amount: int) -> list[hardware.Device]:
    """Devices as the driver ``pci`` finds them, on two NUMA nodes."""
    return [
        dataclasses.replace(device, numa_node=number % _NUMA_NODES)
        for number, device in enumerate(
            dataclasses.replace(_HOST, functions=amount).devices()
        )
    ]


def _measured(
    hosts: int, devices: Sequence[hardware.Device], times: int
) -> dict[str, Any]:
    with TimedPlacement() as placement:
        providers = _add_host(placement, devices)
        copy_host(hosts - 1)
        # Garbage is not looked for in what Nova has imported.
        gc.collect()
        gc.freeze()
        candidates, milliseconds = {}, {}
        for name, groups in (('one_group', 1), ('two_groups', 2)):
            candidates[name], milliseconds[name] = asked(
                placement, _request(groups), times
            )
    return {
        'providers_of_a_host': providers,
        'candidates': candidates,
        'cpu_ms': milliseconds,
    }


def _add_host(
    placement: scheduling.Placement, devices: Iterable[hardware.Device]
) -> int:
    """Make the providers of one host, and return how many are ours."""
    root = placement.add_provider(_HOST.hostname, _OF_THE_HOST)
    layout = provider_layout.layout(_HOST.hostname, root, devices)
    for provider in layout.providers:
        placement.add_provider(
            provider.name, provider.totals, root, provider.traits
        )
    return len(layout.providers)


def copy_host(times: int) -> None:
    """Copy all providers that Placement has, with all that is theirs."""
    providers = models.ResourceProvider.__table__
    engine = db_api.get_placement_engine()
    with engine.connect() as connection:
        rows = row_copies.read(connection, providers).rows
        amount = len(rows)
        templates = [
            row_copies.read(connection, table, dict.fromkeys(columns, amount))
            for table, columns in (
                (providers, ('id', 'root_provider_id', 'parent_provider_id')),
                (models.Inventory.__table__, ('resource_provider_id',)),
                (
                    models.ResourceProviderTrait.__table__,
                    ('resource_provider_id',),
                ),
            )
        ]
    names = {row[column] for row in rows for column in ('name', 'uuid')}
    row_copies.insert(engine, templates, names, times)


def _request(groups: int) -> 'objects.RequestSpec':
    """For a server with so many groups of one unit each."""
    return scheduling.request_spec(
        {'group_policy': 'none'},
        [
            objects.RequestGroup(
                use_same_provider=True,
                requester_id=device_profile.requester_id(index),
                resources={'CUSTOM_QAT': 1},
                required_traits={naming.OWNERSHIP_TRAIT},
            )
            for index in range(groups)
        ],
    )


def asked(
    placement: TimedPlacement,
    request_spec: 'objects.RequestSpec',
    times: int,
) -> tuple[int, float]:
    """How many candidates nova-scheduler gets, and the milliseconds."""
    milliseconds = []
    for _time in range(times):
        before = placement.cpu_s
        found = placement.candidates(request_spec)
        milliseconds.append((placement.cpu_s - before) * 1000)
    return len(found), round(min(milliseconds), 1)
