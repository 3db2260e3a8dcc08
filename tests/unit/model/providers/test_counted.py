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


import collections
from collections.abc import Collection
import dataclasses

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import binding_repairs
from nova_accel.model import host_binding
from nova_accel.model import naming
from nova_accel.model import nova_server
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice
from nova_accel.model.providers import counted
from nova_accel.model.providers import provider_layout
from unit.model.cards import slices

HERE, THERE = 'here', 'there'
SERVER, MIGRATION = 'server', 'migration'
STAYS, GONE_AWAY = nova_server.Server(HERE), nova_server.Server(THERE)
Place = provider_layout.Place
Role = arq_types.Role
Units = counted.Units


def held(
    *places: Place,
    role: Role | None = Role.ACTIVE,
    instance: str = SERVER,
    attempt: int = 1,
    slice: card_slice.CardSlice | None = None,
) -> host_binding.Binding:
    arqs = tuple(
        arq_types.Arq(
            f'{instance} {number}',
            arq_types.State.BOUND,
            'profile',
            number,
            {f'resources:{place.resource_class}': '1'},
            place.rp_uuid,
            attach_handle.AttachHandle(
                f'handle {number}',
                pci_address.PciAddress(0, 0x81, 0, 0),
                slice=slice,
            ),
        )
        for number, place in enumerate(places)
    )
    return host_binding.Binding(
        instance, role, attempt, tuple(arq.uuid for arq in arqs), arqs
    )


def host(
    *in_journal: host_binding.Binding,
    servers: dict[str, nova_server.Server] | None = None,
    listed: Collection[host_binding.Binding] = (),
    guests: Collection[str] = (),
) -> binding_repairs.HostBindings:
    return binding_repairs.HostBindings(
        HERE,
        in_journal,
        {
            (each.instance_uuid, each.role)
            for each in in_journal
            if each.role is not None
        },
        listed,
        servers or {},
        guests,
    )


FPGA, VGPU = Place('card', 'FPGA'), Place('gpu', 'VGPU')
OTHER_VGPU = Place('other gpu', 'VGPU')
#: The source of a move has its allocations by its migration.
MOVES = counted.Consumers({MIGRATION: counted.Migration(SERVER, True)})


class TestLacking(testtools.TestCase):
    def lacking(
        self,
        allocated: dict[str, dict[str, dict[str, int]]],
        *bindings: host_binding.Binding,
    ) -> dict[str, Units]:
        return counted.lacking(bindings, allocated, MOVES)

    def test_what_is_allocated(self) -> None:
        for allocated in (
            {SERVER: {'card': {'FPGA': 1}, 'gpu': {'VGPU': 2}}},
            # More than that is for leftovers to say.
            {SERVER: {'card': {'FPGA': 2}, 'gpu': {'VGPU': 3}}},
            {MIGRATION: {'card': {'FPGA': 1}, 'gpu': {'VGPU': 2}}},
            {
                SERVER: {'card': {'FPGA': 1}},
                MIGRATION: {'gpu': {'VGPU': 2}},
            },
        ):
            self.assertEqual(
                {}, self.lacking(allocated, held(FPGA, VGPU, VGPU)), allocated
            )

    def test_what_is_not(self) -> None:
        binding = held(FPGA, VGPU, VGPU)
        for allocated, expected in (
            ({}, {FPGA: 1, VGPU: 2}),
            ({SERVER: {'gpu': {'VGPU': 1}}}, {FPGA: 1, VGPU: 1}),
            ({'another': {'gpu': {'VGPU': 2}}}, {FPGA: 1, VGPU: 2}),
        ):
            self.assertEqual(
                {SERVER: Units(expected)}, self.lacking(allocated, binding)
            )

    def test_both_sides_of_a_resize_on_one_host(self) -> None:
        both = held(VGPU), held(VGPU, role=Role.OLD)
        side = {'gpu': {'VGPU': 1}}
        self.assertEqual(
            {}, self.lacking({SERVER: side, MIGRATION: side}, *both)
        )
        self.assertEqual(
            {SERVER: Units({VGPU: 1})}, self.lacking({MIGRATION: side}, *both)
        )

    def test_what_has_moved_to_another_provider(self) -> None:
        """The journal follows a reshape only later."""
        moved = {SERVER: {'other gpu': {'VGPU': 1}}}
        self.assertEqual({}, self.lacking(moved, held(VGPU)))
        self.assertEqual(
            {SERVER: Units({FPGA: 1})}, self.lacking(moved, held(VGPU, FPGA))
        )


