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
import dataclasses
import uuid

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model import attach_handle
from nova_accel.model import link_sets
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice
from nova_accel.model.devices import hardware
from nova_accel.model.links import link_tree
from nova_accel.model.providers import provider_layout
from nova_accel.testing import reports

NODE = 'c1'
NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
OURS = {'OWNER_CYBORG', 'CUSTOM_NOVA_ACCEL'}

#: type, vendor id, product id, resource class
KINDS = (
    ('QAT', '8086', '37c9', 'CUSTOM_QAT'),
    ('GPU', '10de', '20b5', 'PGPU'),
    ('FPGA', '8086', '09c4', 'FPGA'),
)


@dataclasses.dataclass(frozen=True)
class Shape:
    """What is drawn of a device; all else follows from it."""

    bus: int
    kind: int
    units: tuple[int, ...] = (1,)
    numa_node: int | None = None
    pooled: bool = False
    by_numa_node: bool = False
    by_links: bool = False
    operator_traits: frozenset[str] = frozenset()


def a_device(shape):
    type_, vendor_id, product_id, resource_class = KINDS[shape.kind]
    address = pci_address.PciAddress(0, shape.bus, 0, 0)
    traits = shape.operator_traits | {f'CUSTOM_{type_}'}
    deployables = []
    for number, units in enumerate(shape.units):
        own = {f'CUSTOM_PART{number}'} if len(shape.units) > 1 else set()
        deployables.append(
            hardware.Deployable(
                f'part{number}',
                resource_class,
                traits | own,
                tuple(
                    attach_handle.AttachHandle(
                        naming.derived_uuid(
                            NODE_UUID,
                            address.node_device,
                            str(number),
                            str(unit),
                        ),
                        pci_address.PciAddress(0, shape.bus, number, unit),
                    )
                    for unit in range(units)
                ),
            )
        )
    return hardware.Device(
        name=address.node_device,
        type=type_,
        vendor_id=vendor_id,
        product_id=product_id,
        vendor='v',
        product='p',
        address=address,
        driver='fake',
        deployables=tuple(deployables),
        numa_node=shape.numa_node,
        pooled=shape.pooled,
        pooled_by_numa_node=shape.by_numa_node,
        pooled_by_links=shape.by_links,
        operator_traits=shape.operator_traits,
    )


# Few buses, so that two hosts drawn apart share some devices.
DEVICES = st.lists(
    st.builds(
        Shape,
        bus=st.integers(1, 6),
        kind=st.integers(0, len(KINDS) - 1),
        units=st.lists(st.integers(0, 3), max_size=3).map(tuple),
        numa_node=st.none() | st.integers(0, 1),
        pooled=st.booleans(),
        by_numa_node=st.booleans(),
        operator_traits=st.frozensets(
            st.sampled_from(['CUSTOM_RACK_7', 'CUSTOM_GOLD'])
        ),
    ),
    unique_by=lambda shape: shape.bus,
    max_size=6,
).map(lambda shapes: [a_device(shape) for shape in shapes])


def layout(devices):
    return provider_layout.layout(NODE, NODE_UUID, devices)


def served(devices):
    """Every deployable that there is, with its device."""
    return [
        (each, deployable)
        for each in devices
        for deployable in each.deployables
    ]


def inventories(wanted, held=()):
    """All usable; of some providers one unit is held."""
    return {
        each.uuid: {
            resource_class: provider_layout.Units(total)
            for resource_class, total in each.totals.items()
        }
        for each in wanted.providers
    } | {uuid: {'FPGA': provider_layout.Units(1)} for uuid in held}


def diff(wanted, present, unused=frozenset(), held=()):
    """Without any memory of the traits that were given.

    :param held: of these providers, which are not wanted, a unit is held
    """
    return provider_layout.diff(
        wanted, inventories(wanted, held), present, unused, {}
    )


