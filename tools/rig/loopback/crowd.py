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

"""Fixtures with which Nova's functional tests boot many servers at once.

In Nova's own fixtures a server waits for the others, as it does not in real
services. These fixtures replace those parts.
"""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from contextlib import AbstractContextManager
import threading
from typing import Any

import fixtures
from nova.tests import fixtures as nova_fixtures
from placement import handler


class OneCell(fixtures.Fixture):
    """A cloud with one cell, without the lock of Nova's ``CellDatabases``.

    A request to a cell takes that lock as a reader. A request to another
    cell, such as cell0 for a server that is refused, takes it as a writer. A
    waiting writer lets no new reader in. If casts are calls
    (``CAST_AS_CALL``), nova-conductor is a reader until its server is built.
    Then nova-compute waits for the writer, the writer for nova-conductor, and
    nova-conductor for nova-compute, until a call times out.

    Here a request that names no cell goes to the default cell. In Nova's
    fixture it goes to the cell that was asked last. Use this fixture before
    the test case sets up its databases.
    """

    def _setUp(self) -> None:
        for name, function in (
            ('_wrap_target_cell', _target_cell),
            ('_wrap_get_context_manager', _cell_of),
        ):
            self.useFixture(
                fixtures.MockPatchObject(
                    nova_fixtures.CellDatabases, name, function
                )
            )


def _target_cell(
    databases: nova_fixtures.CellDatabases, context: Any, cell_mapping: Any
) -> AbstractContextManager[Any]:
    targeted: AbstractContextManager[Any] = databases._real_target_cell(
        context, cell_mapping
    )
    return targeted


def _cell_of(databases: nova_fixtures.CellDatabases, context: Any) -> Any:
    return (
        getattr(context, 'db_connection', None) or databases._default_ctxt_mgr
    )


class PlacementWorkers(fixtures.Fixture):
    """Lets Placement serve only a few requests at once, like a small uWSGI.

    Nova's fixture serves all requests at once. Each claim changes its host's
    generation, so overlapping claims on one host are repeated. Placement
    repeats them ten times, and nova-scheduler four times more. With fifty
    claims at once, nearly none succeeded within a minute.

    :param number: of requests that are served at once
    """

    def __init__(self, number: int = 2) -> None:
        super().__init__()
        self._free = threading.Semaphore(number)

    def _setUp(self) -> None:
        serve = handler.PlacementHandler.__call__

        def serve_in_turn(app: Any, environ: Any, start_response: Any) -> Any:
            with self._free:
                return serve(app, environ, start_response)

        self.useFixture(
            fixtures.MockPatchObject(
                handler.PlacementHandler, '__call__', serve_in_turn
            )
        )
