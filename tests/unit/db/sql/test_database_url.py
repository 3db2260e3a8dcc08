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


from urllib import parse

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.db.sql import database_url

_WHOSE = '[nova_accel_database] connection'

#: What a password has that says where a part of a URL ends.
_PASSWORDS = st.text(st.sampled_from('secrt@:/?#[]%&=1'), min_size=1)


class TestParse(testtools.TestCase):
    def test_good_ones(self) -> None:
        for text, server in (
            ('sqlite://', ''),
            ('sqlite:////srv/a@b@c/accelerators.sqlite', ''),
            ('mysql+pymysql://user:secret@db/nova_accel', 'db'),
            ('mysql+pymysql://user:s%40e:/c?ret@db:33/x?a=%40', 'db:33'),
            ('mysql+pymysql://user:secret@[2001:db8::1]:33/x', None),
            ('postgresql://user:secret@/x?host=/run/postgresql', ''),
        ):
            found = database_url.parse(text, _WHOSE)
            if server is not None:
                self.assertEqual(server, database_url.server(found))

    def test_a_password_with_an_at_sign(self) -> None:
        for text in (
            'mysql+pymysql://user:un@secret@db/nova_accel',
            'mysql+pymysql://user:un@secret:secret@db/nova_accel',
            'mysql+pymysql://user:un@secret/secret@db/nova_accel',
            'mysql+pymysql://user:un@secret?secret@db/nova_accel',
            'mysql+pymysql://user:un@[secret]secret@db/nova_accel',
            'mysql+pymysql://us/er:secret@db/nova_accel',
            'mysql+pymysql://user:secret/nova_accel',
            'postgresql://user:un@secret@db',
        ):
            error = self.assertRaises(
                exceptions.ConfigurationError,
                database_url.parse,
                text,
                _WHOSE,
            )
            self.assertIn(_WHOSE, str(error))
            self.assertNotIn('secret', str(error))
            self.assertTrue(
                error.__context__ is None or error.__suppress_context__
            )

    def test_a_server_that_was_forgotten(self) -> None:
        """The password is the port then."""
        found = database_url.parse('mysql+pymysql://user:4711/x', _WHOSE)
        self.assertEqual('', database_url.server(found))

    @given(_PASSWORDS)
    def test_nothing_of_a_password_is_the_server(self, password: str) -> None:
        for text in (
            f'mysql+pymysql://user:{password}@db:33/nova_accel',
            f'mysql+pymysql://user:{parse.quote(password, "")}@db:33/x',
            f'postgresql://user:{password}@db:33',
        ):
            try:
                found = database_url.parse(text, _WHOSE)
            except exceptions.ConfigurationError:
                continue
            self.assertEqual('db:33', database_url.server(found))
