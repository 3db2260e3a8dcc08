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
import itertools
import json
import pathlib

import hypothesis
from hypothesis import strategies
import testtools

from nova_accel import exceptions
from nova_accel.drivers import mdev
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.testing import devices
from nova_accel.testing import fake_sysfs
from nova_accel.testing import libvirt
from nova_accel.testing import simulated_mdevs
from unit.drivers import base

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
NO_SYSFS = sysfs_tree.Sysfs(pathlib.Path('/nowhere'))
FOREIGN = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'


def an_address(function=0):
    return pci_address.PciAddress(0, 0x81, 0, function)


def a_card(number=0, product_id='13f2', **more):
    address = an_address(number)
    return pci_function.PciFunction(
        address.node_device, address, '10de', product_id, **more
    )


def discover(function, *others, mdevs=(), held=(), sysfs=NO_SYSFS, **keys):
    host = libvirt_devices.HostDevices(
        {each.address: each for each in (function, *others)},
        tuple(mdevs),
        held_mdevs=tuple(held),
    )
    (spec,) = device_spec.parse(
        [json.dumps({'vendor_id': '10de', 'driver': 'mdev', **keys})], ['mdev']
    )
    driver = mdev.MdevDriver(None, sysfs, NODE_UUID)
    return driver.discover(function, spec, host)


def units(device):
    (deployable,) = device.deployables
    return deployable.handles


def uuids(device):
    return [handle.uuid for handle in units(device)]


class TestDiscover(testtools.TestCase):
    def test_card(self):
        device = discover(a_card(mdev_types={'nvidia-11': 16}))
        self.assertEqual(('VGPU', False), (device.type, device.pooled))
        (deployable,) = device.deployables
        self.assertEqual('VGPU', deployable.resource_class)
        self.assertEqual(
            {'CUSTOM_VGPU_NVIDIA_TESLA_M60', 'CUSTOM_NVIDIA_13F2_NVIDIA_11'},
            deployable.traits,
        )
        self.assertEqual(
            {(an_address(), 'nvidia-11')},
            {(handle.address, handle.mdev_type) for handle in units(device)},
        )
        self.assertEqual(16, len(set(uuids(device))))

    def test_the_name_of_a_type_is_a_trait_too(self):
        """As Cyborg has it, so that its profiles match."""
        fake = self.useFixture(fake_sysfs.FakeSysfs())
        card = a_card(mdev_types={'nvidia-11': 16, 'nvidia-12': 8})
        for mdev_type, name in (
            ('nvidia-11', 'GRID M60-0B'),
            ('nvidia-12', '---'),
        ):
            fake.set(
                card.address,
                **{f'mdev_supported_types__{mdev_type}__name': name},
            )
        by_type = {}
        for mdev_type in card.mdev_types:
            (deployable,) = discover(
                card, sysfs=fake.sysfs, mdev_type=mdev_type
            ).deployables
            by_type[mdev_type] = deployable.traits
        self.assertEqual(
            {
                'nvidia-11': {
                    'CUSTOM_VGPU_NVIDIA_TESLA_M60',
                    'CUSTOM_NVIDIA_13F2_NVIDIA_11',
                    'CUSTOM_NVIDIA_13F2_M60_0B',
                },
                'nvidia-12': {
                    'CUSTOM_VGPU_NVIDIA_TESLA_M60',
                    'CUSTOM_NVIDIA_13F2_NVIDIA_12',
                },
            },
            by_type,
        )

    def test_card_of_another_kind(self):
        (deployable,) = discover(
            a_card(product_id='0001', mdev_types={'qat': 1}), type='QAT'
        ).deployables
        self.assertEqual('CUSTOM_QAT', deployable.resource_class)

    def test_the_only_type_is_chosen(self):
        self.assertEqual(1, len(units(discover(a_card(mdev_types={'a': 1})))))

    def test_one_of_several_types(self):
        card = a_card(mdev_types={'nvidia-11': 16, 'nvidia-12': 8})
        device = discover(card, mdev_type='nvidia-12')
        self.assertEqual(8, len(units(device)))
        for keys in ({}, {'mdev_type': 'nvidia-13'}):
            error = self.assertRaises(
                exceptions.DeviceError, discover, card, **keys
            )
            self.assertIn('nvidia-11, nvidia-12', str(error))

    def test_uuids_of_another_type_are_others(self):
        card = a_card(mdev_types={'nvidia-11': 4, 'nvidia-12': 4})
        self.assertFalse(
            set(uuids(discover(card, mdev_type='nvidia-11')))
            & set(uuids(discover(card, mdev_type='nvidia-12')))
        )

    def test_no_types(self):
        error = self.assertRaises(exceptions.DeviceError, discover, a_card())
        self.assertIn('no mediated devices', str(error))

    def test_others_took_it_all(self):
        error = self.assertRaises(
            exceptions.DeviceError,
            discover,
            a_card(mdev_types={'nvidia-11': 0}),
            mdevs=[pci_function.Mdev(FOREIGN, 'nvidia-11', an_address())],
        )
        self.assertIn('nvidia-11', str(error))

    def test_cards_that_make_other_types_are_not_in_one_pool(self):
        card = a_card(mdev_types={'nvidia-11': 4, 'nvidia-12': 4})
        ours, same, other = (
            discover(card, mdev_type=mdev_type, pool=True)
            for mdev_type in ('nvidia-11', 'nvidia-11', 'nvidia-12')
        )
        self.assertTrue(ours.pooled)
        self.assertEqual(ours.operator_traits, same.operator_traits)
        self.assertNotEqual(ours.operator_traits, other.operator_traits)

    @hypothesis.given(
        ours=strategies.sets(strategies.integers(0, 15)),
        foreign=strategies.integers(0, 16),
    )
    def test_units_are_what_is_ours_and_what_can_be_made(self, ours, foreign):
        foreign = min(foreign, 16 - len(ours))
        all_uuids = uuids(discover(a_card(mdev_types={'nvidia-11': 16})))
        made = {all_uuids[index] for index in ours}
        others = {
            naming.derived_uuid(FOREIGN, str(number))
            for number in range(foreign)
        }
        available = 16 - len(ours) - foreign
        hypothesis.assume(made or available)
        found = uuids(
            discover(
                a_card(mdev_types={'nvidia-11': available}),
                mdevs=[
                    pci_function.Mdev(uuid, 'nvidia-11', an_address())
                    for uuid in made | others
                ],
            )
        )
        self.assertEqual(16 - foreign, len(found))
        self.assertEqual(len(found), len(set(found)))
        self.assertTrue(made <= set(found) <= set(all_uuids))


