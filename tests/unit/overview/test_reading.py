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

import testtools

from nova_accel.model import arq_types
from nova_accel.model.fleet import disagreement
from nova_accel.model.fleet import fleet_sources
from nova_accel.model.units import unit_state
from nova_accel.overview import reading

Kind = disagreement.Subject

OTHER = 'c1d2e3f4-0000-4000-8000-000000000001'


SERVER = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
MINE, FREE = 'provider-1', 'provider-2'


class _Sources:
    """A host with two units, of which a server has one.

    :ivar allocations: provider -> consumer -> class -> amount
    :ivar providers: those of Placement, each with its parent
    :ivar calls: what was asked, in order
    """

    def __init__(self) -> None:
        self.servers = {SERVER: fleet_sources.FleetServer('host', 'active')}
        self.providers = {'root': None, MINE: 'root', FREE: 'root'}
        self.allocations = {MINE: {SERVER: {'FPGA': 1}}}
        self.calls: list[str] = []

    def ours(self) -> fleet_sources.Ours:
        device = fleet_sources.FleetDevice(
            'device', 'host', 'pci', '0:0', 'FPGA', 0, 'enabled', None
        )
        arq = fleet_sources.FleetArq(
            'arq', 'Bound', str(arq_types.Role.ACTIVE), 'host', SERVER, 'FPGA'
        )
        return fleet_sources.Ours(
            [fleet_sources.FleetHost('host', 'host', False)],
            [device],
            [
                fleet_sources.FleetUnit(
                    f'unit of {rp_uuid}',
                    'device',
                    'region',
                    'FPGA',
                    rp_uuid,
                    '0:0',
                    unit_state.Condition(),
                    holder,
                )
                for rp_uuid, holder in ((MINE, arq), (FREE, None))
            ],
            [],
        )

    def nova(
        self, ours: fleet_sources.Ours, consumers: Collection[str]
    ) -> fleet_sources.NovaReading:
        asked = ours.instance_uuids.union(consumers)
        self.calls.append(f'nova {sorted(asked)}')
        return fleet_sources.NovaReading(dict(self.servers))

    def placement(self, path: str) -> Any:
        self.calls.append(path.partition('?')[0])
        if path.startswith('/traits'):
            return {'traits': ['CUSTOM_NOVA_ACCEL'] * bool(self.providers)}
        if path.endswith('/allocations'):
            rp_uuid = path.split('/')[2]
            if rp_uuid not in self.providers:
                return None
            return {
                'allocations': {
                    consumer: {'resources': amounts}
                    for consumer, amounts in self.allocations.get(
                        rp_uuid, {}
                    ).items()
                }
            }
        return {
            'resource_providers': [
                {'uuid': uuid, 'name': uuid, 'parent_provider_uuid': parent}
                for uuid, parent in self.providers.items()
            ]
        }


def _of(rp_uuid: str) -> str:
    return f'/resource_providers/{rp_uuid}/allocations'


class TestRead(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.sources = _Sources()

    def kinds(self, asks_placement: bool = True) -> list[Kind]:
        return [
            each.kind
            for each in reading.read(self.sources, asks_placement).compared
        ]

    def test_all_agree(self) -> None:
        self.assertEqual([], self.kinds(False))
        self.assertEqual([f"nova ['{SERVER}']"], self.sources.calls)
        self.sources.calls.clear()
        self.assertEqual([], self.kinds())
        self.assertEqual(
            ['/traits', '/resource_providers', _of(MINE), _of(FREE)],
            [*self.sources.calls[:2], *sorted(self.sources.calls[2:-1])],
        )

    def test_what_lasts_is_told(self) -> None:
        self.sources.servers.clear()
        self.assertEqual([Kind.LEAK], self.kinds(False))
        # Each source twice, however many there are.
        self.assertEqual(2, len(self.sources.calls))

    def test_what_passes_is_not_told(self) -> None:
        self.sources.servers.clear()
        asked = self.sources.nova

        def came_meanwhile(*arguments: Any) -> fleet_sources.NovaReading:
            found = asked(*arguments)
            self.sources.servers[SERVER] = fleet_sources.FleetServer(
                'host', 'active'
            )
            return found

        self.sources.nova = came_meanwhile
        self.assertEqual([], self.kinds(False))
        self.assertEqual(2, len(self.sources.calls))

    def test_a_glance_is_one_look(self) -> None:
        self.sources.servers.clear()
        found = reading.glance(self.sources)
        self.assertEqual(2, len(found.rows))
        self.assertFalse(found.is_placement_asked)
        self.assertEqual(1, len(self.sources.calls))

    def test_allocations_are_asked_again(self) -> None:
        self.sources.allocations[MINE][OTHER] = {'FPGA': 1}
        self.assertEqual([Kind.OVERCOUNTED], self.kinds())
        self.assertEqual(2, self.sources.calls.count(_of(MINE)))
        self.assertIn(f"nova ['{SERVER}', '{OTHER}']", self.sources.calls)

        asked = self.sources.placement

        def ended_meanwhile(path: str) -> Any:
            found = asked(path)
            if path == _of(MINE):
                self.sources.allocations[MINE] = {SERVER: {'FPGA': 1}}
            return found

        self.sources.placement = ended_meanwhile
        self.assertEqual([], self.kinds())

    def test_a_provider_that_placement_lacks(self) -> None:
        del self.sources.providers[MINE]
        self.assertEqual([Kind.UNCOUNTED], self.kinds())

    def test_no_host_has_published_yet(self) -> None:
        self.sources.providers.clear()
        self.sources.allocations.clear()
        self.assertEqual([Kind.UNCOUNTED], self.kinds())
        self.assertNotIn('/resource_providers', self.sources.calls)
