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


from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.model import link_places
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import explanation
from unit import call_count


def units(
    amount: int = 1, why: str | None = None, **fields: Any
) -> explanation.CheckedUnits:
    return explanation.CheckedUnits(
        **{
            'hostname': 'compute-1',
            'rp_uuid': 'rp',
            'resource_class': 'FPGA',
            'traits': frozenset({'CUSTOM_A'}),
            'device_uuid': 'device',
            'device_address': '0000:82:00.0',
            'is_silent': False,
            'why_not_free': why,
            'amount': amount,
            **fields,
        }
    )


class TestInventories(testtools.TestCase):
    def test_a_pool_has_all_of_its_devices(self) -> None:
        [pool] = explanation.inventories(
            [
                units(3),
                units(2, 'in use'),
                units(
                    1,
                    'in use',
                    device_uuid='other',
                    device_address='0000:83:00.0',
                    traits=frozenset({'CUSTOM_B'}),
                ),
            ]
        )
        self.assertEqual(
            explanation.Inventory(
                'compute-1',
                'rp',
                'FPGA',
                frozenset(
                    {
                        'CUSTOM_A',
                        'CUSTOM_B',
                        'CUSTOM_NOVA_ACCEL',
                        'OWNER_CYBORG',
                    }
                ),
                ('device', 'other'),
                {None: 3, 'in use': 3},
                device_addresses=('0000:82:00.0', '0000:83:00.0'),
            ),
            pool,
        )
        self.assertEqual((6, 3), (pool.total, pool.free))

    def test_by_host(self) -> None:
        self.assertEqual(
            [('compute-1', 'b'), ('compute-2', 'a')],
            [
                (each.hostname, each.rp_uuid)
                for each in explanation.inventories(
                    [
                        units(hostname='compute-2', rp_uuid='a'),
                        units(rp_uuid='b'),
                    ]
                )
            ],
        )

    def test_without_units(self) -> None:
        [empty] = explanation.inventories([units(0)])
        self.assertEqual((0, 0, {}), (empty.total, empty.free, empty.units))

    def test_nothing_of_a_silent_host_is_free(self) -> None:
        [silent] = explanation.inventories([units(is_silent=True)])
        self.assertEqual((1, 0), (silent.total, silent.free))


class TestExplain(testtools.TestCase):
    def reasons(
        self, group: device_profile.Group, *parts: explanation.CheckedUnits
    ) -> list[tuple[str, ...]]:
        return [
            candidate.reasons
            for candidate in explanation.explain(
                group, explanation.inventories(parts)
            )
        ]

    def test_it_can(self) -> None:
        group = device_profile.Group(
            {'FPGA': 2}, frozenset({'CUSTOM_A'}), frozenset({'CUSTOM_B'})
        )
        self.assertEqual([()], self.reasons(group, units(2)))

    def test_another_class_is_no_candidate(self) -> None:
        self.assertEqual(
            [], self.reasons(device_profile.Group({'VGPU': 1}), units())
        )

    def test_all_that_is_wrong_is_told(self) -> None:
        group = device_profile.Group(
            {'FPGA': 2, 'VGPU': 1},
            frozenset({'CUSTOM_B', 'CUSTOM_C'}),
            frozenset({'CUSTOM_A'}),
        )
        self.assertEqual(
            [
                (
                    'has no VGPU',
                    'missing traits: CUSTOM_B, CUSTOM_C',
                    'forbidden traits: CUSTOM_A',
                    'its host does not report',
                    '2 wanted, and it has 1',
                )
            ],
            self.reasons(group, units(is_silent=True)),
        )

    def test_none_is_free(self) -> None:
        self.assertEqual(
            [('1 wanted, 0 free (1 in use)',)],
            self.reasons(
                device_profile.Group({'FPGA': 1}), units(1, 'in use')
            ),
        )

    def test_units_that_are_not_free(self) -> None:
        self.assertEqual(
            [('2 wanted, 1 free (3 in use, 1 faulty: hot)',)],
            self.reasons(
                device_profile.Group({'FPGA': 2}),
                units(),
                units(3, 'in use'),
                units(1, 'faulty: hot'),
            ),
        )