class Tree:
    """The providers of ours in a Placement, and its rules, in a dict."""

    def __init__(self):
        self.rows = {}

    def present(self):
        return list(self.rows.values())

    def apply(self, changes, in_use=frozenset()):
        for provider in changes.put:
            row = self.rows.get(provider.uuid)
            if row is None and provider.parent is not None:
                assert provider.parent in self.rows, 'child before parent'
            self.rows[provider.uuid] = provider_layout.Present(
                provider.uuid,
                {},
                provider.traits | (row.traits if row else frozenset()),
                row.parent if row else provider.parent,
            )
        for each, units in changes.inventories.items():
            self.rows[each] = dataclasses.replace(self.rows[each], units=units)
        for each in changes.remove:
            assert each not in in_use, 'removed while in use'
            assert each not in self.parents(), 'parent before child'
            del self.rows[each]

    def parents(self):
        return {row.parent for row in self.rows.values()}

    def settle(self, wanted, in_use=frozenset()):
        """What follows, update by update, while Placement has allocations."""
        unused = frozenset()
        for _update in range(3):
            changes = diff(wanted, self.present(), unused)
            self.apply(changes, in_use)
            unused = changes.unwanted - in_use


class TestLayout(testtools.TestCase):
    @given(DEVICES, st.randoms())
    def test_the_order_of_devices_does_not_matter(self, devices, random):
        shuffled = list(devices)
        random.shuffle(shuffled)
        self.assertEqual(layout(devices), layout(iter(shuffled)))

    @given(DEVICES)
    def test_totals_are_the_handles_of_each_class(self, devices):
        wanted = collections.Counter()
        for _device, deployable in served(devices):
            wanted[deployable.resource_class] += len(deployable.handles)
        found = collections.Counter()
        for provider in layout(devices).providers:
            found.update(provider.totals)
            # Placement refuses a total of zero.
            self.assertNotIn(0, provider.totals.values())
        self.assertEqual(wanted, found)

    @given(
        DEVICES,
        st.dictionaries(
            st.sampled_from(['ddr_bank_size', 'memory_mb']), st.text()
        ),
    )
    def test_attributes_are_not_for_placement(self, devices, attributes):
        self.assertEqual(
            layout(devices),
            layout(
                [
                    dataclasses.replace(each, attributes=attributes)
                    for each in devices
                ]
            ),
        )

    @given(DEVICES)
    def test_each_deployable_has_one_provider_with_its_traits(self, devices):
        result = layout(devices)
        by_uuid = {each.uuid: each for each in result.providers}
        self.assertEqual(
            {
                (each.name, deployable.name)
                for each, deployable in served(devices)
            },
            set(result.rp_uuids),
        )
        for each, deployable in served(devices):
            provider = by_uuid[result.rp_uuids[each.name, deployable.name]]
            self.assertEqual(deployable.traits | OURS, provider.traits)
            handles = provider.handles[deployable.resource_class]
            self.assertLessEqual(set(deployable.handles), set(handles))

    @given(DEVICES)
    def test_each_handle_has_its_place(self, devices):
        result = layout(devices)
        self.assertEqual(
            {
                handle.uuid: provider_layout.Place(
                    result.rp_uuids[each.name, deployable.name],
                    deployable.resource_class,
                )
                for each, deployable in served(devices)
                for handle in deployable.handles
            },
            result.places,
        )

    @given(DEVICES)
    def test_each_handle_is_offered_once(self, devices):
        offered = [
            handle.uuid
            for provider in layout(devices).providers
            for handles in provider.handles.values()
            for handle in handles
        ]
        self.assertEqual(len(set(offered)), len(offered))

    @given(DEVICES)
    def test_parents_come_first_all_are_ours_and_unique(self, devices):
        seen = {None}
        for provider in layout(devices).providers:
            self.assertIn(provider.parent, seen)
            self.assertNotIn(provider.uuid, seen)
            self.assertLessEqual(OURS, provider.traits)
            seen.add(provider.uuid)
        self.assertEqual(seen - {None}, layout(devices).uuids)
        names = [provider.name for provider in layout(devices).providers]
        self.assertEqual(len(set(names)), len(names))

    @given(DEVICES)
    def test_two_nodes_share_no_uuid(self, devices):
        there = provider_layout.layout('c2', str(uuid.UUID(int=2)), devices)
        self.assertEqual(frozenset(), layout(devices).uuids & there.uuids)
        self.assertEqual(len(layout(devices).uuids), len(there.uuids))

    @given(DEVICES, st.data())
    def test_a_device_s_name_outlives_its_neighbours(self, devices, data):
        kept = data.draw(
            st.lists(st.sampled_from(devices), unique=True)
            if devices
            else st.just([])
        )
        before = layout(devices).rp_uuids
        for key, rp_uuid in layout(kept).rp_uuids.items():
            self.assertEqual(before[key], rp_uuid)

    def test_a_device_without_anything_to_offer_has_no_provider(self):
        self.assertEqual(
            provider_layout.Layout(), layout([a_device(Shape(1, 2, units=()))])
        )

    def test_a_device_of_one_part(self):
        fpga = a_device(Shape(0x81, 2, units=(2,)))
        [provider] = layout([fpga]).providers
        self.assertEqual('c1_accel_pci_0000_81_00_0', provider.name)
        self.assertIsNone(provider.parent)
        self.assertEqual({'FPGA': 2}, provider.totals)

    def test_a_device_of_several_parts(self):
        fpga = a_device(Shape(0x81, 2, units=(1, 2)))
        whole, first, second = layout([fpga]).providers
        self.assertEqual(
            [
                'c1_accel_pci_0000_81_00_0',
                'c1_accel_pci_0000_81_00_0_part0',
                'c1_accel_pci_0000_81_00_0_part1',
            ],
            [whole.name, first.name, second.name],
        )
        self.assertEqual(
            [None, whole.uuid, whole.uuid],
            [whole.parent, first.parent, second.parent],
        )
        self.assertEqual(
            [{}, {'FPGA': 1}, {'FPGA': 2}],
            [whole.totals, first.totals, second.totals],
        )
        self.assertEqual({'CUSTOM_FPGA', *OURS}, whole.traits)

    def test_a_name_that_is_too_long(self):
        error = self.assertRaises(
            exceptions.InvalidName,
            provider_layout.layout,
            'c' * 190,
            NODE_UUID,
            [a_device(Shape(1, 0))],
        )
        self.assertIn('c' * 190, str(error))


