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

"""A MariaDB that counts the statements of one user."""

from collections.abc import Iterator
import contextlib
import dataclasses
import secrets

import fixtures
import sqlalchemy as sa

from nova_accel.testing import database


@dataclasses.dataclass
class Count:
    """The number of statements; ``others`` are COMMIT, ROLLBACK and SET."""

    statements: int = 0
    others: int = 0


class CountedDatabase(fixtures.Fixture):
    """A database without tables, and a user whose statements are counted.

    The server counts the statements of each user, so those of other users are
    not counted. This process itself uses another user.

    :param is_ours: it is the database of accelerators of this process, too
    :ivar url: of the database, with the counted user
    :ivar engine: of the database, with another user, who is not counted
    :raises unittest.SkipTest: there is no server
    """

    def __init__(self, is_ours: bool = True) -> None:
        super().__init__()
        self._is_ours = is_ours

    def setUp(self) -> None:
        # The benchmark makes the tables as an operator does.
        self._database = (
            database.Database('mysql', tables=False)
            if self._is_ours
            else database.ForeignDatabase('mysql')
        )
        super().setUp()

    def _setUp(self) -> None:
        self.useFixture(self._database)
        self.engine = self._database.engine
        name = self.engine.url.database
        self._user = f'u{secrets.token_hex(8)}'
        password = secrets.token_urlsafe()
        self._count_users()
        self._execute(
            f"CREATE USER '{self._user}'@'%' IDENTIFIED BY '{password}'"
        )
        self.addCleanup(self._execute, f"DROP USER '{self._user}'@'%'")
        self._execute(f"GRANT ALL ON {name}.* TO '{self._user}'@'%'")
        self.url = self.engine.url.set(
            username=self._user,
            password=password,
        ).render_as_string(hide_password=False)

    @contextlib.contextmanager
    def counted(self) -> Iterator[Count]:
        """Count the user's statements; the count is set at the end."""
        count = Count()
        before = self._counts()
        yield count
        after = self._counts()
        count.statements = after.statements - before.statements
        count.others = after.others - before.others

    def _count_users(self) -> None:
        with self.engine.connect() as connection:
            before = connection.scalar(sa.text('SELECT @@GLOBAL.userstat'))
        if not before:
            self._execute('SET GLOBAL userstat = 1')
            self.addCleanup(self._execute, 'SET GLOBAL userstat = 0')

    def _counts(self) -> Count:
        with self.engine.connect() as connection:
            row = connection.execute(
                sa.text(
                    'SELECT select_commands + update_commands, other_commands'
                    ' FROM information_schema.user_statistics'
                    ' WHERE user = :user'
                ),
                {'user': self._user},
            ).one_or_none()
        return Count() if row is None else Count(*map(int, row))

    def _execute(self, statement: str) -> None:
        with self.engine.begin() as connection:
            connection.execute(sa.text(statement))
