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

"""How fast the API is, as it is deployed: uWSGI, MariaDB, HTTP."""

from collections.abc import Iterator
import contextlib
from typing import Any

from nova_accel.testing import reports
from rig.benchmark import arqs
from rig.benchmark import counted_database
from rig.benchmark import cycle
from rig.serving import api as served_api

#: Processes of uWSGI.
PROCESSES = 2


def figures(scale: cycle.Scale) -> dict[str, Any]:
    """Measure."""
    with served(handles=64) as api:
        cycle.measure(scale, api)
        return {'others': api.found, 'rss_mb': round(api.memory_mb(), 1)}


@contextlib.contextmanager
def served(handles: int) -> Iterator[cycle.Subject]:
    """The API, to be measured.

    :param handles: that the host has whose handles are bound
    """
    host = reports.SimulatedHost('benchmark', regions=(), functions=handles)
    with (counted_database.CountedDatabase() as database,
          served_api.ServedApi(database.url, database.url,
                               PROCESSES) as api):
        arqs.make_profile()
        yield cycle.Subject(
            cycle.Target(
                api.port, arqs.PROFILE, host.hostname,
                host.allocated_functions(1).uuid),
            database, arqs.fill, api.memory_mb,
            # A host that is silent for long is taken for dead.
            prepare=host.report)
