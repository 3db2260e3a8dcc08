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
"""PyMySQL's connections share a TLS context, where none has certificates.

PyMySQL makes a context for each connection. It reads all certificates of the
machine, which takes 50 ms of a core and a megabyte, and then verifies none
unless the URL names some. A database that is away would cost that at each
call.
"""

import functools
import ssl
from typing import Any
from typing import ClassVar

import sqlalchemy as sa


def set_up(engine: sa.Engine) -> None:
    """Have the connections of an engine with PyMySQL share a context."""
    if engine.driver != 'pymysql':
        return
    pymysql: Any = engine.dialect.dbapi
    connection_class = _connection_class(pymysql)

    @sa.event.listens_for(engine, 'do_connect')
    def connect(
        _dialect: Any, _record: Any, arguments: Any, parameters: Any
    ) -> Any:
        return connection_class(*arguments, **parameters)


@functools.cache
def _connection_class(pymysql: Any) -> type:
    class Connection(pymysql.connections.Connection):
        """One that makes no context of its own if it names no certificate."""

        _shared: ClassVar[ssl.SSLContext | None] = None

        def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
            if sslp or Connection._shared is None:
                made: ssl.SSLContext = super()._create_ssl_ctx(sslp)
                if sslp:
                    return made
                # Two threads may come here; either context is as good.
                Connection._shared = made
            return Connection._shared

    return Connection
