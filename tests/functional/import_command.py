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

"""The command that moves a cloud from Cyborg, as a test types it."""

import contextlib
import io
import json
import types

import fixtures

from nova_accel import exceptions
from nova_accel.cmd import placement_call
from nova_accel.cmd.cyborg import import_cyborg
from rig.cyborg import tables


class ImportCommand:
    """A mixin of a test case: Cyborg's database, and the command.

    :ivar tables: of Cyborg
    """

    def setUp(self):
        super().setUp()
        # The tests' own databases are set up.
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.cmd.cells.connect', lambda: None)
        )
        self.tables = self.useFixture(tables.Tables('mysql'))

    def run_step(self, *arguments, status=0):
        """:returns: the printed JSON object, or the error"""
        found, out, err = self.run_program(*arguments)
        self.assertEqual(status, found, out + err)
        return json.loads(out) if out else err

    def run_program(self, *arguments):
        """:returns: the exit status, and what it has printed"""
        out, err = io.StringIO(), io.StringIO()
        app = types.SimpleNamespace(
            stdout=out,
            stderr=err,
            options=types.SimpleNamespace(debug=False),
        )
        program = import_cyborg.ImportCyborg(app, None)
        parser = program.get_parser('import-cyborg')
        status = program.run(
            parser.parse_args(
                ['--from', self.tables.url, '--json', *arguments]
            )
        )
        return status, out.getvalue(), err.getvalue()

    def kill_and_repeat(self, *arguments):
        """Repeat a step that ends at its first change, then at the second.

        :returns: how often it was repeated
        """
        for number in range(100):
            with self.killed_after(number) as killed:
                status, *_printed = self.run_program(*arguments)
            if not killed:
                self.assertEqual(0, status)
                return number
            self.assertEqual(2, status)
        raise AssertionError('it does not end')

    @contextlib.contextmanager
    def killed_after(self, changes):
        """Placement is away after so many changes.

        :returns: the calls that it did not answer
        """
        real = placement_call.call
        left = iter(range(changes))
        refused = []

        def call(method, path, **further):
            if method != 'get' and next(left, None) is None:
                refused.append(path)
                raise exceptions.ServiceUnavailable('killed')
            return real(method, path, **further)

        with fixtures.MonkeyPatch('nova_accel.cmd.placement_call.call', call):
            yield refused
