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

from nova_accel.cmd import fleet_reading
from nova_accel.model import fleet_drift
from nova_accel.model import fleet_sources
from unit.cmd import base

Kind = fleet_drift.Kind

OTHER = 'c1d2e3f4-0000-4000-8000-000000000001'


class TestRead(base.DriftTestCase):
    """A host with two regions, whose Placement and Nova are made up.

    :ivar allocations: provider -> consumer -> class -> amount
    :ivar providers: those of Placement
    :ivar calls: what was asked, in order
    """

    def setUp(self) -> None:
        super().setUp()
        self.known: dict[str, fleet_sources.Server] = {}
        self.calls: list[str] = []
        self.providers = {
            'root': None,
            self.host.rp_uuid(): 'root',
            self.host.rp_uuid(0, 1): 'root',
        }
        self.allocations: dict[str, dict[str, dict[str, int]]] = {}
        for name, fake in (
            ('cells.read', self.ask_nova),
            ('placement_call.call', self.call),
            ('placement_call.allocations', self.ask_placement),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(f'nova_accel.cmd.{name}', fake)
            )

    def ask_nova(self, uuids: Collection[str]) -> fleet_sources.Nova:
        self.calls.append(f'nova {sorted(uuids)}')
        return fleet_sources.Nova(dict(self.known))

    def call(self, method: str, path: str) -> Any:
        self.calls.append(path.partition('?')[0])
        if path.startswith('/traits'):
            return {'traits': ['CUSTOM_NOVA_ACCEL'] * bool(self.providers)}
        return {
            'resource_providers': [
                {'uuid': uuid, 'name': uuid, 'parent_provider_uuid': parent}
                for uuid, parent in self.providers.items()
            ]
        }

    def ask_placement(self, rp_uuid: str) -> dict[str, dict[str, int]]:
        self.calls.append(rp_uuid)
        return self.allocations.get(rp_uuid, {})

    def boot(self) -> None:
        self.acquire()
        self.known[base.SERVER] = fleet_sources.Server(base.HERE, 'active')
        self.allocations[self.host.rp_uuid()] = {base.SERVER: {'FPGA': 1}}

    def kinds(self, asks_placement: bool = True) -> list[Kind]:
        return [
            drift.kind for drift in fleet_reading.read(asks_placement).drifts
        ]

    def test_all_agree(self) -> None:
        self.boot()
        self.assertEqual([], self.kinds(False))
        self.assertEqual([f"nova ['{base.SERVER}']"], self.calls)
        self.calls.clear()
        self.assertEqual([], self.kinds())
        self.assertEqual(
            [
                '/traits',
                '/resource_providers',
                *sorted({*self.providers} - {'root'}),
            ],
            [*self.calls[:2], *sorted(self.calls[2:-1])],
        )

    def test_what_lasts_is_told(self) -> None:
        self.boot()
        self.known.clear()
        self.assertEqual([Kind.LEAK], self.kinds(False))
        # Twice by all statements, whatever their number.
        self.assertEqual(2, len(self.calls))

    def test_what_passes_is_not_told(self) -> None:
        self.boot()
        asked = self.ask_nova

        def deleted_meanwhile(uuids: Collection[str]) -> fleet_sources.Nova:
            found = asked(uuids)
            return (
                found._replace(servers={}) if len(self.calls) == 1 else found
            )

        with fixtures.MonkeyPatch(
            'nova_accel.cmd.cells.read', deleted_meanwhile
        ):
            self.assertEqual([], self.kinds(False))
        self.assertEqual(2, len(self.calls))

    def test_allocations_are_asked_again(self) -> None:
        self.boot()
        self.allocations[self.host.rp_uuid()][OTHER] = {'FPGA': 1}
        self.assertEqual([Kind.OVERCOUNTED], self.kinds())
        self.assertEqual(2, self.calls.count(self.host.rp_uuid()))
        self.assertIn(f"nova ['{base.SERVER}', '{OTHER}']", self.calls)

        def ended_meanwhile(rp_uuid: str) -> dict[str, dict[str, int]]:
            found = dict(self.ask_placement(rp_uuid))
            self.allocations[rp_uuid] = {base.SERVER: {'FPGA': 1}}
            return found

        with fixtures.MonkeyPatch(
            'nova_accel.cmd.placement_call.allocations', ended_meanwhile
        ):
            self.assertEqual([], self.kinds())

    def test_a_provider_that_placement_lacks(self) -> None:
        self.boot()
        del self.providers[self.host.rp_uuid()]
        self.allocations.clear()
        self.assertEqual([Kind.UNCOUNTED], self.kinds())

    def test_no_host_has_published_yet(self) -> None:
        self.providers = {}
        self.assertEqual([], self.kinds())
        self.assertNotIn('/resource_providers', self.calls)