class TestSharedCards(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cards = reports.SimulatedHost(regions=(), cards=2).devices()

    def test_a_card_has_one_provider_with_a_class_for_each_shape(self):
        result = layout(self.cards)
        self.assertEqual(
            ['c1_accel_pci_0002_00_00_0', 'c1_accel_pci_0002_01_00_0'],
            [provider.name for provider in result.providers],
        )
        for provider, card in zip(result.providers, self.cards, strict=True):
            self.assertIsNone(provider.parent)
            self.assertEqual(
                {
                    'CUSTOM_SHAPE_WHOLE': 1,
                    'CUSTOM_SHAPE_MIG_3G_40GB': 2,
                    'CUSTOM_SHAPE_MIG_1G_10GB': 7,
                },
                provider.totals,
            )
            for deployable in card.deployables:
                self.assertEqual(
                    provider.uuid, result.rp_uuids[card.name, deployable.name]
                )
                for handle in deployable.handles:
                    self.assertEqual(
                        provider_layout.Place(
                            provider.uuid, deployable.resource_class
                        ),
                        result.places[handle.uuid],
                    )

    def test_it_has_the_traits_of_all_shapes(self):
        card, _other = self.cards
        first, *others = card.deployables
        [provider] = layout(
            [
                dataclasses.replace(
                    card,
                    deployables=(
                        dataclasses.replace(
                            first, traits=frozenset({'CUSTOM_A'})
                        ),
                        *(
                            dataclasses.replace(
                                each, traits=frozenset({'CUSTOM_B'})
                            )
                            for each in others
                        ),
                    ),
                )
            ]
        ).providers
        self.assertEqual({'CUSTOM_A', 'CUSTOM_B', *OURS}, provider.traits)

    def test_a_card_with_one_shape(self):
        card, _other = self.cards
        [provider] = layout(
            [dataclasses.replace(card, deployables=card.deployables[:1])]
        ).providers
        self.assertEqual({'CUSTOM_SHAPE_WHOLE': 1}, provider.totals)

    def test_shares_of_a_card(self):
        fpga = a_device(Shape(0x81, 2, units=(1, 2)))
        result = layout([*self.cards, fpga])
        of_cards = {
            rp_uuid
            for (name, _deployable), rp_uuid in result.rp_uuids.items()
            if name != fpga.name
        }
        self.assertEqual(
            {
                provider_layout.Place(
                    rp_uuid, f'CUSTOM_SHAPE_{shape}'
                ): card_slice.WHOLE_CARD // parts
                for rp_uuid in of_cards
                for shape, parts in (
                    ('WHOLE', 1),
                    ('MIG_3G_40GB', 2),
                    ('MIG_1G_10GB', 8),
                )
            },
            result.shares,
        )
        self.assertEqual(2, len(of_cards))


class TestPool(testtools.TestCase):
    def pools(self, *shapes):
        return layout([a_device(shape) for shape in shapes]).providers

    def test_the_same_kind_shares_a_provider(self):
        [pool] = self.pools(
            *(
                Shape(bus, 0, numa_node=bus % 2, units=(2,), pooled=True)
                for bus in range(3)
            )
        )
        self.assertEqual('c1_accel_qat_8086_37c9', pool.name)
        self.assertEqual({'CUSTOM_QAT': 6}, pool.totals)

    def test_a_provider_for_each_numa_node_on_demand(self):
        pools = self.pools(
            *(
                Shape(
                    bus,
                    0,
                    numa_node=numa_node,
                    units=(2,),
                    pooled=True,
                    by_numa_node=True,
                )
                for bus, numa_node in enumerate((0, 1, 1, None))
            )
        )
        self.assertEqual(
            {
                'c1_accel_qat_8086_37c9_numa0': {'CUSTOM_QAT': 2},
                'c1_accel_qat_8086_37c9_numa1': {'CUSTOM_QAT': 4},
                'c1_accel_qat_8086_37c9': {'CUSTOM_QAT': 2},
            },
            {pool.name: pool.totals for pool in pools},
        )

    def test_names_that_placement_has_already(self):
        """Another name is another provider: its allocations would move."""
        plain, of_operator, of_numa_node = self.pools(
            Shape(1, 0, pooled=True),
            Shape(
                2,
                0,
                pooled=True,
                operator_traits=frozenset({'CUSTOM_RACK_7', 'CUSTOM_GOLD'}),
            ),
            Shape(3, 0, numa_node=1, pooled=True, by_numa_node=True),
        )
        self.assertEqual('c1_accel_qat_8086_37c9', plain.name)
        self.assertEqual('c1_accel_qat_8086_37c9_6a3c23a9', of_operator.name)
        self.assertEqual('c1_accel_qat_8086_37c9_numa1', of_numa_node.name)
        self.assertEqual(
            naming.derived_uuid(
                NODE_UUID, 'provider', 'qat', '8086', '37c9', 'numa1'
            ),
            of_numa_node.uuid,
        )

    def test_its_handles_are_in_the_order_of_the_bus(self):
        [pool] = self.pools(*(Shape(bus, 0, pooled=True) for bus in (9, 2)))
        self.assertEqual(
            [2, 9],
            [handle.address.bus for handle in pool.handles['CUSTOM_QAT']],
        )

    def test_what_tells_devices_apart(self):
        """Every one of these is a pool of its own."""
        pools = self.pools(
            Shape(1, 0, pooled=True),
            Shape(2, 1, pooled=True),
            Shape(3, 0, pooled=True, numa_node=0, by_numa_node=True),
            Shape(4, 0, pooled=True, numa_node=1, by_numa_node=True),
            Shape(5, 0, pooled=True, operator_traits=frozenset({'CUSTOM_A'})),
            Shape(6, 0, pooled=True, operator_traits=frozenset({'CUSTOM_B'})),
            Shape(7, 0, pooled=False),
        )
        self.assertEqual(
            [1] * 7, [sum(pool.totals.values()) for pool in pools]
        )

    def test_a_device_of_several_parts_is_never_pooled(self):
        pools = self.pools(
            Shape(1, 2, units=(1, 1), pooled=True),
            Shape(2, 2, units=(1, 1), pooled=True),
        )
        self.assertEqual(6, len(pools))


class TestDiff(testtools.TestCase):
    def assert_settled(self, tree, wanted, in_use=frozenset()):
        """The tree offers what is wanted and nothing more has to be done."""
        units = inventories(wanted)
        for provider in wanted.providers:
            row = tree.rows[provider.uuid]
            self.assertEqual(units[provider.uuid], row.units)
            self.assertLessEqual(provider.traits, row.traits)
            self.assertEqual(provider.parent, row.parent)
        self.assertFalse(diff(wanted, tree.present()))

    @given(DEVICES)
    def test_from_nothing(self, devices):
        tree, wanted = Tree(), layout(devices)
        tree.apply(diff(wanted, []))
        self.assert_settled(tree, wanted)
        self.assertEqual(
            {
                each.uuid: (each.traits, each.parent)
                for each in wanted.providers
            },
            {each.uuid: (each.traits, each.parent) for each in tree.present()},
        )

    @given(DEVICES)
    def test_a_layout_does_not_differ_from_what_it_creates(self, devices):
        wanted = layout(devices)
        units = inventories(wanted)
        present = [
            provider_layout.Present(
                each.uuid, units[each.uuid], each.traits, each.parent
            )
            for each in wanted.providers
        ]
        for unused in (frozenset(), wanted.uuids):
            self.assertEqual(
                provider_layout.TreeChanges(), diff(wanted, present, unused)
            )

    @given(DEVICES, DEVICES, st.data())
    def test_from_one_host_to_another_and_back(self, before, after, data):
        tree, old, new = Tree(), layout(before), layout(after)
        tree.apply(diff(old, []))
        # Only what has an inventory can be in use.
        in_use = data.draw(
            st.frozensets(
                st.sampled_from(
                    [each.uuid for each in old.providers if each.totals]
                    or ['']
                )
            )
        )
        parents = {each.uuid: each.parent for each in old.providers}
        held = in_use | {parents.get(each) for each in in_use} - {None}

        tree.settle(new, in_use)
        self.assert_settled(tree, new)
        kept = set(tree.rows) - new.uuids
        self.assertEqual((held & old.uuids) - new.uuids, kept)
        for each in kept:
            for units in tree.rows[each].units.values():
                self.assertEqual(units.total, units.reserved)

        tree.settle(old, in_use)
        self.assert_settled(tree, old)
        self.assertEqual(old.uuids, set(tree.rows))

    @given(DEVICES)
    def test_to_nothing(self, devices):
        tree = Tree()
        tree.apply(diff(layout(devices), []))
        tree.settle(provider_layout.Layout())
        self.assertEqual([], tree.present())

    def regions(self):
        """A tree with a card of two regions, and their uuids."""
        tree = Tree()
        wanted = layout([a_device(Shape(1, 2, units=(1, 1)))])
        tree.apply(diff(wanted, []))
        return tree, [each.uuid for each in wanted.providers]

    def test_nothing_goes_before_placement_was_asked(self):
        """It might have allocations, of whomever, and refuses then."""
        tree, (whole, first, second) = self.regions()
        nothing = provider_layout.Layout()
        reserved = {'FPGA': provider_layout.Units(1, 1)}
        # What was unused before it was reserved may be in use by now.
        changes = diff(nothing, tree.present(), frozenset({first, second}))
        self.assertEqual(
            provider_layout.TreeChanges(
                inventories={first: reserved, second: reserved}
            ),
            changes,
        )
        tree.apply(changes)
        changes = diff(nothing, tree.present())
        self.assertFalse(changes)
        self.assertEqual({first, second}, changes.unwanted)
        changes = diff(nothing, tree.present(), frozenset({second}))
        self.assertEqual(
            ((second,), {first}), (changes.remove, changes.unwanted)
        )
        tree.apply(changes)
        changes = diff(nothing, tree.present(), frozenset({first}))
        self.assertEqual((first, whole), changes.remove)

    def test_a_region_that_is_held_keeps_its_card(self):
        tree, (whole, first, second) = self.regions()
        nothing = provider_layout.Layout()
        for unused in (frozenset(), frozenset({second})):
            changes = diff(nothing, tree.present(), unused, held=[first])
            tree.apply(changes)
        self.assertEqual({whole, first}, set(tree.rows))
        self.assertEqual(
            {'FPGA': provider_layout.Units(1)}, tree.rows[first].units
        )
        self.assertEqual(
            provider_layout.TreeChanges(),
            diff(nothing, tree.present(), held=[first]),
        )

    def test_a_reserved_unit_is_a_difference(self):
        tree, (_whole, first, _second) = self.regions()
        wanted = layout([a_device(Shape(1, 2, units=(1, 1)))])
        reserved = {'FPGA': provider_layout.Units(1, 1)}
        changes = provider_layout.diff(
            wanted,
            inventories(wanted) | {first: reserved},
            tree.present(),
            frozenset(),
            {},
        )
        self.assertEqual([first], [each.uuid for each in changes.put])
        tree.apply(changes)
        self.assertEqual(reserved, tree.rows[first].units)
        tree.apply(diff(wanted, tree.present()))
        self.assertEqual(
            {'FPGA': provider_layout.Units(1)}, tree.rows[first].units
        )

    def test_an_operator_s_trait_is_no_difference(self):
        wanted = layout([a_device(Shape(1, 2))])
        [provider] = wanted.providers
        present = provider_layout.Present(
            provider.uuid,
            inventories(wanted)[provider.uuid],
            provider.traits | {'CUSTOM_Y'},
        )
        self.assertEqual((), diff(wanted, [present]).put)

    def test_a_lost_trait_or_unit_is_put_again(self):
        wanted = layout([a_device(Shape(1, 2, units=(2,)))])
        [provider] = wanted.providers
        for totals, traits in (
            ({'FPGA': 1}, provider.traits),
            ({}, provider.traits),
            ({'FPGA': 2, 'VGPU': 1}, provider.traits),
            ({'FPGA': 2}, provider.traits - {'CUSTOM_FPGA'}),
            ({'FPGA': 2}, provider.traits - {'OWNER_CYBORG'}),
        ):
            present = provider_layout.Present(
                provider.uuid,
                {
                    resource_class: provider_layout.Units(total)
                    for resource_class, total in totals.items()
                },
                traits,
            )
            self.assertEqual((provider,), diff(wanted, [present]).put)


class TestChanges(testtools.TestCase):
    def test_whether_there_is_anything_to_change(self):
        [provider] = layout([a_device(Shape(1, 2))]).providers
        self.assertFalse(provider_layout.TreeChanges())
        self.assertFalse(
            provider_layout.TreeChanges(unwanted=frozenset({provider.uuid}))
        )
        for part in (
            {'put': (provider,)},
            {'inventories': {provider.uuid: {}}},
            {'remove': (provider.uuid,)},
            {'stale': {provider.uuid: frozenset({'CUSTOM_A'})}},
        ):
            self.assertTrue(provider_layout.TreeChanges(**part), part)


class TestTraits(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.wanted = layout([a_device(Shape(1, 2))])
        [self.provider] = self.wanted.providers
        self.given = {
            self.provider.uuid: self.provider.traits
            | {'CUSTOM_OURS', 'CUSTOM_GONE'}
        }

    def changes(self, *further, before=None):
        """The changes of a tree whose provider has further traits."""
        return provider_layout.diff(
            self.wanted,
            inventories(self.wanted),
            [
                provider_layout.Present(
                    self.provider.uuid,
                    inventories(self.wanted)[self.provider.uuid],
                    self.provider.traits | set(further),
                )
            ],
            frozenset(),
            self.given if before is None else before,
        )

    def test_one_that_was_given_is_taken_away_and_all_others_stay(self):
        self.assertEqual(
            provider_layout.TreeChanges(
                stale={self.provider.uuid: frozenset({'CUSTOM_OURS'})}
            ),
            self.changes('CUSTOM_OURS', 'CUSTOM_OF_OPERATOR'),
        )
        for before in (self.given, {}):
            self.assertFalse(self.changes('CUSTOM_OF_OPERATOR', before=before))

    def test_one_counts_as_given_until_the_tree_lacks_it(self):
        uuid, traits = self.provider.uuid, self.provider.traits
        for further, counted in (
            (['CUSTOM_OURS'], traits | {'CUSTOM_OURS'}),
            ([], traits),
        ):
            self.assertEqual(
                {uuid: counted},
                provider_layout.now_given(
                    self.wanted, self.changes(*further), self.given
                ),
            )

    def test_those_of_a_provider_that_is_not_wanted_count_until_it_goes(self):
        traits = frozenset({'CUSTOM_A'})
        for remove, counted in (((), {'old': traits}), (('old',), {})):
            self.assertEqual(
                counted,
                provider_layout.now_given(
                    provider_layout.Layout(),
                    provider_layout.TreeChanges(remove=remove),
                    {'old': traits},
                ),
            )


def a_tree(*buses_of_sets):
    """Sets of devices on these buses."""
    return link_tree.build(
        [
            link_sets.LinkSet(
                link_sets.Kind.PCIE,
                frozenset(
                    pci_address.PciAddress(0, bus, 0, 0).node_device
                    for bus in buses
                ),
                name=f'switch{"".join(map(str, sorted(buses)))}',
            )
            for buses in buses_of_sets
        ]
    ).tree


def linked_layout(devices, tree, nodename=NODE):
    return provider_layout.layout(nodename, NODE_UUID, devices, tree)


TREES = st.lists(st.frozensets(st.integers(1, 6), min_size=2), max_size=4).map(
    lambda sets: a_tree(*sets)
)

LINKED = st.lists(
    st.builds(
        Shape,
        bus=st.integers(1, 6),
        kind=st.integers(0, 1),
        units=st.sampled_from([(1,), (1,), (2,), (1, 1), ()]),
        pooled=st.just(True),
        by_links=st.sampled_from([True, True, False]),
    ),
    unique_by=lambda shape: shape.bus,
).map(lambda shapes: [a_device(shape) for shape in shapes])


class TestLinks(testtools.TestCase):
    def gpus(self, count, **keys):
        return [
            a_device(Shape(bus, 1, pooled=True, by_links=True, **keys))
            for bus in range(1, count + 1)
        ]

    def test_a_pool_for_each_smallest_set(self):
        layout = linked_layout(
            self.gpus(4), a_tree({1, 2, 3, 4}, {1, 2}, {3, 4})
        )
        above, *pools = layout.providers
        self.assertEqual(f'{NODE}_accel_switch1234', above.name)
        self.assertEqual({}, above.totals)
        self.assertEqual(
            OURS | {f'CUSTOM_NOVA_ACCEL_PCIE_{size}' for size in (2, 3, 4)},
            above.traits,
        )
        self.assertEqual(
            [(above.uuid, {'PGPU': 2})] * 2,
            [(pool.parent, pool.totals) for pool in pools],
        )
        for pool, name in zip(pools, ['switch12', 'switch34'], strict=True):
            self.assertRegex(
                pool.name,
                f'^{NODE}_accel_{name}_pgpu_10de_20b5_[0-9a-f]{{8}}$',
            )

    def test_a_pool_in_no_set_is_as_ever(self):
        devices = self.gpus(1)
        self.assertEqual(
            linked_layout(devices, a_tree()),
            linked_layout(
                [a_device(Shape(1, 1, pooled=True))], a_tree({1, 2})
            ),
        )

    def test_a_device_of_several_parts(self):
        devices = [
            *self.gpus(1),
            a_device(Shape(2, 2, (1, 1), pooled=True, by_links=True)),
        ]
        above, pool, card, *parts = linked_layout(
            devices, a_tree({1, 2})
        ).providers
        self.assertEqual([above.uuid] * 2, [pool.parent, card.parent])
        self.assertEqual([card.uuid] * 2, [part.parent for part in parts])

    def test_long_names_become_short(self):
        nodename = 'n' * 170
        layout = linked_layout(
            self.gpus(4), a_tree({1, 2, 3, 4}, {1, 2}, {3, 4}), nodename
        )
        names = {provider.name for provider in layout.providers}
        self.assertEqual(3, len(names))
        self.assertTrue(all(len(name) <= 200 for name in names), names)

    @given(LINKED, TREES)
    def test_each_unit_is_in_one_provider(self, devices, tree):
        layout = linked_layout(devices, tree)
        seen = set()
        for provider in layout.providers:
            self.assertIn(provider.parent, {None, *seen})
            self.assertNotIn(provider.uuid, seen)
            seen.add(provider.uuid)
        names = [provider.name for provider in layout.providers]
        self.assertEqual(len(set(names)), len(names))
        units = [
            handle.uuid
            for provider in layout.providers
            for handles in provider.handles.values()
            for handle in handles
        ]
        self.assertEqual(
            sorted(
                handle.uuid for device in devices for handle in device.handles
            ),
            sorted(units),
        )

    @given(LINKED, TREES, LINKED, TREES)
    def test_no_provider_ever_gets_another_parent(
        self, devices, tree, others, other_tree
    ):
        """Nova could not change it."""
        parents = {
            provider.uuid: provider.parent
            for provider in linked_layout(devices, tree).providers
        }
        for provider in linked_layout(others, other_tree).providers:
            self.assertEqual(
                provider.parent, parents.get(provider.uuid, provider.parent)
            )
