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

"""tests/functional/test_import_cyborg.py has a real Placement and Nova."""

import contextlib
import io
import pathlib
import types

import fixtures
import testtools

from nova_accel.cmd import import_cyborg


class OptionsTestCase(testtools.TestCase):
    """What is asked for is refused before anything is done."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.cmd.cells.connect', lambda: None)
        )

    def refusal(self, *arguments: str) -> str:
        """What the command says, which could not be done."""
        errors = io.StringIO()
        command = import_cyborg.ImportCyborg(
            types.SimpleNamespace(
                stderr=errors, options=types.SimpleNamespace(debug=False)
            ),
            None,
        )
        parser = command.get_parser('import-cyborg')
        status = command.run(parser.parse_args(arguments))
        self.assertEqual(import_cyborg.UNKNOWN, status)
        return errors.getvalue()


class TestOptions(OptionsTestCase):
    URL = ('--from', 'mysql+pymysql://cyborg@db/cyborg')

    def test_undo_of_no_host(self) -> None:
        self.assertEqual(
            '--undo needs --host\n', self.refusal(*self.URL, '--undo')
        )

    def test_what_is_for_all_hosts(self) -> None:
        for option in ('--dry-run', '--finish'):
            self.assertIn(
                'without --host',
                self.refusal(*self.URL, option, '--host', 'compute-1'),
            )

    def test_a_database_has_to_be_named_once(self) -> None:
        parser = import_cyborg.ImportCyborg(None, None).get_parser('import')
        for arguments in ([], [*self.URL, '--from-config', 'cyborg.conf']):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertRaises(SystemExit, parser.parse_args, arguments)
            self.assertIn('--from-config', said.getvalue())


class TestFromConfig(OptionsTestCase):
    def setUp(self) -> None:
        super().setUp()
        directory = self.useFixture(fixtures.TempDir()).path
        self.path = pathlib.Path(directory) / 'cyborg.conf'

    def said_of(self, text: str) -> str:
        self.path.write_text(text)
        return self.refusal('--from-config', str(self.path))

    def test_its_database_is_meant(self) -> None:
        said = self.said_of(
            '[DEFAULT]\ntransport_url = rabbit://\n'
            '[database]\nconnection = oracle://cyborg:secret@db/cyborg\n'
        )
        self.assertIn('is not one of MySQL, MariaDB or PostgreSQL', said)
        self.assertNotIn('secret', said)

    def test_it_names_none(self) -> None:
        for text in ('', '[database]\n', '[database]\nconnection =\n'):
            self.assertEqual(
                f'--from-config: {self.path} has no connection in its section '
                'database\n',
                self.said_of(text),
            )

    def test_it_is_no_configuration(self) -> None:
        said = self.said_of('connection\n')
        self.assertIn(f'--from-config: Failed to parse {self.path}', said)

    def test_it_is_not_there(self) -> None:
        said = self.refusal('--from-config', str(self.path))
        self.assertIn(str(self.path), said)
