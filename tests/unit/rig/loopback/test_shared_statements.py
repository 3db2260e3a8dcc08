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

import fixtures
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa
import testtools

from rig.loopback import shared_statements


def an_engine(url='sqlite://'):
    """As Nova and Placement make it at first use; it does not connect yet."""
    context_manager = enginefacade.transaction_context()
    context_manager.configure(connection=url, max_retries=0)
    return context_manager.writer.get_engine()


class TestSharedStatements(testtools.TestCase):
    def setUp(self):
        super().setUp()
        for name in ('_dialects', '_compiled'):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'rig.loopback.shared_statements.{name}', {}
                )
            )
        self.useFixture(shared_statements.SharedStatements())

    def test_a_statement_is_compiled_once(self):
        statement = sa.select(sa.literal('one'))
        compiled = set()
        for _engine in range(3):
            with an_engine().connect() as connection:
                compiled.add(connection.execute(statement).context.compiled)
        self.assertEqual(1, len(compiled))

    def test_a_database_that_did_not_answer(self):
        """The next engine learns of its own one."""
        self.assertRaises(
            db_exc.DBError, an_engine('sqlite:////none/none').connect
        )
        for _again in range(2):
            with an_engine().connect() as connection:
                self.assertEqual(
                    'main', connection.dialect.default_schema_name
                )
