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


import io
import json
import types

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.cmd import server
from nova_accel.model.profiles import device_profile


class TestToKey(testtools.TestCase):
    """tests/functional/test_flavor_key.py has Nova's real databases."""

    def setUp(self) -> None:
        super().setUp()
        self.out, self.err = io.StringIO(), io.StringIO()
        self.asked: list[tuple[str, str]] = []
        self.faults: dict[str, Exception] = {}
        for name, fake in (
            ('cells.connect', lambda: None),
            ('embedded_flavor.change_key', self.change_key),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(f'nova_accel.cmd.server.{name}', fake)
            )

    def change_key(self, uuid: str, key: str) -> bool:
        if uuid in self.faults:
            raise self.faults[uuid]
        self.asked.append((uuid, key))
        return uuid != 'done'

    def run_command(self, command: type[server.ToNative], *uuids: str) -> int:
        app = types.SimpleNamespace(
            stdout=self.out,
            stderr=self.err,
            options=types.SimpleNamespace(debug=False),
        )
        program = command(app, None)
        return program.run(
            program.get_parser('server').parse_args([*uuids, '-f', 'json'])
        )

    def test_each_command_has_its_key(self) -> None:
        for command, key in (
            (server.ToNative, device_profile.FLAVOR_KEY),
            (server.ToCompat, device_profile.CYBORG_FLAVOR_KEY),
        ):
            self.assertEqual(0, self.run_command(command, 'one', 'two'))
            self.assertEqual([('one', key), ('two', key)], self.asked)
            self.asked.clear()

    def test_one_that_cannot_be_changed_does_not_stop_the_others(self) -> None:
        self.faults['busy'] = exceptions.Conflict('it is resized')
        self.assertEqual(
            1, self.run_command(server.ToNative, 'busy', 'done', 'one')
        )
        self.assertEqual(
            [
                {'Server': 'busy', 'Result': 'not changed: it is resized'},
                {
                    'Server': 'done',
                    'Result': f'has {device_profile.FLAVOR_KEY} already',
                },
                {'Server': 'one', 'Result': 'changed'},
            ],
            json.loads(self.out.getvalue()),
        )

    def test_the_database_is_away(self) -> None:
        self.faults['one'] = RuntimeError('no database')
        self.assertEqual(2, self.run_command(server.ToNative, 'one'))
        self.assertEqual('no database\n', self.err.getvalue())