HALF, SHARE = (
    Place('card', resource_class)
    for resource_class in ('CUSTOM_SHAPE_MIG_3G_40GB', naming.CARD_SHARE)
)
IN_HALF = slices.eighths('mig:3g.40gb', 4, 4)


class TestShares(testtools.TestCase):
    """Of cards of many shapes."""

    def allocated(self, units: int, share: int) -> dict[str, dict[str, int]]:
        return {
            'card': {HALF.resource_class: units, SHARE.resource_class: share}
        }

    def test_lacking(self) -> None:
        size = IN_HALF.size
        for units, share, lacking in (
            (2, 2 * size, {}),
            # As cards of another product need.
            (2, 2 * size + 1, {}),
            (2, size, {SHARE: size}),
            (1, size, {HALF: 1, SHARE: size}),
        ):
            self.assertEqual(
                {SERVER: Units(lacking)} if lacking else {},
                counted.lacking(
                    [held(HALF, HALF, slice=IN_HALF)],
                    {SERVER: self.allocated(units, share)},
                    MOVES,
                ),
            )

    def test_excess(self) -> None:
        kept = held(HALF, slice=IN_HALF).arqs
        self.assertEqual(
            {}, counted.excess(kept, self.allocated(1, IN_HALF.size))
        )
        self.assertEqual(
            self.allocated(1, IN_HALF.size),
            counted.excess(kept, self.allocated(2, 2 * IN_HALF.size)),
        )

    def test_units_that_share_no_card_take_none(self) -> None:
        self.assertEqual(
            {SERVER: Units({FPGA: 1})},
            counted.lacking([held(FPGA)], {}, MOVES),
        )


places = st.sampled_from([FPGA, VGPU, OTHER_VGPU])


class TestExcess(testtools.TestCase):
    def test_what_is_allocated_beyond_what_is_kept(self) -> None:
        kept = held(FPGA, VGPU).arqs
        for allocated, expected in (
            ({'card': {'FPGA': 1}, 'gpu': {'VGPU': 1}}, {}),
            ({'card': {'FPGA': 2}, 'gpu': {'VGPU': 1}}, {'card': {'FPGA': 1}}),
            (
                {'card': {'FPGA': 1}, 'other': {'FPGA': 1}},
                {'other': {'FPGA': 1}},
            ),
            # What is lacking is no excess of anything else.
            ({'other': {'VGPU': 1}}, {'other': {'VGPU': 1}}),
            ({}, {}),
        ):
            self.assertEqual(expected, counted.excess(kept, allocated))


class TestProperties(testtools.TestCase):
    @hypothesis.given(
        st.lists(st.tuples(st.sampled_from('ab'), places), max_size=8),
        st.data(),
    )
    def test_what_is_lost_is_lacking_and_nothing_else(
        self, units: list[tuple[str, Place]], data: st.DataObject
    ) -> None:
        """In its amount and class; in its place, too, if nothing is spare."""
        kept = [unit for unit in units if data.draw(st.booleans())]
        allocated: dict[str, dict[str, dict[str, int]]] = {}
        for instance, place in kept:
            of_provider = allocated.setdefault(instance, {}).setdefault(
                place.rp_uuid, collections.Counter()
            )
            of_provider[place.resource_class] += 1
        found = counted.lacking(
            [
                held(
                    *(p for i, p in units if i == instance), instance=instance
                )
                for instance in 'ab'
            ],
            allocated,
            counted.Consumers(),
        )
        lost = collections.Counter(units) - collections.Counter(kept)
        self.assertEqual(
            lost,
            collections.Counter(
                {
                    (instance, place): amount
                    for instance, counts in found.items()
                    for place, amount in counts.items()
                }
            ),
        )

    @hypothesis.given(
        st.lists(places), st.dictionaries(st.just('VGPU'), st.integers(0, 9))
    )
    def test_what_is_left_without_some(
        self, units: list[Place], spare: dict[str, int]
    ) -> None:
        before = Units(units)
        left = counted.less(before, spare)
        self.assertLessEqual(left, before)
        self.assertEqual(
            max(0, before[VGPU] + before[OTHER_VGPU] - spare.get('VGPU', 0)),
            left[VGPU] + left[OTHER_VGPU],
        )
        self.assertEqual(before[FPGA], left[FPGA])


