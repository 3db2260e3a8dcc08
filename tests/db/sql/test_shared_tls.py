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

import ssl
from typing import Any

import fixtures
import pymysql
import sqlalchemy as sa
import testtools

from nova_accel.db.sql import engine
from nova_accel.db.sql import shared_tls
from nova_accel.testing import database


class TestSharedTls(testtools.TestCase):
    """On MySQL, where each connection may use TLS."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(database.Database('mysql'))
        self.made: list[ssl.SSLContext] = []
        make = ssl.create_default_context

        def count(*args: object, **kwargs: object) -> ssl.SSLContext:
            self.made.append(make(*args, **kwargs))  # type: ignore[arg-type]
            return self.made[-1]

        self.useFixture(
            fixtures.MonkeyPatch('ssl.create_default_context', count)
        )

    def cipher(self) -> str:
        """That of a new connection, empty without TLS."""
        engine.manager().dispose_pool()
        with engine.reader() as connection:
            row = connection.execute(
                sa.text("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
            ).one()
        return str(row[1])

    def test_connections_share_a_context(self) -> None:
        first = self.cipher()
        del self.made[:]
        self.assertEqual([first] * 3, [self.cipher() for _time in range(3)])
        self.assertEqual([], self.made)

    def test_it_is_the_one_that_pymysql_would_make(self) -> None:
        url = engine.manager().writer.get_engine().url
        theirs = pymysql.connect(
            host=url.host,
            port=url.port or 3306,
            user=url.username,
            password=url.password or '',
        )
        self.addCleanup(theirs.close)
        with engine.reader() as connection:
            ours = connection.connection.dbapi_connection
            self.assertIsInstance(ours, pymysql.connections.Connection)
            self.assertEqual(_tls(theirs), _tls(ours))

    def test_certificates_of_the_url_are_not_shared(self) -> None:
        class_ = shared_tls._connection_class(pymysql)
        connection = class_.__new__(class_)
        first, second = (
            connection._create_ssl_ctx({'capath': '/'}) for _time in range(2)
        )
        self.assertIsNot(first, second)
        self.assertEqual(ssl.CERT_REQUIRED, first.verify_mode)
        self.assertEqual(
            ssl.CERT_NONE, connection._create_ssl_ctx({}).verify_mode
        )


def _tls(connection: Any) -> tuple[Any, ...]:
    context = connection.ctx
    return (
        connection.ssl,
        connection._ssl_required,
        context.verify_mode,
        context.check_hostname,
        context.options,
    )