class TestHeld(testtools.TestCase):
    """What instances hold is offered, whatever its uuid is."""

    def foreign(self, amount, mdev_type='nvidia-11', function=0):
        return [
            pci_function.Mdev(
                naming.derived_uuid(FOREIGN, mdev_type, str(number)),
                mdev_type,
                an_address(function),
            )
            for number in range(amount)
        ]

    @hypothesis.given(
        held=strategies.integers(0, 16),
        others=strategies.integers(0, 16),
        own=strategies.integers(0, 16),
        are_made=strategies.booleans(),
    )
    def test_it_comes_first(self, held, others, own, are_made):
        """Also after a reboot of the host, which has removed it."""
        foreign = self.foreign(held + others)
        hypothesis.assume(held and held + others + own <= 16)
        mine, theirs = foreign[:held], foreign[held:]
        derived = uuids(discover(a_card(mdev_types={'nvidia-11': 16})))
        made = (
            mine
            + theirs
            + [
                pci_function.Mdev(uuid, 'nvidia-11', an_address())
                for uuid in derived[:own]
            ]
            if are_made
            else theirs
        )
        found = uuids(
            discover(
                a_card(mdev_types={'nvidia-11': 16 - len(made)}),
                mdevs=made,
                held=mine,
            )
        )
        self.assertEqual(16 - others, len(found))
        self.assertEqual(len(found), len(set(found)))
        self.assertLessEqual({mdev.uuid for mdev in mine}, set(found))
        if are_made:
            self.assertLessEqual(set(derived[:own]), set(found))
        self.assertFalse({mdev.uuid for mdev in theirs} & set(found))

    def test_more_than_the_line_wants(self):
        """A stray one of ours does not take its place."""
        fake = self.useFixture(fake_sysfs.FakeSysfs())
        card = a_card(mdev_types={'nvidia-11': 12, 'nvidia-12': 6})
        for mdev_type, most in (('nvidia-11', 16), ('nvidia-12', 8)):
            fake.set(
                card.address,
                **{
                    f'mdev_supported_types__{mdev_type}__description': (
                        f'max_instance={most}'
                    )
                },
            )
        (stray, *_rest) = uuids(
            discover(
                a_card(mdev_types={'nvidia-11': 16}), mdev_type='nvidia-11'
            )
        )
        held = self.foreign(3)
        device = discover(
            card,
            mdevs=[
                *held,
                pci_function.Mdev(stray, 'nvidia-11', an_address()),
            ],
            held=held,
            sysfs=fake.sysfs,
            mdev_types={'nvidia-11': 2, 'nvidia-12': 1},
        )
        elevens, twelves = device.deployables
        self.assertEqual(
            {mdev.uuid for mdev in held},
            {handle.uuid for handle in elevens.handles},
        )
        self.assertEqual(1, len(twelves.handles))

    def test_the_order_is_the_same_whoever_holds_what(self):
        derived = uuids(discover(a_card(mdev_types={'nvidia-11': 4})))
        mdev_of_ours = pci_function.Mdev(derived[2], 'nvidia-11', an_address())
        self.assertEqual(
            derived,
            uuids(
                discover(
                    a_card(mdev_types={'nvidia-11': 3}),
                    mdevs=[mdev_of_ours],
                    held=[mdev_of_ours],
                )
            ),
        )

    def test_a_virtual_function_stays_with_its_type(self):
        fake = self.useFixture(fake_sysfs.FakeSysfs())
        types = {'nvidia-11': 1, 'nvidia-12': 1}
        functions = [
            a_card(number, parent_address=an_address(0), mdev_types=types)
            for number in range(1, 5)
        ]
        for mdev_type in types:
            fake.set(
                functions[0].address,
                **{
                    f'mdev_supported_types__{mdev_type}__description': (
                        'max_instance=4'
                    )
                },
            )
        card = a_card(
            0,
            virtual_functions=tuple(each.address for each in functions),
        )
        (held,) = self.foreign(1, 'nvidia-11', function=4)
        functions[3] = dataclasses.replace(
            functions[3], mdev_types=dict.fromkeys(types, 0)
        )
        device = discover(
            card,
            *functions,
            mdevs=[held],
            held=[held],
            sysfs=fake.sysfs,
            mdev_types={'nvidia-12': 2, 'nvidia-11': 2},
        )
        twelves, elevens = device.deployables
        self.assertEqual(
            [an_address(1), an_address(2)],
            [handle.address for handle in twelves.handles],
        )
        self.assertEqual(
            [an_address(4), an_address(3)],
            [handle.address for handle in elevens.handles],
        )
        self.assertEqual(held.uuid, elevens.handles[0].uuid)


