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

from hypothesis import stateful
from hypothesis import strategies as st
import testtools

from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice
from nova_accel.model.devices import hardware
from nova_accel.model.providers import occupancy
from nova_accel.model.providers import provider_layout
from nova_accel.testing import reports
from rig import sample_devices

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
UNITS = (1, 3, 2)
BUSES = st.integers(0, 5)

Place = provider_layout.Place
Units = provider_layout.Units


def a_device(bus, is_pooled):
    """Of one part, or of two that are never pooled."""
    parts = ('a', 'b') if bus % 3 == 2 else ('a',)
    return sample_devices.qat(
        bus,
        [
            hardware.Deployable(
                part,
                'CUSTOM_QAT',
                frozenset(),
                tuple(
                    attach_handle.AttachHandle(
                        naming.derived_uuid(
                            NODE_UUID, str(bus), part, str(unit)
                        ),
                        pci_address.PciAddress(0, bus, 0, unit),
                    )
                    for unit in range(UNITS[bus % 3])
                ),
            )
            for part in parts
        ],
        pooled=is_pooled,
    )


def layout_of(buses, is_pooled=True):
    return provider_layout.layout(
        'c1', NODE_UUID, [a_device(bus, is_pooled) for bus in buses]
    )


class Host(stateful.RuleBasedStateMachine):
    """Anything may happen to a host; Placement always knows what is free.

    What is right is written down here in another way than in the model: for
    each unit who has it and what is wrong with it.
    """

    def __init__(self):
        super().__init__()
        self.buses = set()
        self.is_pooled = True
        self.faulty = set()
        self.unclean = set()
        self.held = {}

    def layout(self):
        return layout_of(sorted(self.buses), self.is_pooled)

    def unusable(self):
        return self.unclean | {
            handle.uuid
            for bus in self.faulty & self.buses
            for handle in a_device(bus, self.is_pooled).handles
        }

    def inventories(self):
        return occupancy.inventories(
            self.layout(), self.unusable(), self.held, {}
        )

    def free(self):
        """Place -> the handles that the API would give there."""
        free = {}
        for uuid, place in self.layout().places.items():
            if uuid not in self.held and uuid not in self.unusable():
                free.setdefault(place, []).append(uuid)
        return free

    @stateful.rule(bus=BUSES)
    def plug_in(self, bus):
        self.buses.add(bus)

    @stateful.rule(bus=BUSES)
    def vanish(self, bus):
        self.buses.discard(bus)

    @stateful.rule(bus=BUSES)
    def break_or_disable(self, bus):
        self.faulty.add(bus)

    @stateful.rule(bus=BUSES)
    def repair_or_enable(self, bus):
        self.faulty.discard(bus)

    @stateful.rule()
    def change_the_lines(self):
        """And whatever reshape follows has not been made."""
        self.is_pooled = not self.is_pooled

    @stateful.precondition(lambda self: self.free())
    @stateful.rule(data=st.data())
    def boot(self, data):
        place, uuids = data.draw(
            st.sampled_from(sorted(self.free().items(), key=str))
        )
        self.held[data.draw(st.sampled_from(uuids))] = place

    @stateful.precondition(lambda self: self.held)
    @stateful.rule(data=st.data(), is_cleaned=st.booleans())
    def delete(self, data, is_cleaned):
        uuid = data.draw(st.sampled_from(sorted(self.held)))
        del self.held[uuid]
        if is_cleaned:
            self.unclean.add(uuid)

    @stateful.rule()
    def clean(self):
        self.unclean.clear()

    @stateful.precondition(lambda self: self.held)
    @stateful.rule(data=st.data())
    def be_released_at_the_moment(self, data):
        """What is held and unclean at once is held."""
        self.unclean.add(data.draw(st.sampled_from(sorted(self.held))))

    @stateful.invariant()
    def placement_has_what_is_free(self):
        free = self.free()
        used = list(self.held.values())
        found = self.inventories()
        for rp_uuid, classes in found.items():
            for resource_class, units in classes.items():
                place = Place(rp_uuid, resource_class)
                assert units.total > 0
                assert 0 <= units.reserved <= units.total
                assert units.total - units.reserved - used.count(place) == len(
                    free.get(place, ())
                )
        for place in {*free, *used}:
            assert place.resource_class in found[place.rp_uuid]

    @stateful.invariant()
    def a_reshape_fits_as_it_is(self):
        allocated = {
            place: list(self.held.values()).count(place)
            for place in self.held.values()
        }
        found = self.inventories()
        assert occupancy.fit(found, allocated) == found

    @stateful.invariant()
    def nothing_is_freed_while_it_is_not_known_why_it_is_reserved(self):
        full = occupancy.inventories(
            self.layout(), set(self.layout().places), self.held, {}
        )
        usable = occupancy.inventories(self.layout(), set(), self.held, {})
        assert occupancy.keep_reserved(usable, self.held, full) == full
        nothing = occupancy.keep_reserved(usable, self.held, {})
        assert nothing == usable


TestHost = Host.TestCase


