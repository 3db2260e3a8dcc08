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


from collections.abc import Collection
from typing import Any

import fixtures

from nova_accel.cmd import database_fleet
from nova_accel.model.fleet import disagreement
from nova_accel.model.fleet import fleet_sources
from unit.cmd import base

Kind = disagreement.Subject


class TestRead(base.DriftTestCase):
    """A host with two regions, whose Placement and Nova are made up."""

    def setUp(self) -> None:
        super().setUp()
        self.known: dict[str, fleet_sources.FleetServer] = {}
        self.nova: list[list[str]] = []
        self.paths: list[str] = []
        for name, fake in (
            ('cells.read', self.ask_nova),
            ('placement_call.call', self.call),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(f'nova_accel.cmd.{name}', fake)
            )

    def ask_nova(self, uuids: Collection[str]) -> fleet_sources.NovaReading:
        self.nova.append(sorted(uuids))
        return fleet_sources.NovaReading(dict(self.known))

    def call(self, method: str, path: str) -> Any:
        self.assertEqual('get', method)
        self.paths.append(path)
        return {'traits': []}

    def kinds(self, asks_placement: bool = False) -> list[Kind]:
        return [
            each.kind for each in database_fleet.read(asks_placement).compared
        ]

    def test_the_databases(self) -> None:
        self.acquire()
        self.known[base.SERVER] = fleet_sources.FleetServer(
            base.HERE, 'active'
        )
        self.assertEqual([], self.kinds())
        self.assertEqual([[base.SERVER]], self.nova)
        self.known.clear()
        self.assertEqual([Kind.LEAK], self.kinds())
        self.assertEqual([], self.paths)

    def test_placement(self) -> None:
        self.acquire()
        self.known[base.SERVER] = fleet_sources.FleetServer(
            base.HERE, 'active'
        )
        self.assertEqual([Kind.UNCOUNTED], self.kinds(True))
        self.assertTrue(self.paths[0].startswith('/traits?name=in:'))
