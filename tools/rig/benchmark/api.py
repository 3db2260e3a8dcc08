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

"""The benchmark of the API as it is deployed: uWSGI, MariaDB, HTTP."""

from collections.abc import Iterator
import contextlib
from typing import Any

from nova_accel.testing import reports
from rig.benchmark import arqs
from rig.benchmark import counted_database
from rig.benchmark import cycle
from rig.benchmark import host_report
from rig.serving import api as served_api

#: The number of uWSGI's processes.
PROCESSES = 2


def figures(scale: cycle.Scale) -> dict[str, Any]:
    """Measure the API.

    :returns: as :func:`of`
    """
    with served(handles=64) as api:
        cycle.measure(scale, api)
        return of(api)


def of(api: cycle.Subject) -> dict[str, Any]:
    """The figures of an API that was measured.

    They are by number of other ARQs, with the memory in MiB, and of the report
    of a host.
    """
    return {
        'others': api.found,
        **api.usage().memory(),
        **host_report.figures(api.target.port),
    }


@contextlib.contextmanager
def served(handles: int) -> Iterator[cycle.Subject]:
    """The API, ready to be measured.

    :param handles: the number of handles on the host whose handles are bound
    """
    host = reports.SimulatedHost('benchmark', regions=(), functions=handles)
    with (
        counted_database.CountedDatabase() as database,
        served_api.ServedApi(database.url, database.url, PROCESSES) as api,
    ):
        arqs.make_profile()
        yield cycle.Subject(
            cycle.Target(
                api.port,
                arqs.PROFILE,
                host.hostname,
                host.allocated_functions(1).rp_uuid,
            ),
            database,
            arqs.fill,
            arqs.unbind,
            api.usage,
            # The API takes a host for dead that is silent for long.
            prepare=host.report,
        )
