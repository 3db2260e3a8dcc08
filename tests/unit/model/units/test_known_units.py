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
from collections.abc import Sequence
import datetime
import random
from typing import Any

import fixtures
import testtools

from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import host_fit
from nova_accel.model.units import host_links
from nova_accel.model.units import known_units
from nova_accel.model.units import unit_changes
from nova_accel.model.units import unit_choice
from nova_accel.model.units import unit_claims
from unit.model import boards
from unit.model.cards import slices

NOW = datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC)


def deployable(
    hostname: str = 'one', uuid: str = 'a', free: int = 1, **facts: Any
) -> unit_changes.ChangedDeployable:
    """Of a provider of its own, unless another one is given."""
    return unit_changes.ChangedDeployable(
        **{
            'hostname': hostname,
            'uuid': uuid,
            'rp_uuid': f'rp-{uuid}',
            'resource_class': 'FPGA',
            'traits': frozenset(),
            'device_uuid': f'device-{uuid}',
            'numa_node': 0,
            'region': None,
            'bitstream_id': None,
            'total': 2,
            'free': free,
            **facts,
        }
    )


def group(
    amount: int = 1, *required: str, resource_class: str = 'FPGA'
) -> device_profile.Group:
    return device_profile.Group({resource_class: amount}, frozenset(required))


class KnownUnitsTestCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.known = known_units.KnownUnits()

    def apply(
        self,
        *others: unit_changes.ChangedDeployable,
        is_all: bool = False,
        silent: Sequence[str] = (),
        unpublished: Sequence[str] = (),
        now: float = 0,
        **of_hosts: Sequence[unit_changes.ChangedDeployable],
    ) -> None:
        self.known.apply(
            unit_changes.Changes(
                NOW,
                is_all,
                of_hosts,
                others,
                frozenset(silent),
                frozenset(unpublished),
            ),
            now,
        )

    def free(self, *uuids: str) -> list[int]:
        """The free units of the providers of their own."""
        return [
            sum(units.free for units in self.known.pool(f'rp-{uuid}'))
            for uuid in uuids
        ]


