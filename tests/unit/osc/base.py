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

"""Commands of the ``openstack`` program without the program."""

import argparse
import io
import types
from typing import Any

import fixtures
import testtools

from nova_accel.osc import published
from nova_accel.testing import accelerator_api
from rig import quick_database


class CommandTestCase(testtools.TestCase):
    """The API, and an administrator who types.

    :ivar api: serves the database of the test
    """

    roles = ('admin',)

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(quick_database.QuickDatabases())
        # No host reports by itself.
        self.useFixture(fixtures.MockPatchObject(published, 'WAIT_S', 0))
        self.api = self.useFixture(accelerator_api.AcceleratorApi(self.roles))
        self.app = types.SimpleNamespace(
            client_manager=types.SimpleNamespace(accelerator=self.api.adapter),
            options=types.SimpleNamespace(debug=False),
            stdout=io.StringIO(),
            stderr=io.StringIO(),
        )

    def parse(
        self, command: type[Any], *arguments: str
    ) -> tuple[Any, argparse.Namespace]:
        made = command(self.app, None)
        return made, made.get_parser('openstack').parse_args([*arguments])

    def listed(
        self, command: type[Any], *arguments: str
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """The columns and rows of a list."""
        made, parsed = self.parse(command, *arguments)
        columns, rows = made.take_action(parsed)
        return columns, [*rows]

    def run_list(
        self, command: type[Any], *arguments: str
    ) -> tuple[int, tuple[str, ...], list[tuple[Any, ...]]]:
        """The exit status, the columns and the rows of a list."""
        made, parsed = self.parse(command, *arguments)
        shown: list[Any] = [(), []]

        def produce(
            _parsed: argparse.Namespace,
            columns: tuple[str, ...],
            rows: list[tuple[Any, ...]],
        ) -> int:
            shown[:] = columns, [*rows]
            return 0

        made.produce_output = produce
        return made.run(parsed), shown[0], shown[1]

    @property
    def said(self) -> str:
        """The warnings of commands."""
        return self.app.stderr.getvalue()