class TestExplainLinks(testtools.TestCase):
    """Two halves of a board, each of two pools."""

    def reasons(
        self, joined: int, free: tuple[int, int, int, int], **fields: Any
    ) -> list[tuple[str, ...]]:
        parts = [
            some
            for number, amount in enumerate(free)
            for some in (
                units(
                    amount,
                    rp_uuid=f'pair-{number}',
                    link_sets=(
                        f'half-{number // 2} nvlink=4',
                        f'pair-{number} nvlink=2',
                    ),
                    **fields,
                ),
                units(2 - amount, 'in use', rp_uuid=f'pair-{number}'),
            )
        ]
        group = device_profile.Group({'FPGA': joined}, link='nvlink')
        return [
            candidate.reasons
            for candidate in explanation.explain(
                group, explanation.inventories(parts), joined
            )
        ]

    def test_a_whole_set(self) -> None:
        broken = '4 wanted, 3 free in the set that joins 4 by nvlink'
        self.assertEqual(
            [(broken,), (broken,), (), ()], self.reasons(4, (1, 2, 2, 2))
        )

    def test_a_set_within_one_provider(self) -> None:
        self.assertEqual(
            [
                ('2 wanted, 1 free in the set that joins 2 by nvlink',),
                (),
                (),
                (),
            ],
            self.reasons(2, (1, 2, 2, 2)),
        )

    def test_no_set(self) -> None:
        self.assertEqual(
            [('no set that joins 8 by nvlink has it',)] * 4,
            self.reasons(8, (2, 2, 2, 2)),
        )

    def test_of_a_silent_host(self) -> None:
        [found, *_others] = self.reasons(4, (2, 2, 2, 2), is_silent=True)
        self.assertIn('its host does not report', found)


def _free_of(
    group: device_profile.Group,
    inventory: explanation.Inventory,
    all_: Sequence[explanation.Inventory],
    joined: int,
) -> int | None:
    """The free units of the best set of a provider, as the rules say it.

    None if it is in no set that can join so many.
    """
    return max(
        (
            sum(
                other.free
                for other in all_
                if other.hostname == inventory.hostname
                and other.resource_class in group.resources
                and place in other.link_sets
                and group.required <= other.traits
                and group.forbidden.isdisjoint(other.traits)
                and not other.is_silent
            )
            for place in inventory.link_sets
            if (group.link, joined) in link_places.joins(place)
        ),
        default=None,
    )


_SETS = st.lists(
    st.sampled_from(
        ['a nvlink=2-4', 'b nvlink=2', 'c nvlink=4', 'd pcie=2', 'e']
    ),
    max_size=4,
)

_INVENTORIES = st.lists(
    st.builds(
        explanation.Inventory,
        hostname=st.sampled_from(['compute-1', 'compute-2']),
        rp_uuid=st.uuids().map(str),
        resource_class=st.sampled_from(['FPGA', 'PGPU']),
        traits=st.sets(st.sampled_from(['CUSTOM_A', 'CUSTOM_B'])).map(
            frozenset
        ),
        device_uuids=st.just(()),
        units=st.fixed_dictionaries({None: st.integers(0, 3)}),
        is_silent=st.booleans(),
        link_sets=_SETS.map(tuple),
    ),
    max_size=12,
)


class TestManyJoined(testtools.TestCase):
    @given(
        _INVENTORIES,
        st.sampled_from([2, 4]),
        st.sets(st.sampled_from(['CUSTOM_A', 'CUSTOM_B'])),
    )
    def test_as_the_rules_say(
        self,
        inventories: list[explanation.Inventory],
        joined: int,
        required: set[str],
    ) -> None:
        group = device_profile.Group(
            {'FPGA': joined}, required=frozenset(required), link='nvlink'
        )
        for found in explanation.explain(group, inventories, joined):
            free = _free_of(group, found.inventory, inventories, joined)
            told = found.reasons[-1] if found.reasons else ''
            if free is None:
                self.assertIn('no set that joins', told)
            elif free < joined:
                self.assertIn(f'{joined} wanted, {free}', told)
            else:
                self.assertNotIn('set', told)

    def test_each_device_is_looked_at_once(self) -> None:
        """A host decides how many devices it says to be joined."""
        calls = [self.calls(devices) for devices in (100, 200, 400)]
        self.assertLess(calls[2], 4.2 * calls[0] + 1000, calls)

    def calls(self, devices: int) -> int:
        """How many functions are called to explain so many."""
        parts = [
            units(
                rp_uuid=f'{number:08}',
                link_sets=('all nvlink=2-64', f'own-{number} nvlink=2'),
            )
            for number in range(devices)
        ]
        group = device_profile.Group({'FPGA': 2}, link='nvlink')

        def explain() -> None:
            found = explanation.explain(
                group, explanation.inventories(parts), 2
            )
            self.assertEqual(devices, len(found))

        return call_count.calls_of(explain)
