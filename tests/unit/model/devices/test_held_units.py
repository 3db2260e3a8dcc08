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


import dataclasses

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.devices import held_units
from nova_accel.model.devices import programmable
from unit.model.cards import slices

UNITS = 6


def a_handle(number):
    """Of a mediated device if it is odd."""
    return attach_handle.AttachHandle(
        f'unit{number}',
        pci_address.PciAddress(0, 0x81, 0, number),
        'a type' if number % 2 else None,
    )


def a_device(**regions):
    """Deployable and region -> the numbers of its units."""
    return hardware.Device(
        name='pci_0000_81_00_0',
        type='FPGA',
        vendor_id='8086',
        product_id='09c4',
        vendor='v',
        product='p',
        driver='fake',
        address=pci_address.PciAddress(0, 0x81, 0, 0),
        deployables=tuple(
            hardware.Deployable(
                name,
                'FPGA',
                frozenset({f'CUSTOM_{name.upper()}'}),
                tuple(map(a_handle, numbers)),
                region=name,
            )
            for name, numbers in regions.items()
        ),
        regions=tuple(
            programmable.Region(name, f'type of {name}') for name in regions
        ),
    )


def uuids(device):
    return [handle.uuid for handle in device.handles]


@st.composite
def devices(draw):
    """Any units, in any of three regions."""
    numbers = draw(
        st.lists(st.integers(0, UNITS - 1), unique=True, max_size=UNITS)
    )
    found = {}
    for number in numbers:
        name = draw(st.sampled_from(['region0', 'region1', 'region2']))
        found.setdefault(name, []).append(number)
    return a_device(**found)


UUIDS = st.frozensets(
    st.integers(0, UNITS - 1).map(lambda number: f'unit{number}')
)


class TestAnyDevice(testtools.TestCase):
    @given(devices(), UUIDS, UUIDS)
    def test_a_device_that_is_refused(self, last, held, gone):
        kept = held_units.keep(
            last, held, lambda handle: handle.uuid not in gone, 'why'
        )
        there = [uuid for uuid in uuids(last) if uuid not in gone]
        if held.isdisjoint(there):
            self.assertIsNone(kept)
            return
        self.assertEqual(there, uuids(kept))
        self.assertEqual(None if held.issuperset(there) else 'why', kept.fault)
        # The names of its providers are made of these.
        self.assertEqual(
            [each.name for each in last.deployables],
            [each.name for each in kept.deployables],
        )

    @given(devices(), devices(), UUIDS, UUIDS)
    def test_a_device_of_which_less_is_seen(self, found, last, held, gone):
        completed = held_units.completed(
            found, last, held, lambda handle: handle.uuid not in gone
        )
        wanted = (held & set(uuids(last))) - gone | set(uuids(found))
        self.assertEqual(sorted(wanted), sorted(uuids(completed)))
        names = [each.name for each in completed.deployables]
        regions = [each.name for each in completed.regions]
        self.assertEqual(sorted(set(names)), sorted(names))
        self.assertEqual(sorted(set(regions)), sorted(regions))
        self.assertLessEqual(
            {each.region for each in completed.deployables}, set(regions)
        )
        for each in completed.deployables:
            self.assertEqual(
                frozenset({f'CUSTOM_{each.name.upper()}'}), each.traits
            )
        if not held:
            self.assertEqual(found, completed)


class TestWholeCard(testtools.TestCase):
    """A card without the functions that it needs for its other shapes."""

    def test_what_a_guest_excludes_stays(self):
        whole, half, other = (
            dataclasses.replace(a_handle(number), slice=slice_)
            for number, slice_ in enumerate(
                (
                    slices.WHOLE,
                    slices.eighths('mig:3g.40gb', 0, 4),
                    slices.eighths('mig:3g.40gb', 4, 4),
                )
            )
        )
        card = a_device(whole=[], mig=[])
        last, found = (
            dataclasses.replace(
                card,
                deployables=tuple(
                    dataclasses.replace(each, handles=tuple(handles))
                    for each, handles in zip(
                        card.deployables, ([whole], parts), strict=True
                    )
                    if handles
                ),
            )
            for parts in ([half, other], [])
        )

        def completed(*held):
            return held_units.completed(
                found, last, {each.uuid for each in held}, lambda _each: False
            )

        self.assertEqual(last.deployables, completed(whole).deployables)
        self.assertEqual(found, completed())
        # A part that is gone stays gone.
        self.assertEqual([whole.uuid], uuids(completed(half)))


class TestCompleted(testtools.TestCase):
    def complete(self, found, last, *held):
        return held_units.completed(found, last, set(held), lambda _each: True)

    def test_a_function_that_is_offered_otherwise(self):
        """A guest can get it under one uuid only."""
        last = a_device(region0=[0])
        (handle,) = last.handles
        found = dataclasses.replace(
            last,
            deployables=(
                dataclasses.replace(
                    last.deployables[0],
                    handles=(dataclasses.replace(handle, uuid='another'),),
                ),
            ),
        )
        self.assertEqual(found, self.complete(found, last, handle.uuid))

    def untyped(self, device):
        return dataclasses.replace(
            device,
            regions=tuple(
                dataclasses.replace(each, type_uuid=None)
                for each in device.regions
            ),
            deployables=tuple(
                dataclasses.replace(each, traits=frozenset())
                for each in device.deployables
            ),
        )

    def test_regions_that_the_driver_cannot_see(self):
        last = a_device(region0=[0])
        found = self.untyped(last)
        self.assertEqual(last, self.complete(found, last, 'unit0'))
        self.assertEqual(found, self.complete(found, last))
        bare = dataclasses.replace(
            last,
            regions=(),
            deployables=(
                dataclasses.replace(last.deployables[0], region=None),
            ),
        )
        self.assertEqual(bare, self.complete(found, bare, 'unit0'))

    def test_regions_that_never_tell_their_types(self):
        """What is found of them counts, such as what they do now."""
        last = self.untyped(a_device(region0=[0]))
        found = dataclasses.replace(
            last,
            deployables=(
                dataclasses.replace(
                    last.deployables[0], traits=frozenset({'CUSTOM_NEW'})
                ),
            ),
        )
        self.assertEqual(found, self.complete(found, last, 'unit0'))