class TestLasting(testtools.TestCase):
    def test_what_was_held_all_the_time(self) -> None:
        kept, gone, new = (
            held(instance=instance) for instance in ('kept', 'gone', 'new')
        )
        before, after = held(attempt=1), held(attempt=2)
        self.assertEqual(
            [kept], counted.lasting([kept, gone, before], [kept, new, after])
        )


class TestSettled(testtools.TestCase):
    def test_its_allocations_are_what_it_holds(self) -> None:
        for roles in ([Role.ACTIVE], [Role.ACTIVE, Role.PORT], [Role.PORT]):
            self.assertTrue(counted.is_settled(STAYS, roles, HERE))

    def test_nova_may_change_them(self) -> None:
        for server in (
            None,
            GONE_AWAY,
            dataclasses.replace(STAYS, task_state='rebuilding'),
            dataclasses.replace(STAYS, vm_state='building'),
            dataclasses.replace(STAYS, is_migrating=True),
        ):
            self.assertFalse(
                counted.is_settled(server, [Role.ACTIVE], HERE), server
            )
        for role in (Role.OLD, Role.INCOMING):
            self.assertFalse(
                counted.is_settled(STAYS, [Role.ACTIVE, role], HERE), role
            )


class TestLeftovers(testtools.TestCase):
    def left(
        self,
        found: binding_repairs.HostBindings,
        consumer: str = SERVER,
        is_unfinished: bool = False,
        deleted: Collection[str] = (),
    ) -> list[str]:
        return [
            uuid
            for uuid, _why in counted.leftovers(
                found,
                [consumer],
                counted.Consumers(
                    {MIGRATION: counted.Migration(SERVER, is_unfinished)},
                    deleted,
                ),
            )
        ]

    def test_an_instance_that_is_elsewhere(self) -> None:
        self.assertEqual(
            [SERVER], self.left(host(servers={SERVER: GONE_AWAY}))
        )

    def test_an_instance_that_is_deleted(self) -> None:
        self.assertEqual([SERVER], self.left(host(), deleted=[SERVER]))

    def test_a_migration(self) -> None:
        for server, is_unfinished, is_left in (
            (STAYS, True, False),
            (STAYS, False, True),
            (GONE_AWAY, True, False),
            (GONE_AWAY, False, True),
            (
                nova_server.Server(HERE, task_state='resize_finish'),
                False,
                False,
            ),
        ):
            self.assertEqual(
                [MIGRATION] if is_left else [],
                self.left(
                    host(servers={SERVER: server}), MIGRATION, is_unfinished
                ),
                (server, is_unfinished),
            )
        for is_unfinished in (True, False):
            self.assertEqual(
                [MIGRATION], self.left(host(), MIGRATION, is_unfinished)
            )

    def test_who_may_need_it(self) -> None:
        for found in (
            # It may be a server that Nova is about to create.
            host(),
            host(servers={SERVER: STAYS}),
            host(servers={SERVER: nova_server.Server(None, 'building')}),
            host(servers={SERVER: GONE_AWAY}, guests={SERVER}),
            host(held(), servers={SERVER: GONE_AWAY}),
            host(listed=[held(role=None)], servers={SERVER: GONE_AWAY}),
            # It was released after the journal was first read.
            dataclasses.replace(
                host(held(), servers={SERVER: GONE_AWAY}), journaled=set()
            ),
            dataclasses.replace(
                host(servers={SERVER: GONE_AWAY}),
                journaled={(SERVER, Role.OLD)},
            ),
        ):
            self.assertEqual([], self.left(found), found)

    def test_what_its_source_still_holds(self) -> None:
        for found in (
            host(held(role=Role.OLD)),
            host(guests={SERVER}),
        ):
            self.assertEqual([], self.left(found, MIGRATION), found)