class TestVirtualFunctions(testtools.TestCase):
    """As on SR-IOV cards of NVIDIA, with the card's ids."""

    def setUp(self):
        super().setUp()
        self.functions = [
            a_card(
                number,
                '2236',
                parent_address=an_address(0),
                mdev_types={'nvidia-592': 1},
            )
            for number in range(1, 5)
        ]
        self.card = a_card(
            0,
            '2236',
            virtual_functions=tuple(
                function.address for function in self.functions
            ),
        )

    def test_the_card_is_one_device(self):
        device = discover(self.card, *self.functions)
        self.assertEqual(an_address(0), device.address)
        self.assertEqual(
            [function.address for function in self.functions],
            [handle.address for handle in units(device)],
        )
        self.assertEqual(4, len(set(uuids(device))))

    def test_one_alone(self):
        device = discover(self.functions[1], *self.functions)
        self.assertEqual(an_address(2), device.address)
        self.assertEqual(
            [an_address(2)], [handle.address for handle in units(device)]
        )

    def test_those_that_make_none_are_left_out(self):
        without = a_card(4, '2236', parent_address=an_address(0))
        with sysfs_tree.noting() as notes:
            device = discover(self.card, *self.functions[:3], without)
        self.assertEqual(3, len(units(device)))
        (note,) = notes.texts()
        self.assertIn(f'{an_address(4)}: it makes no mediated', note)
        self.assertRaises(exceptions.DeviceError, discover, self.card, without)

    def test_those_that_libvirt_does_not_list_are_told(self):
        with sysfs_tree.noting() as notes:
            device = discover(self.card, *self.functions[:3])
        self.assertEqual(3, len(units(device)))
        (note,) = notes.texts()
        self.assertIn(f'{an_address(4)}: it is a virtual function', note)

    def test_one_function_that_does_not_tell_the_size_of_a_type(self):
        fake = self.useFixture(fake_sysfs.FakeSysfs())
        name = 'mdev_supported_types/nvidia-592/description'
        for part in self.functions:
            fake.set(
                part.address, **{name.replace('/', '__'): 'max_instance=2'}
            )
        path = fake.root / f'bus/pci/devices/{an_address(1)}' / name
        path.unlink()
        path.mkdir()
        with sysfs_tree.noting() as notes:
            device = discover(self.card, *self.functions, sysfs=fake.sysfs)
        self.assertEqual(2, len(units(device)))
        (note,) = notes.texts()
        self.assertIn(name, note)