class TestApply(KnownUnitsTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.apply(
            is_all=True,
            one=[deployable(), deployable(uuid='b')],
            two=[deployable('two', 'c')],
        )

    def test_pools(self) -> None:
        [units] = self.known.pool('rp-a')
        self.assertEqual(deployable().units(), units)
        self.assertEqual((), tuple(self.known.pool('unknown')))

    def test_a_host_that_changes(self) -> None:
        """It has what it tells, and nothing else."""
        self.assertEqual([1, 1, 1], self.free('a', 'b', 'c'))
        self.apply(one=[deployable(free=2)])
        self.assertEqual([2, 0, 1], self.free('a', 'b', 'c'))
        self.apply(one=[])
        self.assertEqual([0, 0, 1], self.free('a', 'b', 'c'))
        self.assertEqual((), tuple(self.known.pool('rp-a')))

    def test_a_unit_that_changes(self) -> None:
        """The others of its host stay."""
        self.free('a', 'b')
        self.apply(deployable(free=0))
        self.assertEqual([0, 1], self.free('a', 'b'))

    def test_everything(self) -> None:
        self.apply(is_all=True, two=[deployable('two', 'd')])
        self.assertEqual([0, 0, 0, 1], self.free('a', 'b', 'c', 'd'))

    def test_another_provider(self) -> None:
        self.free('a', 'b')
        self.apply(deployable(rp_uuid='rp-b'))
        self.assertEqual([0, 2], self.free('a', 'b'))

    def test_another_host(self) -> None:
        """The former host may still be thought to have it."""
        self.apply(two=[deployable('two')])
        self.apply(one=[])
        self.assertEqual([1, 0, 0], self.free('a', 'b', 'c'))

    def test_silent_hosts(self) -> None:
        self.apply(silent=['two'])
        self.assertEqual({'two'}, self.known.silent)
        self.apply()
        self.assertEqual(frozenset(), self.known.silent)

    def test_hosts_of_which_placement_lacks_a_change(self) -> None:
        """They are suspected, and have what they have."""
        self.assertTrue(self.known.serves([group()]))
        self.apply(unpublished=['one'])
        self.assertTrue(self.known.serves([group()]))
        self.apply(unpublished=['one', 'two'])
        self.assertFalse(self.known.serves([group()]))
        self.assertEqual(
            {'one': 2, 'two': 1}, self.known.count_servers([group()])
        )
        self.assertEqual(
            {True},
            {each.is_unpublished for each in self.known.inventories({'FPGA'})},
        )
        self.apply()
        self.assertTrue(self.known.serves([group()]))

    def test_the_same_again_changes_nothing(self) -> None:
        before = [self.known.pool(f'rp-{uuid}') for uuid in 'abc']
        self.apply(
            deployable(),
            is_all=True,
            one=[deployable(), deployable(uuid='b')],
            two=[deployable('two', 'c')],
        )
        for uuid, pool in zip('abc', before, strict=True):
            self.assertIs(pool, self.known.pool(f'rp-{uuid}'))

    def test_idle_regions(self) -> None:
        held = {'region': 'r', 'bitstream_id': 'b', 'device_uuid': 'card'}
        self.assertEqual({}, self.known.idle_regions())
        self.apply(
            # Two units of one region.
            deployable(uuid='d', free=2, **held),
            deployable(uuid='e', free=2, **held),
            deployable(uuid='f', free=2, **held | {'region': 's'}),
            deployable(uuid='g', free=2, **held | {'bitstream_id': 'c'}),
            # In use, and without any unit.
            deployable(uuid='h', free=1, **held | {'region': 't'}),
            deployable(uuid='i', free=0, total=0, **held | {'region': 'u'}),
        )
        self.assertEqual({'b': 2, 'c': 1}, self.known.idle_regions())


class TestLargest(KnownUnitsTestCase):
    def test_what_hosts_have(self) -> None:
        self.assertEqual(0, self.known.largest(group()))
        self.apply(
            is_all=True,
            one=[
                deployable(total=2, free=0, rp_uuid='pool'),
                deployable(total=3, free=1, uuid='b', rp_uuid='pool'),
            ],
            two=[deployable('two', 'c', total=4)],
        )
        self.assertEqual(5, self.known.largest(group()))
        self.apply(one=[])
        self.assertEqual(4, self.known.largest(group()))


class TestShare(KnownUnitsTestCase):
    def test_what_hosts_have(self) -> None:
        half = slices.eighths('mig:3g.40gb', 4, 4)
        self.assertEqual(0, self.known.share(group()))
        self.apply(
            is_all=True,
            one=[deployable(slices=(slices.WHOLE,), free=0)],
            two=[deployable('two', 'c', slices=(half,))],
        )
        self.assertEqual(slices.WHOLE.size, self.known.share(group()))
        self.apply(one=[])
        self.assertEqual(half.size, self.known.share(group()))


class TestReserve(KnownUnitsTestCase):
    """A card that is whole, or two halves, and a pool."""

    WHOLE, HALF = ('card', 'WHOLE'), ('card', 'HALF')

    def setUp(self) -> None:
        super().setUp()
        halves = [slices.eighths('mig:3g.40gb', start, 4) for start in (0, 4)]
        self.apply(
            is_all=True,
            one=[
                deployable(
                    uuid=name,
                    rp_uuid='card',
                    resource_class=name,
                    total=len(offered),
                    free=len(offered),
                    slices=tuple(offered),
                )
                for name, offered in (
                    ('WHOLE', [slices.WHOLE]),
                    ('HALF', halves),
                )
            ]
            + [deployable(uuid='pool')],
        )

    def reserve(
        self, consumer: str, *places: tuple[str, str], instead: Any = ()
    ) -> bool:
        return self.known.reserve(
            consumer, dict.fromkeys(places, 1), dict.fromkeys(instead, 1), 0
        )

    def test_what_excludes_each_other(self) -> None:
        self.assertTrue(self.reserve('a', self.HALF))
        self.assertFalse(self.reserve('b', self.WHOLE))
        self.assertTrue(self.reserve('b', self.HALF))
        self.assertFalse(self.reserve('c', self.HALF))

    def test_a_claim_that_may_be_void(self) -> None:
        """Its server is gone before the database is read again."""
        for (_card, resource_class), other in (
            (self.WHOLE, self.HALF),
            (self.HALF, self.WHOLE),
        ):
            wanted = [group(resource_class=resource_class)]
            self.assertTrue(self.reserve('a', other))
            self.assertFalse(self.known.serves(wanted))
            self.assertTrue(self.known.may_serve(wanted))
            self.known.reserve('a', {}, {other: 1}, 0)
        self.assertFalse(self.known.may_serve([group(resource_class='NO')]))

    def test_in_the_place_of_others(self) -> None:
        self.assertTrue(self.reserve('a', self.HALF))
        self.assertTrue(self.reserve('a', self.WHOLE, instead=[self.HALF]))
        self.assertFalse(self.reserve('b', self.HALF))

    def promise(self, consumer: str, **hosts: Any) -> bool:
        """Promise half of a card to a server."""
        request = host_fit.Request((group(resource_class='HALF'),), **hosts)
        return self.known.promise(
            consumer, unit_claims.Promise(request, 1, 'project'), 0
        )

    def promised(self) -> int:
        return len(self.known.promises.before('', 0))

    def test_a_promise_ends_with_the_claim(self) -> None:
        self.assertEqual(
            [True, True, False], [self.promise(server) for server in 'abc']
        )
        # Its units count as claimed from then on.
        self.assertTrue(self.reserve('a', self.HALF))
        self.assertEqual(1, self.promised())
        self.assertFalse(self.promise('c'))
        self.known.claim('b', *self.HALF, 0, 0)
        self.assertEqual(1, self.promised())

    def test_a_promise_of_some_hosts(self) -> None:
        self.apply(two=[deployable('two', 'c', free=1)])
        for only, expected in (('one', True), ('two', False), ('no', True)):
            self.assertEqual(expected, self.promise('a', only=only))
        self.assertFalse(self.promise('a', without=['one']))

    def test_parts_of_groups(self) -> None:
        """A fabric gives no two GPUs that it does not join."""
        self.apply(
            two=[
                deployable('two', 'g', free=2, resource_class='PGPU', total=2)
            ]
        )
        [alone] = self.known.parts([group(resource_class='PGPU')])
        self.assertEqual(frozenset(), alone.forbidden)
        [several] = self.known.parts([group(2, resource_class='PGPU')])
        self.assertEqual({naming.FABRIC_TRAIT}, several.forbidden)
        self.assertEqual(
            [2, 1],
            [
                each.resources['PGPU']
                for each in self.known.parts([group(3, resource_class='PGPU')])
            ],
        )

    def test_servers_on_a_card(self) -> None:
        for (_card, name), amount in ((self.WHOLE, 1), (self.HALF, 2)):
            self.assertEqual(
                amount,
                sum(
                    self.known.count_servers(
                        [group(resource_class=name)]
                    ).values()
                ),
            )
        self.assertTrue(self.reserve('a', self.HALF))
        self.assertEqual(
            {}, self.known.count_servers([group(resource_class='WHOLE')])
        )

    def test_all_or_nothing(self) -> None:
        pool = 'rp-pool', 'FPGA'
        self.assertTrue(self.reserve('a', self.HALF))
        for places in ((pool, self.WHOLE), (self.HALF, self.WHOLE)):
            self.assertFalse(self.reserve('b', *places))
            self.assertEqual([1], self.free('pool'))
            self.assertEqual(
                [0, 1], [each.free for each in self.known.pool('card')]
            )

    def test_harm_to_cards(self) -> None:
        one, two, both = (
            self.known.harm_to_cards(amounts, True)
            for amounts in (
                {self.HALF: 1},
                {self.HALF: 2, ('rp-pool', 'FPGA'): 1},
                {self.HALF: 1, self.WHOLE: 1},
            )
        )
        assert one is not None and two is not None
        self.assertLess(one.lost, two.lost)
        self.assertIsNone(both)

    def test_an_unknown_provider(self) -> None:
        self.assertTrue(self.reserve('a', ('unknown', 'HALF')))


class TestCountServers(KnownUnitsTestCase):
    def test_each_takes_what_the_ones_before_left(self) -> None:
        """Units with the trait go first to who needs it."""
        self.apply(
            is_all=True,
            one=[
                deployable(rp_uuid='pool', free=2, total=2),
                deployable(
                    uuid='b',
                    rp_uuid='pool',
                    free=3,
                    total=3,
                    traits=frozenset({'CUSTOM_A'}),
                ),
            ],
            two=[deployable('two', 'c', free=1)],
        )
        for groups, expected in (
            ([group()], {'one': 5, 'two': 1}),
            ([group(2)], {'one': 2}),
            ([group(1, 'CUSTOM_A')], {'one': 3}),
            ([group(), group(1, 'CUSTOM_A')], {'one': 2}),
            ([group(6)], {}),
            ([group(resource_class='NO')], {}),
        ):
            self.assertEqual(expected, self.known.count_servers(groups))
        self.assertEqual(
            2, sum(self.known.count_servers([group()], most=2).values())
        )
        self.apply(silent=['one'])
        self.assertEqual({'two': 1}, self.known.count_servers([group()]))

    def test_after_another_profile(self) -> None:
        self.apply(is_all=True, one=[deployable(free=5)])
        for before, expected in (
            ([[group(2)]], {'one': 1}),
            ([[group(2)], [group()]], {}),
            ([[group(resource_class='NO')]], {'one': 5}),
        ):
            self.assertEqual(
                expected, self.known.count_servers([group()], before=before)
            )

    def test_it_claims_nothing(self) -> None:
        self.apply(is_all=True, one=[deployable(free=2)])
        for _time in range(2):
            self.assertEqual({'one': 2}, self.known.count_servers([group()]))
        self.known.claim('server', 'rp-a', 'FPGA', 1, 0)
        self.assertEqual({'one': 1}, self.known.count_servers([group()]))


class TestCost(KnownUnitsTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.apply(is_all=True, one=[deployable(), deployable(uuid='b')])

    def test_it_is_that_of_the_policy(self) -> None:
        choice = unit_choice.choose(group(), self.known.pool('rp-a'))
        assert choice is not None
        self.assertEqual(choice.cost, self.known.cost(group(), 'rp-a'))
        self.assertIsNone(self.known.cost(group(2), 'rp-a'))
        self.assertIsNone(self.known.cost(group(), 'unknown'))

    def test_it_is_remembered_until_the_provider_changes(self) -> None:
        one = group()
        costs = [self.known.cost(one, f'rp-{uuid}') for uuid in 'ab']
        self.apply(deployable(free=2))
        with fixtures.MonkeyPatch(
            'nova_accel.model.units.unit_choice.choose', lambda *_args: None
        ):
            self.assertIsNone(self.known.cost(one, 'rp-a'))
            self.assertEqual(costs[1], self.known.cost(one, 'rp-b'))
            self.assertEqual(costs[1], self.known.cost(group(), 'rp-b'))

    def test_demand(self) -> None:
        held = deployable(uuid='f', bitstream_id='b')
        self.apply(held)
        before = [self.known.cost(group(), f'rp-{uuid}') for uuid in 'af']
        pools = [self.known.pool(f'rp-{uuid}') for uuid in 'af']
        self.known.demand = {'b': 2.0}
        self.assertEqual({'b': 2.0}, self.known.demand)
        after = [self.known.cost(group(), f'rp-{uuid}') for uuid in 'af']
        self.assertEqual(before[0], after[0])
        assert after[1] is not None
        self.assertEqual(2.0, after[1].missed)
        # Nothing is made anew where it cannot matter.
        self.assertIs(pools[0], self.known.pool('rp-a'))


class TestClaims(KnownUnitsTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.apply(is_all=True, one=[deployable(free=2), deployable(uuid='b')])

    def claim(
        self, consumer: str = 'server', amount: int = 1, now: float = 0
    ) -> None:
        self.known.claim(consumer, 'rp-a', 'FPGA', amount, now)

    def test_they_are_not_free(self) -> None:
        self.assertIsNotNone(self.known.cost(group(2), 'rp-a'))
        self.claim()
        self.assertEqual([1, 1], self.free('a', 'b'))
        self.assertIsNone(self.known.cost(group(2), 'rp-a'))

    def test_until_they_are_bound(self) -> None:
        self.claim()
        self.apply(deployable(free=2))
        self.assertEqual([1], self.free('a'))
        self.apply(deployable(free=1))
        self.assertEqual([1], self.free('a'))
        self.apply(deployable(free=2))
        self.assertEqual([2], self.free('a'))

    def test_for_a_while(self) -> None:
        self.claim()
        for now, free in (
            (unit_claims.KEPT_S - 1, 1),
            (unit_claims.KEPT_S, 2),
        ):
            self.apply(now=now)
            self.assertEqual([free], self.free('a'))

    def test_of_an_unknown_provider(self) -> None:
        self.known.claim('server', 'unknown', 'FPGA', 1, 0)
        self.assertEqual((), tuple(self.known.pool('unknown')))


class TestServes(KnownUnitsTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.apply(
            is_all=True,
            one=[
                deployable(traits=frozenset('T')),
                deployable(uuid='b'),
                deployable(uuid='v', resource_class='VGPU', free=4),
            ],
            two=[deployable('two', 'c', free=2)],
        )

    def assert_served(
        self, *groups: device_profile.Group, is_isolated: bool = False
    ) -> None:
        # The second time by the host that is known to have room.
        for _again in range(2):
            self.assertTrue(self.known.serves(groups, is_isolated))

    def assert_not_served(
        self, *groups: device_profile.Group, is_isolated: bool = False
    ) -> None:
        self.assertFalse(self.known.serves(groups, is_isolated))

    def test_one_group(self) -> None:
        self.assert_served(group())
        self.assert_served(group(1, 'T'))
        self.assert_served(group(2))
        self.assert_not_served(group(3))
        self.assert_not_served(group(2, 'T'))
        self.assert_not_served(group(1, 'U'))
        self.assert_not_served(group(resource_class='CUSTOM_QAT'))

    def test_forbidden(self) -> None:
        self.apply(two=[])
        one = device_profile.Group({'FPGA': 1}, forbidden=frozenset('T'))
        self.assert_served(one)
        self.apply(deployable(uuid='b', free=0))
        self.assert_not_served(one)

    def test_how_many_hosts(self) -> None:
        self.apply(
            one=[deployable('one', 'a'), deployable('one', 'b')],
            two=[deployable('two', 'c')],
            three=[deployable('three', 'd', free=0)],
            four=[deployable('four', 'e')],
            silent=['four'],
        )
        self.assertEqual(2, self.known.count_hosts([group()]))
        self.assertEqual(1, self.known.count_hosts([group(), group()]))
        self.assertEqual(0, self.known.count_hosts([group(2)]))

    def test_one_provider_serves_a_group(self) -> None:
        self.apply(two=[])
        self.assert_not_served(group(2))

    def test_all_classes_of_a_group_come_of_one_provider(self) -> None:
        both = device_profile.Group({'FPGA': 1, 'VGPU': 1})
        self.assert_not_served(both)
        self.apply(deployable(uuid='b', rp_uuid='rp-v'))
        self.assert_served(both)

    def test_groups_together(self) -> None:
        self.assert_served(group(), group())
        self.assert_served(group(), group(1, 'T'))
        self.assert_served(group(), group(resource_class='VGPU'))
        self.assert_not_served(group(), group(), group())
        self.assert_not_served(group(1, 'T'), group(1, 'T'))
        self.assert_not_served(group(2), group(resource_class='VGPU'))

    def test_isolated_groups(self) -> None:
        self.assert_served(group(), group(), is_isolated=True)
        self.apply(one=[])
        self.assert_served(group(), group())
        self.assert_not_served(group(), group(), is_isolated=True)

    def test_silent_hosts(self) -> None:
        self.assert_served(group(2))
        self.apply(silent=['two'])
        self.assert_not_served(group(2))

    def test_the_host_that_had_room_is_full(self) -> None:
        self.assert_served(group(1, 'T'))
        self.apply(deployable(traits=frozenset('T'), free=0))
        self.assert_not_served(group(1, 'T'))
        self.apply(deployable('two', 'd', traits=frozenset('T')))
        self.assert_served(group(1, 'T'))

    def test_claims_count(self) -> None:
        self.known.claim('server', 'rp-c', 'FPGA', 1, 0)
        self.assert_not_served(group(2))

    def test_it_remembers_little(self) -> None:
        for number in range(1000):
            self.known.serves(
                [group(1 + number % 2, *['T'] * (number % 3 > 1))]
            )
            self.known.serves(
                [
                    device_profile.Group(
                        {'FPGA': 1}, forbidden=frozenset(str(number))
                    )
                ]
            )
        self.assertLessEqual(len(self.known._served_by), 256)

    def test_its_memory_changes_no_answer(self) -> None:
        """Compared with one that is asked for the first time."""
        randomly = random.Random(18)
        requests = (
            ([group()], False),
            ([group(2)], False),
            ([group(), group(1, 'T')], True),
        )
        events: list[Callable[[known_units.KnownUnits], None]] = []
        answers = set()
        self.known = known_units.KnownUnits()
        for number in range(200):
            events.append(_event(randomly, number))
            events[-1](self.known)
            other = known_units.KnownUnits()
            for event in events:
                event(other)
            for groups, is_isolated in requests:
                answer = self.known.serves(groups, is_isolated)
                self.assertEqual(other.serves(groups, is_isolated), answer)
                answers.add((len(groups), is_isolated, answer))
        self.assertEqual(4, len(answers))

    def test_never_a_promise_that_cannot_be_kept(self) -> None:
        """Compared with all ways to give providers to groups."""
        randomly = random.Random(17)
        for _round in range(300):
            here = [
                deployable(
                    uuid=str(number),
                    free=randomly.randrange(3),
                    traits=frozenset(
                        trait for trait in 'TU' if randomly.random() < 0.5
                    ),
                )
                for number in range(3)
            ]
            self.apply(is_all=True, one=here)
            groups = [
                group(
                    randomly.randrange(1, 3),
                    *(trait for trait in 'TU' if randomly.random() < 0.3),
                )
                for _number in range(randomly.randrange(1, 4))
            ]
            if self.known.serves(groups):
                self.assertTrue(_can_serve(groups, here))
            elif len(groups) == 1:
                self.assertFalse(_can_serve(groups, here))


def _event(
    randomly: random.Random, number: int
) -> Callable[[known_units.KnownUnits], None]:
    """A change of one of two hosts, or a claim; one each ten seconds."""
    uuid, hostname = randomly.choice(
        [('a', 'one'), ('b', 'one'), ('c', 'two')]
    )
    if randomly.random() < 0.3:
        return lambda known: known.claim(
            str(number), f'rp-{uuid}', 'FPGA', 1, 10 * number
        )
    changed = deployable(
        hostname,
        uuid,
        randomly.randrange(3),
        traits=frozenset(randomly.choice(('', 'T'))),
    )
    silent = frozenset(randomly.choice(([], [], ['one'])))
    changes = unit_changes.Changes(NOW, False, {}, [changed], silent)
    return lambda known: known.apply(changes, 10 * number)


def _can_serve(
    groups: Sequence[device_profile.Group],
    here: Sequence[unit_changes.ChangedDeployable],
) -> bool:
    if not groups:
        return True
    first, *others = groups
    return any(
        _can_serve(
            others,
            [
                *here[:number],
                each._replace(free=each.free - first.resources['FPGA']),
                *here[number + 1 :],
            ],
        )
        for number, each in enumerate(here)
        if each.free >= first.resources['FPGA']
        and first.required <= each.traits
    )


class TestLinks(KnownUnitsTestCase):
    """Hosts with a board each, of which pairs of GPUs are pools."""

    def board(self, *used: int, **kwargs: Any) -> None:
        self.apply(host=boards.deployables(used=used), **kwargs)

    def harm(self, *pairs: int) -> host_links.Harm | None:
        return self.known.harm(
            {(f'host-pair-{number}', 'PGPU'): 2 for number in pairs}
        )

    def serves(self, amount: int) -> bool:
        return self.known.serves(
            [device_profile.Group({'PGPU': 2}, link='nvlink')] * (amount // 2)
        )

    def test_the_largest_pool_of_a_set(self) -> None:
        self.board()
        group = device_profile.Group({'PGPU': 8}, link='nvlink')
        self.assertEqual(2, self.known.largest(group, 8))
        self.assertEqual(0, self.known.largest(group, 6))

    def test_harm_is_that_of_the_whole_host(self) -> None:
        self.board()
        self.assertEqual(host_links.Harm(2, 8, 6), self.harm(0))
        self.board(0)
        self.assertEqual(host_links.Harm(2, 2, 5), self.harm(1))

    def test_claims_break_sets(self) -> None:
        self.board()
        self.harm(0)
        self.known.claim('server', 'host-pair-3', 'PGPU', 1, 0.0)
        self.assertEqual(host_links.Harm(2, 4, 5), self.harm(0))
        self.known.claim('server', 'host-pair-3', 'PGPU', 0, 0.0)
        self.assertEqual(host_links.Harm(2, 8, 6), self.harm(0))

    def test_a_claim_of_a_pool_that_was_not_looked_at(self) -> None:
        self.board()
        self.known.claim('server', 'host-pair-3', 'PGPU', 1, 0.0)
        self.assertEqual(host_links.Harm(2, 4, 5), self.harm(0))
        self.apply(now=unit_claims.KEPT_S)
        self.assertEqual(host_links.Harm(2, 8, 6), self.harm(0))

    def test_a_pool_that_comes_later(self) -> None:
        gpus = boards.deployables()
        self.apply(host=gpus[:4])
        self.assertEqual(host_links.Harm(2, 4, 2), self.harm(0))
        self.apply(host=gpus)
        self.assertEqual(host_links.Harm(2, 8, 6), self.harm(0))
        self.apply(host=gpus[:2])
        self.assertEqual(host_links.Harm(2, 2, 0), self.harm(0))

    def test_hosts_without_links(self) -> None:
        self.apply(one=[deployable()])
        self.assertIsNone(self.known.harm({('rp-a', 'FPGA'): 1}))
        self.assertIsNone(self.known.harm({('unknown', 'FPGA'): 1}))
        self.assertEqual([], self.known.links())

    def test_whole_sets(self) -> None:
        self.board(0, 4)
        self.assertTrue(self.serves(2))
        self.assertFalse(self.serves(4))
        self.board(0)
        self.assertTrue(self.serves(4))
        self.assertFalse(self.serves(8))

    def test_hosts_that_report(self) -> None:
        self.board()
        self.assertEqual(1, len(self.known.links()))
        self.board(silent=['host'])
        self.assertEqual([], self.known.links())
