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

"""Connections to files of SQLite that are kept, not made for each session.

With native threads, the databases of Nova's fixtures are files, and oslo.db
makes a connection to a file for each session. SQLite reads the whole schema
for each new connection. That was a fifth of a functional test's time.

The files end with the test, so that nothing waits for the disk.
"""

from collections.abc import Callable
import logging
from typing import Any

import fixtures
import sqlalchemy as sa

# The logger of a pool has the name of its class. SQLAlchemy's own ones tell no
# more.
logging.getLogger(__name__).setLevel(logging.WARNING)


class _KeptConnections(sa.QueuePool):
    """A pool without an upper limit, which fits wherever ``NullPool`` does."""

    def __init__(self, creator: Callable[..., Any], **options: Any) -> None:
        options.update(pool_size=10, max_overflow=-1)
        super().__init__(creator, **options)
        sa.event.listen(self, 'connect', _do_not_wait_for_the_disk)


def _do_not_wait_for_the_disk(connection: Any, _record: Any) -> None:
    connection.execute('PRAGMA synchronous = OFF')


class KeptConnections(fixtures.Fixture):
    """Has the engines that are made from now on keep their connections.

    Use it before the databases are made. Each engine closes its connections
    when it is disposed of.
    """

    def _setUp(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch('sqlalchemy.pool.NullPool', _KeptConnections)
        )
