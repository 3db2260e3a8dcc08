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

"""Statements that SQLAlchemy compiles once in a process, not in each test.

Each test has engines of its own, and each engine compiles anew what Nova,
Placement and the accelerator API ask. That was a tenth of a functional test's
time.
"""

from typing import Any

import fixtures
from oslo_db.sqlalchemy import engines
import sqlalchemy as sa
from sqlalchemy import util

_create_engine = engines.create_engine

#: By the names of the database and of its driver. The key of a compiled
#: statement has the dialect, so it is shared, too.
_dialects: dict[tuple[str, str], sa.Dialect] = {}
_compiled: util.LRUCache[Any, Any] = util.LRUCache(5000)


def _create_sharing(*args: Any, **options: Any) -> sa.Engine:
    engine: sa.Engine = _create_engine(*args, **options)
    made = engine.dialect
    key = made.name, made.driver
    if made.default_schema_name is None:
        # It learns of its server when it first connects.
        sa.event.listen(
            engine,
            'connect',
            lambda *_: _dialects.setdefault(key, made),
            once=True,
        )
    else:
        _dialects.setdefault(key, made)
    if key in _dialects:
        engine.dialect = engine.pool._dialect = _dialects[key]
    engine._compiled_cache = _compiled
    return engine


class SharedStatements(fixtures.Fixture):
    """Has the engines that are made from now on share them."""

    def _setUp(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch(
                'oslo_db.sqlalchemy.engines.create_engine', _create_sharing
            )
        )