class TestInventories(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.layout = layout_of([0, 3])
        [self.pool] = self.layout.providers
        self.first, self.second = (
            handle.uuid for handle in self.pool.handles['CUSTOM_QAT']
        )
        self.place = Place(self.pool.uuid, 'CUSTOM_QAT')

    def units(self, unusable=(), held=None, layout=None, uncounted=None):
        return occupancy.inventories(
            layout or self.layout, set(unusable), held or {}, uncounted or {}
        )

    def test_what_is_held_is_not_reserved(self):
        held = {self.first: self.place}
        for unusable, reserved in (
            ([], 0),
            ([self.first], 0),
            ([self.second], 1),
            ([self.first, self.second, 'unknown'], 1),
        ):
            self.assertEqual(
                {self.pool.uuid: {'CUSTOM_QAT': Units(2, reserved)}},
                self.units(unusable, held),
            )

    def test_what_is_held_and_not_allocated_is_reserved(self):
        held = {self.first: self.place}
        for unusable, amount, reserved in (
            ([], 1, 1),
            ([self.second], 1, 2),
            # A look at Placement that is out of date.
            ([self.second], 5, 2),
        ):
            self.assertEqual(
                {self.pool.uuid: {'CUSTOM_QAT': Units(2, reserved)}},
                self.units(unusable, held, uncounted={self.place: amount}),
            )

    def test_what_is_gone_counts_as_long_as_it_is_held(self):
        left = layout_of([3])
        self.assertEqual(
            {self.pool.uuid: {'CUSTOM_QAT': Units(2)}},
            self.units(held={self.first: self.place}, layout=left),
        )
        nothing = provider_layout.Layout()
        self.assertEqual(
            {self.pool.uuid: {'CUSTOM_QAT': Units(1)}},
            self.units(held={self.first: self.place}, layout=nothing),
        )
        self.assertEqual({}, self.units(layout=nothing))

    def test_what_another_provider_serves_by_now_counts_at_the_old_one(self):
        apart = layout_of([0, 3], is_pooled=False)
        mine, other = (each.uuid for each in apart.providers)
        self.assertEqual(
            {
                mine: {},
                other: {'CUSTOM_QAT': Units(1)},
                self.pool.uuid: {'CUSTOM_QAT': Units(1)},
            },
            self.units(held={self.first: self.place}, layout=apart),
        )

    def test_room_is_made_for_what_is_allocated(self):
        found = self.units([self.first, self.second])
        other = Place('gone', 'PGPU')
        for amount, units in ((1, Units(2, 1)), (2, Units(2)), (3, Units(3))):
            self.assertEqual(
                {
                    self.pool.uuid: {'CUSTOM_QAT': units},
                    'gone': {'PGPU': Units(1)},
                },
                occupancy.fit(found, {self.place: amount, other: 1}),
            )

    def test_what_is_reserved_stays_so_but_for_what_is_held(self):
        present = {self.pool.uuid: {'CUSTOM_QAT': Units(5, 5)}}
        held = {self.first: self.place}
        self.assertEqual(
            {self.pool.uuid: {'CUSTOM_QAT': Units(2, 1)}},
            occupancy.keep_reserved(self.units(held=held), held, present),
        )


class TestSharedCards(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.host = reports.SimulatedHost(regions=(), cards=1, functions=1)
        self.card = self.host.card()
        [device] = [each for each in self.host.devices() if each.is_shared]
        self.of_shapes = {
            deployable.name: [handle.uuid for handle in deployable.handles]
            for deployable in device.deployables
        }

    def units(self, unusable=(), held=(), uncounted=None, layout=None):
        places = self.host.layout().places
        found = occupancy.inventories(
            self.host.layout() if layout is None else layout,
            set(unusable),
            {uuid: places[uuid] for uuid in held},
            uncounted or {},
        )
        share = found[self.card].pop(naming.CARD_SHARE)
        return share, found[self.card]

    def test_placement_counts_the_card_that_units_share(self):
        self.assertEqual(
            (
                Units(card_slice.WHOLE_CARD),
                {
                    'CUSTOM_SHAPE_WHOLE': Units(1),
                    'CUSTOM_SHAPE_MIG_3G_40GB': Units(2),
                    'CUSTOM_SHAPE_MIG_1G_10GB': Units(7),
                },
            ),
            self.units(),
        )

    def test_no_other_provider_has_a_share(self):
        others = self.host.layout().uuids - {self.card}
        self.assertEqual(1, len(others))
        found = occupancy.inventories(self.host.layout(), set(), {}, {})
        for rp_uuid in others:
            self.assertNotIn(naming.CARD_SHARE, found[rp_uuid])

    def test_what_is_held_and_what_it_excludes(self):
        """The share is allocated with the unit, and never reserved."""
        [held, _other] = self.of_shapes[reports.HALF]
        share, units = self.units(
            self.of_shapes[reports.WHOLE] + [held], [held]
        )
        self.assertEqual(Units(card_slice.WHOLE_CARD), share)
        self.assertEqual(Units(1, 1), units['CUSTOM_SHAPE_WHOLE'])
        self.assertEqual(Units(2), units['CUSTOM_SHAPE_MIG_3G_40GB'])

    def test_a_share_that_is_held_and_not_allocated_is_reserved(self):
        half = card_slice.WHOLE_CARD // 2
        share, _units = self.units(
            uncounted={Place(self.card, naming.CARD_SHARE): half}
        )
        self.assertEqual(Units(card_slice.WHOLE_CARD, half), share)

    def test_a_card_that_is_gone_has_room_for_what_is_held(self):
        [held, _other] = self.of_shapes[reports.HALF]
        self.assertEqual(
            (
                Units(card_slice.WHOLE_CARD),
                {'CUSTOM_SHAPE_MIG_3G_40GB': Units(1)},
            ),
            self.units(held=[held], layout=provider_layout.Layout()),
        )
