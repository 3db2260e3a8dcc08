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

import argparse
from collections.abc import Callable
import io
import json
import types
from typing import Any

import testtools

from nova_accel.overview import printing

_HOSTILE = 'a\x1b[2J\nb\x9bc\u2028\u202e\ud800'
_SHOWN = r'a\x1b[2J\nb\x9bc\u2028\u202e\ud800'


class _Lister(printing.Lister):
    rows: tuple[tuple[Any, ...], ...] = ()

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        return ('One', 'Two'), self.rows


class _ShowOne(printing.ShowOne):
    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        return ('One', 'Two'), (_HOSTILE, 2)


class _Command(printing.Command):
    do: Callable[['_Command'], None]

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.do()


class TestPrinting(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.app = types.SimpleNamespace(
            stdout=io.StringIO(), stderr=io.StringIO()
        )

    def run_command(self, command: printing.Command, *arguments: str) -> str:
        command.cmd_name = 'command'
        command.run(command.get_parser('command').parse_args(arguments))
        text: str = self.app.stdout.getvalue()
        return text

    def test_cells(self) -> None:
        command = _Lister(self.app, None)
        command.rows = ((_HOSTILE, 1), (ValueError(_HOSTILE), None))
        self.assertEqual(
            [{'One': _SHOWN, 'Two': 1}, {'One': _SHOWN, 'Two': None}],
            json.loads(self.run_command(command, '-f', 'json')),
        )

    def test_no_answer_is_blank(self) -> None:
        command = _Lister(self.app, None)
        command.nothing = _HOSTILE
        self.assertEqual(f'{_SHOWN}\n', self.run_command(command))

    def test_a_program_reads_an_empty_list(self) -> None:
        self.assertEqual(
            [],
            json.loads(
                self.run_command(_Lister(self.app, None), '-f', 'json')
            ),
        )

    def test_fields(self) -> None:
        self.assertEqual(
            {'One': _SHOWN, 'Two': 2},
            json.loads(
                self.run_command(_ShowOne(self.app, None), '-f', 'json')
            ),
        )

    def test_lines(self) -> None:
        command = _Command(self.app, None)
        command.do = lambda: (
            command.print_line(_HOSTILE),
            command.warn(_HOSTILE),
        )
        self.assertEqual(f'{_SHOWN}\n', self.run_command(command))
        self.assertEqual(f'{_SHOWN}\n', self.app.stderr.getvalue())

    def test_json(self) -> None:
        command = _Command(self.app, None)
        command.do = lambda: command.print_json({_HOSTILE: 1})
        text = self.run_command(command)
        self.assertEqual({_HOSTILE: 1}, json.loads(text))
        self.assertTrue(all(line.isprintable() for line in text.split('\n')))

    def test_faults(self) -> None:
        fault: Exception = LookupError('away: zu heiß')

        def fail() -> None:
            raise fault

        command = _Command(self.app, None)
        command.do = fail
        self.assertIs(
            fault,
            self.assertRaises(LookupError, self.run_command, command),
        )
        fault = OSError(_HOSTILE)
        error = self.assertRaises(
            printing.Unprintable, self.run_command, command
        )
        self.assertEqual(f'OSError: {_SHOWN}', str(error))
        # A traceback has no other words.
        self.assertTrue(error.__suppress_context__)
