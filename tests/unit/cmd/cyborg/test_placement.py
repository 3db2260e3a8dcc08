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

from collections.abc import Callable
from collections.abc import Iterator
import itertools
from typing import Any

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.cmd.cyborg import placement
from nova_accel.model.cyborg import allocation_moves
from nova_accel.model.cyborg import hosts
from unit.cmd import made_up_placement

_NODE = 'node'


def _provider(uuid: str, is_disabled: bool = False) -> hosts.CyborgProvider:
    return hosts.CyborgProvider(uuid, 'PGPU', 1, is_disabled)


def _move(source: str, target: str) -> allocation_moves.AllocationMove:
    return allocation_moves.AllocationMove(
        allocation_moves.MovedUnit(source, 'PGPU'),
        allocation_moves.MovedUnit(target, 'PGPU'),
    )


class PlacementTestCase(testtools.TestCase):
    """Three servers have the units of three of Cyborg's providers.

    One of our providers has room for them. Each server has memory, too.
    """

    servers = ('a', 'b', 'c')
    providers = tuple(_provider(f'of {server}') for server in servers)

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.placement = self.useFixture(made_up_placement.MadeUpPlacement())
        self.placement.provider(_NODE, MEMORY_MB=1024)
        self.placement.provider('ours', PGPU=3)
        for server in self.servers:
            self.placement.provider(f'of {server}', PGPU=1)
            self.placement.allocate(server, _NODE, MEMORY_MB=64)
            self.placement.allocate(server, f'of {server}', PGPU=1)
        self.moves = {
            server: [_move(f'of {server}', 'ours')] for server in self.servers
        }

    def allocated(self, unit: str) -> dict[str, Any]:
        return {_NODE: {'MEMORY_MB': 64}, unit: {'PGPU': 1}}

    def unavailable(self, call: Callable[..., Any], *arguments: Any) -> str:
        return str(
            self.assertRaises(exceptions.ServiceUnavailable, call, *arguments)
        )

    def losses(self) -> Iterator[int]:
        """Each change of a step, and its answer, until none is lost."""
        start = self.placement.state()
        for number, what in itertools.product(
            range(100), ('change', 'answer')
        ):
            self.placement.inventories, self.placement.allocations = start
            start = self.placement.state()
            self.placement.changes.clear()
            self.placement.lost = (number, what)
            yield number
            if len(self.placement.changes) <= number:
                return
        raise AssertionError('it does not end')

    def assert_it_ends_the_same(
        self, call: Callable[[], Any], least: int
    ) -> None:
        """Whatever was lost before it was called again."""
        ends = []
        for number in self.losses():
            try:
                call()
            except exceptions.ServiceUnavailable:
                pass
            else:
                self.assertLessEqual(len(self.placement.changes), number)
            self.placement.lost = None
            call()
            ends.append(self.placement.state())
        self.assertLess(2 * least, len(ends))
        self.assertEqual([ends[0]] * len(ends), ends)


class TestMove(PlacementTestCase):
    def assert_moved(self, *servers: str) -> None:
        self.assertEqual(
            {
                server: self.allocated(
                    'ours' if server in servers else f'of {server}'
                )
                for server in self.placement.allocations
            },
            self.placement.allocations,
        )

    def test_all_and_again(self) -> None:
        self.assertEqual({}, placement.move(self.moves))
        self.assert_moved('a', 'b', 'c')
        self.assertEqual(3, len(self.placement.changes))
        self.assertEqual({}, placement.move(self.moves))
        self.assertEqual(3, len(self.placement.changes))

    def test_a_server_that_is_gone(self) -> None:
        del self.placement.allocations['b']
        self.assertEqual({}, placement.move(self.moves))
        self.assert_moved('a', 'c')

    def test_somebody_else_is_first(self) -> None:
        """What he has added stays."""
        self.placement.meanwhile = [
            lambda: self.placement.allocate('a', 'disks', DISK_GB=1)
        ]
        self.placement.provider('disks', DISK_GB=10)
        self.assertEqual({}, placement.move({'a': self.moves['a']}))
        self.assertEqual(
            {**self.allocated('ours'), 'disks': {'DISK_GB': 1}},
            self.placement.allocations['a'],
        )
        self.assertEqual(2, len(self.placement.changes))

    def test_somebody_else_is_always_first(self) -> None:
        self.placement.meanwhile = [
            lambda: self.placement.allocate('a', _NODE, MEMORY_MB=64)
        ] * 100
        left = placement.move({'a': self.moves['a']})
        self.assertEqual(['a'], list(left))
        self.assertIn('does not put /allocations/a', left['a'])
        self.assert_moved()

    def test_others_are_moved_when_one_has_no_room(self) -> None:
        self.placement.provider('full')
        self.moves['b'] = [_move('of b', 'full')]
        left = placement.move(self.moves)
        self.assertEqual(['b'], list(left))
        self.assertIn('no room at full', left['b'])
        self.assert_moved('a', 'c')

    def test_nova_has_not_told_of_a_provider_yet(self) -> None:
        self.moves['b'] = [_move('of b', 'later')]
        left = placement.move(self.moves)
        self.assertEqual(['b'], list(left))
        self.assertIn('later does not exist', left['b'])
        self.assert_moved('a', 'c')
        self.placement.provider('later', PGPU=1)
        self.assertEqual({}, placement.move(self.moves))
        self.assertEqual(
            self.allocated('later'), self.placement.allocations['b']
        )

    def test_nova_and_cyborg_do_not_agree(self) -> None:
        self.moves['b'] *= 2
        left = placement.move(self.moves)
        self.assertEqual(['b'], list(left))
        self.assertIn('its ARQs have 2', left['b'])
        self.assert_moved('a', 'c')

    def test_placement_fails(self) -> None:
        self.placement.faults['/allocations/b'] = 500
        self.assertIn(
            '500 to /allocations/b',
            self.unavailable(placement.move, self.moves),
        )
        self.assertEqual(
            self.allocated('of b'), self.placement.allocations['b']
        )
        self.placement.faults.clear()
        self.assertEqual({}, placement.move(self.moves))
        self.assert_moved('a', 'b', 'c')

    def test_the_connection_is_lost(self) -> None:
        self.assert_it_ends_the_same(
            lambda: self.assertEqual({}, placement.move(self.moves)),
            len(self.servers),
        )
        self.assert_moved('a', 'b', 'c')


