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
import json
import pathlib
import types

import fixtures
from nova import objects
import testtools

from nova_accel import exceptions
from nova_accel.cmd.cyborg import import_cyborg
from nova_accel.db import device_profile
from nova_accel.db import imports
from nova_accel.model import nova_server
from nova_accel.overview import exit_status
from unit.cmd.cyborg import move_base


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
        self.assertEqual(exit_status.UNKNOWN, status)
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
        said = self.said_of('connection of:secret\nsecret\n')
        self.assertIn(f'--from-config: Failed to parse {self.path}', said)
        self.assertNotIn('secret', said)

    def test_nobody_can_tell_where_its_password_ends(self) -> None:
        said = self.said_of(
            '[database]\nconnection = mysql://cyborg:un@secret@db/cyborg\n'
        )
        self.assertIn("the URL of Cyborg's database has an \"@\"", said)
        self.assertNotIn('secret', said)

    def test_it_is_not_there(self) -> None:
        said = self.refusal('--from-config', str(self.path))
        self.assertIn(str(self.path), said)


class TestSteps(move_base.MoveTestCase):
    """What the command prints, and its exit status."""

    def setUp(self) -> None:
        super().setUp()
        objects.register_all()
        self.flavors: list[objects.Flavor] = []
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.objects.FlavorList.get_all',
                lambda *_args, sort_key: self.flavors,
            )
        )
        self.is_debug = False
        self.output, self.errors = io.StringIO(), io.StringIO()

    def run_command(self, *arguments: str) -> int:
        self.output, self.errors = io.StringIO(), io.StringIO()
        command = import_cyborg.ImportCyborg(
            types.SimpleNamespace(
                stdout=self.output,
                stderr=self.errors,
                options=types.SimpleNamespace(debug=self.is_debug),
            ),
            None,
        )
        parser = command.get_parser('import-cyborg')
        return command.run(
            parser.parse_args(['--from', 'mysql://cyborg', *arguments])
        )

    def printed(self, *arguments: str, status: int = 0) -> dict[str, str]:
        """What each thing has come to, of the printed JSON object."""
        found = self.run_command('--json', *arguments)
        self.assertEqual((status, ''), (found, self.errors.getvalue()))
        return {
            each['what']: each['result']
            for each in json.loads(self.output.getvalue())['results']
        }

    def refusal(self, *arguments: str) -> str:
        self.assertEqual(exit_status.UNKNOWN, self.run_command(*arguments))
        self.assertEqual('', self.output.getvalue())
        return self.errors.getvalue()

    def test_a_table(self) -> None:
        self.assertEqual(0, self.run_command('-f', 'value'))
        self.assertEqual(
            [
                'device profile fpga imported',
                f'host {move_base.NODE} imported; devices: 2, attach '
                'handles: 2, ARQs: 2',
            ],
            self.output.getvalue().splitlines(),
        )
        self.assertEqual('', self.errors.getvalue())

    def test_json(self) -> None:
        self.assertEqual(0, self.run_command('--json'))
        printed = json.loads(self.output.getvalue())
        self.assertEqual({'results', 'device_specs'}, {*printed})
        self.assertEqual(
            {
                'what': 'device profile fpga',
                'result': 'imported',
                'is_done': True,
            },
            printed['results'][0],
        )
        self.assertEqual(2, len(printed['device_specs'][move_base.NODE]))

    def test_a_dry_run(self) -> None:
        told = self.printed('--dry-run')
        self.assertEqual({}, imports.get_hosts())
        self.assertEqual([], device_profile.get_all())
        self.assertEqual(told, self.printed())
        self.assertEqual({move_base.NODE: False}, imports.get_hosts())

    def test_the_lines_of_each_host(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path = directory / 'new' / 'specs'
        for _time in range(2):
            self.printed('--dry-run', '--device-specs', str(path))
        [written] = path.iterdir()
        self.assertEqual(f'{move_base.NODE}.conf', written.name)
        first, *lines = written.read_text().splitlines()
        self.assertEqual('[nova_accel]', first)
        self.assertEqual(
            ['0000:00:01.0', '0000:01:01.0'],
            [
                json.loads(line.removeprefix('device_spec = '))['address']
                for line in lines
            ],
        )

    def test_a_host_whose_name_leads_elsewhere(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name in ('../other', '/other', 'a/b'):
            error = self.assertRaises(
                exceptions.InvalidName,
                import_cyborg._write,
                directory / 'specs',
                {name: ['{}']},
            )
            self.assertIn(name, str(error))
        self.assertEqual(
            ['specs'], [each.name for each in directory.iterdir()]
        )
        self.assertEqual([], [*(directory / 'specs').iterdir()])

    def test_what_is_refused(self) -> None:
        self.cyborg.profile('old', {'accel:function_id': '3AFB'})
        for name in ('b', 'a'):
            self.flavors.append(
                objects.Flavor(
                    name=name, extra_specs={'accel:device_profile': 'old'}
                )
            )
        self.servers['server-1'] = nova_server.Server(
            'compute-1', 'active', 'rebooting'
        )
        told = self.printed(status=import_cyborg.LEFT)
        self.assertIn(
            'Flavors that name it: a, b.', told['device profile old']
        )
        self.assertIn('at work on servers server-1', told['host compute-1'])
        self.assertEqual({}, imports.get_hosts())
        self.servers['server-1'] = nova_server.Server('compute-1', 'active')
        # The profile is still left.
        self.printed(status=import_cyborg.LEFT)
        self.assertEqual({move_base.NODE: False}, imports.get_hosts())

    def test_from_the_first_step_to_the_last(self) -> None:
        self.printed()
        self.assertIn(
            'has not reported', self.refusal('--host', move_base.NODE)
        )
        self.assertIn('switch these hosts first', self.refusal('--finish'))
        self.report()
        self.printed('--host', move_base.NODE)
        self.assert_switched()
        self.assertIn(
            'SIGHUP', self.printed('--finish')[f'host {move_base.NODE}']
        )

    def test_there_and_back(self) -> None:
        self.printed()
        self.report()
        self.printed('--host', move_base.NODE)
        self.assertIn('node other', self.refusal('--undo', '--host', 'other'))
        self.silence()
        told = self.printed('--undo', '--host', move_base.NODE)
        self.assertIn("is Cyborg's again", told[f'host {move_base.NODE}'])
        self.assertIn('1 deleted', told['device profiles'])
        self.assertEqual(self.theirs, self.placement.state())

    def test_something_is_left(self) -> None:
        self.printed()
        self.report(second=None)
        told = self.printed(
            '--host', move_base.NODE, status=import_cyborg.LEFT
        )
        self.assertEqual(['server server-1'], [*told])

    def test_no_connection(self) -> None:
        self.printed()
        self.report()
        self.placement.lost = (0, 'change')
        self.assertIn(
            'Placement gave no usable answer',
            self.refusal('--host', move_base.NODE),
        )
        self.is_debug = True
        self.assertRaises(
            exceptions.ServiceUnavailable,
            self.run_command,
            '--host',
            move_base.NODE,
        )
