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

"""When the pool tests its connections.

As oslo.db configures it, SQLAlchemy tests a connection each time it is taken,
and rolls back each time it is given back. With transactions of a few
statements that is half of the traffic. Here a connection is tested only after
it has not been used for a while, and :mod:`nova_accel.db.sql.engine` ends each
transaction itself.
"""

import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

#: Seconds without use after which a connection is tested. If one is lost
#: earlier, the transaction that uses it finds out.
_IDLE_S = 1.0

_USED_AT = 'nova_accel_used_at'


class Pooling(sa.CreateEnginePlugin):
    """The plugin ``nova_accel`` of SQLAlchemy, which a URL asks for."""

    def update_url(self, url: sa.URL) -> sa.URL:
        return url.difference_update_query(['plugin'])

    def handle_pool_kwargs(
        self, pool_cls: type[sa.Pool], pool_args: dict[str, Any]
    ) -> None:
        pool_args.update(pre_ping=False, reset_on_return=None)

    def engine_created(self, engine: sa.Engine) -> None:
        dialect = engine.dialect
        faults: Any = dialect.loaded_dbapi.Error

        @sa.event.listens_for(engine, 'connect')
        @sa.event.listens_for(engine, 'checkin')
        def use(_connection: Any, record: Any) -> None:
            record.info[_USED_AT] = time.monotonic()

        @sa.event.listens_for(engine, 'checkout')
        def try_idle(connection: Any, record: Any, _proxy: Any) -> None:
            if time.monotonic() < record.info[_USED_AT] + _IDLE_S:
                return
            try:
                dialect.do_ping(connection)
            except faults as fault:
                # The pool then makes new ones.
                raise sa_exc.InvalidatePoolError(str(fault)) from fault