class TestInventories(PlacementTestCase):
    """Of Cyborg's providers, of which no one has anything any more."""

    def setUp(self) -> None:
        super().setUp()
        placement.move(self.moves)
        self.placement.changes.clear()

    def assert_offered(self, *expected: dict[str, Any]) -> None:
        self.assertEqual(
            list(expected),
            [
                self.placement.inventories[provider.uuid]
                for provider in self.providers
            ],
        )

    def test_emptied_and_again(self) -> None:
        self.assertEqual(3, placement.empty(self.providers))
        self.assert_offered({}, {}, {})
        self.assertEqual(0, placement.empty(self.providers))
        self.assertEqual(3, len(self.placement.changes))

    def test_filled_and_again(self) -> None:
        theirs = self.placement.state()
        placement.empty(self.providers)
        self.assertEqual(3, placement.fill(self.providers, True))
        self.assertEqual(theirs, self.placement.state())
        self.assertEqual(0, placement.fill(self.providers, True))

    def test_a_disabled_device_offers_nothing(self) -> None:
        providers = [_provider('of a', is_disabled=True)]
        placement.fill(providers, is_disabled_kept=True)
        full = made_up_placement.inventory
        self.assert_offered(
            {'PGPU': full(1, reserved=1)}, {'PGPU': full(1)}, {'PGPU': full(1)}
        )
        # Unless an allocation comes back.
        placement.fill(providers, is_disabled_kept=False)
        self.assert_offered(*[{'PGPU': full(1)}] * 3)

    def test_a_provider_that_is_gone(self) -> None:
        del self.placement.inventories['of b']
        self.assertEqual(2, placement.empty(self.providers))
        self.assertNotIn('of b', self.placement.inventories)

    def test_somebody_still_has_something(self) -> None:
        self.placement.allocate('stranger', 'of b', PGPU=1)
        fault = self.assertRaises(
            exceptions.Conflict, placement.empty, self.providers
        )
        self.assertIn('/resource_providers/of b', str(fault))
        self.assertTrue(self.placement.inventories['of b'])

    def test_somebody_else_is_first(self) -> None:
        self.placement.meanwhile = [
            lambda: self.placement.set_inventories('of a', PGPU=2)
        ]
        self.assertEqual(1, placement.empty(self.providers[:1]))
        self.assertEqual({}, self.placement.inventories['of a'])
        self.assertEqual(2, len(self.placement.changes))

    def test_somebody_else_is_always_first(self) -> None:
        self.placement.meanwhile = [
            lambda: self.placement.set_inventories('of a', PGPU=2)
        ] * 100
        self.assertRaises(
            exceptions.Conflict, placement.empty, self.providers[:1]
        )

    def test_placement_fails(self) -> None:
        path = '/resource_providers/of b/inventories'
        self.placement.faults[path] = 500
        self.assertIn(
            f'500 to {path}',
            self.unavailable(placement.empty, self.providers),
        )
        self.placement.faults.clear()
        placement.empty(self.providers)
        self.assert_offered({}, {}, {})

    def test_the_connection_is_lost(self) -> None:
        self.assert_it_ends_the_same(
            lambda: placement.empty(self.providers), 3
        )
        self.assert_offered({}, {}, {})
        self.assert_it_ends_the_same(
            lambda: placement.fill(self.providers, True), 3
        )


class TestProviders(PlacementTestCase):
    def test_consumers(self) -> None:
        self.placement.provider('of d', PGPU=2)
        for consumer in ('a', 'd'):
            self.placement.allocate(consumer, 'of d', PGPU=1)
        self.assertEqual(
            {
                'a': {'of a', 'of d'},
                'b': {'of b'},
                'c': {'of c'},
                'd': {'of d'},
            },
            placement.consumers(
                [*self.providers, _provider('of d'), _provider('gone')]
            ),
        )

    def test_existing(self) -> None:
        self.assertEqual(
            {'of a', 'of b', 'of c'},
            placement.existing([*self.providers, _provider('gone')]),
        )

    def test_deleted_and_again(self) -> None:
        placement.move(self.moves)
        uuids = [provider.uuid for provider in self.providers]
        for _time in range(2):
            placement.delete(uuids)
            self.assertEqual({_NODE, 'ours'}, {*self.placement.inventories})

    def test_one_that_is_in_use_is_not_deleted(self) -> None:
        fault = self.assertRaises(
            exceptions.Conflict, placement.delete, ['of a']
        )
        self.assertIn('in use', str(fault))
        self.assertIn('of a', self.placement.inventories)

    def test_no_answer(self) -> None:
        self.placement.lost = (-1, 'change')
        for call in (placement.consumers, placement.existing):
            self.unavailable(call, self.providers)

    def test_the_connection_is_lost_while_they_are_deleted(self) -> None:
        placement.move(self.moves)
        self.assert_it_ends_the_same(
            lambda: placement.delete(
                provider.uuid for provider in self.providers
            ),
            3,
        )
        self.assertEqual({_NODE, 'ours'}, {*self.placement.inventories})
