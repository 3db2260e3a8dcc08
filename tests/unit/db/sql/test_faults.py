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

import psycopg2
import pymysql
from sqlalchemy import exc as sa_exc
import testtools

from nova_accel.db.sql import faults


class _Refused(psycopg2.OperationalError):
    """psycopg2 sets the state of its own faults alone."""

    pgcode: str | None = None


def of_mysql(number: int) -> sa_exc.OperationalError:
    return sa_exc.OperationalError(
        'SELECT 1', None, pymysql.err.OperationalError(number, 'at host')
    )


def of_postgresql(pgcode: str) -> sa_exc.OperationalError:
    fault = _Refused('at host')
    fault.pgcode = pgcode
    return sa_exc.OperationalError('SELECT 1', None, fault)


def of_text(text: str) -> sa_exc.OperationalError:
    return sa_exc.OperationalError(
        'SELECT 1', None, psycopg2.OperationalError(text)
    )


class TestUnavailable(testtools.TestCase):
    def test_kinds(self) -> None:
        for words, told in {
            'db sync': (
                of_mysql(1146),
                of_mysql(1054),
                of_postgresql('42P01'),
                of_text('no such table: arqs'),
            ),
            'does not exist': (
                of_mysql(1049),
                of_postgresql('3D000'),
                of_text('FATAL:  database "frob" does not exist'),
                of_text('unable to open database file'),
            ),
            'refuses the user': (
                of_mysql(1045),
                of_mysql(1044),
                of_mysql(1142),
                of_postgresql('28P01'),
                of_postgresql('42501'),
                of_text('FATAL:  password authentication failed for user'),
            ),
            'is read-only': (
                of_mysql(1290),
                of_postgresql('25006'),
                of_text('attempt to write a readonly database'),
            ),
            'has no space left': (
                of_mysql(1021),
                of_mysql(1114),
                of_postgresql('53100'),
                of_text('database or disk is full'),
            ),
            'has no connection left': (
                of_mysql(1040),
                of_postgresql('53300'),
                of_text('FATAL:  sorry, too many clients already'),
            ),
            'took too long': (of_mysql(1969), of_postgresql('57014')),
            'too busy': (sa_exc.TimeoutError(),),
            'does not answer': (
                of_mysql(2003),
                of_postgresql('57P01'),
                of_text('could not connect'),
            ),
        }.items():
            for fault in told:
                unavailable = faults.unavailable(fault)
                self.assertIn(words, str(unavailable))
                self.assertNotIn('host', str(unavailable))
                placed = faults.unavailable(fault, 'on host')
                self.assertEqual(f'{unavailable} (on host)', str(placed))
                self.assertEqual(str(unavailable), placed.public)

    def test_faults_of_what_was_asked(self) -> None:
        for fault in (
            sa_exc.DataError(
                'SELECT 1', None, pymysql.err.DataError(1406, 'Data too long')
            ),
            sa_exc.IntegrityError('SELECT 1', None, _Refused('twice')),
        ):
            self.assertIsNone(faults.unavailable(fault))