class TestPlug(testtools.TestCase):
    def setUp(self):
        super().setUp()
        fake = self.useFixture(libvirt.Libvirt(devices.pci_info()))
        self.node_devices = libvirt_devices.NodeDevices(fake.host)
        self.driver = mdev.MdevDriver(self.node_devices, NO_SYSFS, NODE_UUID)

    def device(self):
        host = self.node_devices.look()
        (spec,) = device_spec.parse([devices.GPU_SPEC], ['mdev'])
        return self.driver.discover(host.functions[an_address()], spec, host)

    def mdevs(self):
        return sorted(each.uuid for each in self.node_devices.look().mdevs)

    def test_until_the_card_is_full(self):
        device = self.device()
        for handle in itertools.chain(units(device), units(device)):
            self.driver.plug(handle)
        self.assertEqual(sorted(uuids(device)), self.mdevs())
        one_more = attach_handle.AttachHandle(
            FOREIGN, an_address(), 'nvidia-11'
        )
        self.assertRaises(exceptions.DeviceError, self.driver.plug, one_more)
        self.assertEqual(device, self.device())

    def test_unplug(self):
        first, second, *_rest = units(self.device())
        self.driver.plug(first)
        self.driver.plug(second)
        for _time in range(2):
            self.driver.unplug(first)
        self.assertEqual([second.uuid], self.mdevs())

    def test_handle_of_another_driver(self):
        handle = attach_handle.AttachHandle(FOREIGN, an_address())
        self.assertRaises(exceptions.DeviceError, self.driver.plug, handle)
        self.assertEqual([], self.mdevs())


class SeveralTypes:
    """A card of 24 GB, in a mode in which it makes vGPUs of any size."""

    driver = mdev.MdevDriver
    TYPES = {'nvidia-1': 24, 'nvidia-6': 4, 'nvidia-12': 2}
    takes_any = True

    def describe(self, address):
        for mdev_type, units in self.TYPES.items():
            self.sysfs.set(
                address,
                **{
                    f'mdev_supported_types__{mdev_type}__description': (
                        'num_heads=4, frl_config=60, '
                        f'framebuffer={24 // units}G, '
                        f'max_resolution=4096x2160, max_instance={units}'
                    )
                },
            )

    def units(self, **keys):
        return {
            each.name: len(each.handles)
            for each in self.discover(**keys).deployables
            if each.fault is None
        }

    def make_foreign(self, mdev_type, address):
        self.node_devices.create_mdev(
            FOREIGN, pci_address.PciAddress.parse(address), mdev_type
        )


