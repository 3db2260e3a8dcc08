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

They stand in for what Nova's fixtures have that lets each server wait for the
others, which real services do not.
"""

# Its __init__ decides between eventlet and native threads; anything else of
# Nova imported before it leaves the process half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from contextlib import AbstractContextManager
import threading
from typing import Any

import fixtures
from nova.tests import fixtures as nova_fixtures
from placement import handler


class OneCell(fixtures.Fixture):
    """A cloud with one cell, without the lock of Nova's ``CellDatabases``.

    Whoever asks a cell reads by that lock. Whoever turns to another one, such
    as cell0 for a server that is refused, writes, and a waiting writer lets no
    new reader in. Where a cast is a call (``CAST_AS_CALL``), nova-conductor
    reads until its server is built. Then nova-compute waits for the writer,
    the writer for nova-conductor, and nova-conductor for nova-compute, until a
    call times out.

    Without it, what names no cell goes to the default one, where Nova's goes
    to the one that was asked last. Use this before the test case sets up its
    databases.
    """

    def _setUp(self) -> None:
        for name, function in (('_wrap_target_cell', _target_cell),
                               ('_wrap_get_context_manager', _cell_of)):
            self.useFixture(fixtures.MockPatchObject(
                nova_fixtures.CellDatabases, name, function))


def _target_cell(databases: nova_fixtures.CellDatabases, context: Any,
                 cell_mapping: Any) -> AbstractContextManager[Any]:
    targeted: AbstractContextManager[Any] = databases._real_target_cell(
        context, cell_mapping)
    return targeted


def _cell_of(databases: nova_fixtures.CellDatabases, context: Any) -> Any:
    return (getattr(context, 'db_connection', None)
            or databases._default_ctxt_mgr)


class PlacementWorkers(fixtures.Fixture):
    """Placement serves as few requests at once as a small pool of uWSGI.

    Nova's fixture serves all of them. Each claim changes its host's
    generation, so that claims on one host that overlap are begun again:
    Placement does it ten times, nova-scheduler four times more. With fifty at
    once nearly none came through in a minute.

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

        self.useFixture(fixtures.MockPatchObject(
            handler.PlacementHandler, '__call__', serve_in_turn))