class TestSeveralTypes(SeveralTypes, base.DriverTestCase):
    spec = {
        'vendor_id': '10de',
        'mdev_types': {'nvidia-12': 1, 'nvidia-6': 1, 'nvidia-1': 6},
    }

    def functions(self):
        self.describe(self.CARD)
        return [
            base.a_function(self.CARD, '10de', '2236', mdev_types=self.TYPES)
        ]

    def test_each_is_a_part_with_its_trait(self):
        device = self.discover()
        self.assertEqual(
            {'nvidia-12': 1, 'nvidia-6': 1, 'nvidia-1': 6}, self.units()
        )
        for deployable in device.deployables:
            digits = deployable.name.removeprefix('nvidia-')
            self.assertEqual(
                {
                    'CUSTOM_VGPU_NVIDIA_A10',
                    f'CUSTOM_NVIDIA_2236_NVIDIA_{digits}',
                },
                deployable.traits,
            )

    def test_never_more_than_the_card_has(self):
        self.assertEqual(
            {'nvidia-12': 1, 'nvidia-6': 2},
            self.units(
                mdev_types={'nvidia-12': 1, 'nvidia-6': 4, 'nvidia-1': 6}
            ),
        )
        self.assertEqual(
            {'nvidia-1': 23},
            self.units(mdev_types={'nvidia-1': 23, 'nvidia-6': 1}),
        )

    def test_what_others_have_made_is_not_offered(self):
        self.make_foreign('nvidia-12', self.CARD)
        self.assertEqual({'nvidia-12': 1}, self.units())

    def test_a_type_without_room_keeps_its_place(self):
        """As on a card without mixed mode, once it has made one."""
        wanted = {'nvidia-12': 1, 'nvidia-6': 2}
        before = self.discover(mdev_types=wanted)
        self.a_driver().plug(before.deployables[0].handles[0])
        look = self.node_devices.look

        def look_at_one_size():
            host = look()
            made = {mdev.type for mdev in host.mdevs}
            return dataclasses.replace(
                host,
                functions={
                    address: dataclasses.replace(
                        function,
                        mdev_types={
                            type_: number if type_ in made else 0
                            for type_, number in function.mdev_types.items()
                        },
                    )
                    for address, function in host.functions.items()
                },
            )

        self.node_devices.look = look_at_one_size
        with sysfs_tree.noting() as notes:
            device = self.discover(mdev_types=wanted)
        self.assertEqual(
            [each.handles for each in before.deployables],
            [each.handles for each in device.deployables],
        )
        self.assertEqual(
            [True, False], [each.fault is None for each in device.deployables]
        )
        (note,) = notes.texts()
        self.assertIn('0 of the 2 units of the type nvidia-6', note)

    @hypothesis.given(strategies.data())
    def test_what_is_offered_can_be_made(self, data):
        types = data.draw(strategies.permutations(sorted(self.TYPES)))
        wanted = {
            mdev_type: data.draw(strategies.integers(1, 30))
            for mdev_type in types
        }
        # What there was is forgotten between two examples.
        self.node_devices = simulated_mdevs.SimulatedMdevs(self.functions())
        if data.draw(strategies.booleans()):
            self.make_foreign(
                data.draw(strategies.sampled_from(types)), self.CARD
            )
        before = self.discover(mdev_types=wanted)
        handles = data.draw(
            strategies.permutations(
                [
                    handle
                    for each in before.deployables
                    if each.fault is None
                    for handle in each.handles
                ]
            )
        )
        for handle in handles:
            self.a_driver().plug(handle)
            self.assertEqual(before, self.discover(mdev_types=wanted))

    def test_a_type_that_the_card_does_not_make(self):
        self.assert_refused(
            'nvidia-1, nvidia-12, nvidia-6',
            mdev_types={'nvidia-1': 1, 'nvidia-7': 1},
        )

    def test_both_keys(self):
        self.assert_refused('both', mdev_type='nvidia-1')

    def test_types_that_say_nothing_of_their_size(self):
        self.sysfs.remove(self.CARD)
        self.assert_refused('max_instance')
        self.assertEqual(
            {'nvidia-6': 3}, self.units(mdev_types={'nvidia-6': 3})
        )


class TestSeveralTypesOnVirtualFunctions(SeveralTypes, base.DriverTestCase):
    """Each makes one, of any type that the card still has room for."""

    spec = {'vendor_id': '10de', 'mdev_types': {'nvidia-12': 1, 'nvidia-6': 2}}

    def functions(self):
        card, *functions = base.sriov(self.CARD, '10de', '2236', '2236', 8)
        for function in functions:
            self.describe(function.address)
        return [
            card,
            *(
                dataclasses.replace(
                    function, mdev_types=dict.fromkeys(self.TYPES, 1)
                )
                for function in functions
            ),
        ]

    def test_they_are_dealt_out(self):
        self.assertEqual({'nvidia-12': 1, 'nvidia-6': 2}, self.units())
        self.assertEqual(
            [base.the_address(number) for number in (1, 2, 3)],
            self.addresses(self.discover()),
        )

    def test_one_type_up_to_what_the_card_has(self):
        """Not as many as there are functions."""
        self.assertEqual(
            {'nvidia-6': 4}, self.units(mdev_types=None, mdev_type='nvidia-6')
        )
        self.make_foreign('nvidia-12', base.the_address(8))
        self.assertEqual(
            {'nvidia-6': 2}, self.units(mdev_types=None, mdev_type='nvidia-6')
        )

    def test_a_function_is_a_part_of_its_card(self):
        self.assert_refused(self.CARD, address=base.the_address(8))


class TestConformance(base.DriverTestCase):
    driver = mdev.MdevDriver
    spec = {'vendor_id': '10de', 'mdev_type': 'nvidia-11'}
    takes_any = True

    def functions(self):
        return [
            base.a_function(
                self.CARD,
                '10de',
                '13f2',
                mdev_types={'nvidia-11': 16, 'nvidia-12': 8},
            )
        ]
