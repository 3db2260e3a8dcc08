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

import testtools

from nova_accel import exceptions
from nova_accel.drivers import mdev
from nova_accel.host import pci_function
from nova_accel.model.cards import card_slice
from nova_accel.testing import fake_sysfs
from nova_accel.testing import simulated_mdevs
from unit.drivers import test_mdev


class TestShapes(testtools.TestCase):
    """A card that makes vGPUs of one size or another."""

    TYPES = (
        ('nvidia-1', 'GRID M60-0B', 16),
        ('nvidia-2', 'GRID M60-8Q', 2),
        # On a GPU instance, and one that says nothing of its size.
        ('nvidia-3', 'NVIDIA A100-3-20C', 2),
        ('nvidia-4', 'GRID M60-1B', None),
        ('nvidia-5', None, 4),
    )
    SMALL, LARGE = 'vgpu:GRID M60-0B', 'vgpu:GRID M60-8Q'

    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())

    def describe(self, function):
        for mdev_type, name, most in self.TYPES:
            texts = {
                'name': name,
                'description': (
                    'num_heads=4' if most is None else f'max_instance={most}'
                ),
            }
            folder = f'mdev_supported_types__{mdev_type}__'
            for attribute, text in texts.items():
                if text is not None:
                    self.fake.set(
                        function.address, **{f'{folder}{attribute}': text}
                    )

    def card(self):
        card = test_mdev.a_card(
            mdev_types={mdev_type: 1 for mdev_type, _name, _most in self.TYPES}
        )
        self.describe(card)
        return card

    def discover(self, *functions, **more):
        return test_mdev.discover(
            *(functions or [self.card()]),
            sysfs=self.fake.sysfs,
            **{'shapes': ['vgpu:*'], **more},
        )

    def test_each_type_is_a_shape(self):
        small, large = self.discover().deployables
        self.assertEqual([self.SMALL, self.LARGE], [small.name, large.name])
        self.assertEqual(
            ['CUSTOM_SHAPE_VGPU_GRID_M60_0B', 'CUSTOM_SHAPE_VGPU_GRID_M60_8Q'],
            [small.resource_class, large.resource_class],
        )
        for deployable, mdev_type, most in (
            (small, 'nvidia-1', 16),
            (large, 'nvidia-2', 2),
        ):
            size = card_slice.WHOLE_CARD // most
            self.assertEqual(
                [
                    card_slice.CardSlice(
                        deployable.name, deployable.name, start, size
                    )
                    for start in range(0, card_slice.WHOLE_CARD, size)
                ],
                [handle.slice for handle in deployable.handles],
            )
            self.assertEqual(
                {(test_mdev.an_address(), mdev_type)},
                {
                    (handle.address, handle.mdev_type)
                    for handle in deployable.handles
                },
            )
            self.assertEqual(
                most, len({handle.uuid for handle in deployable.handles})
            )

    def test_units_of_two_types_exclude_each_other(self):
        small, large = self.discover().deployables
        self.assertEqual(
            {handle.uuid for handle in large.handles},
            set(self.discover().excluded({small.handles[3].uuid})),
        )

    def test_only_what_the_line_lets_it_be(self):
        [only] = self.discover(shapes=[self.LARGE]).deployables
        self.assertEqual(self.LARGE, only.name)
        for shape, why in (
            ('mig:3g.40gb', 'which its mediated devices cannot be'),
            ('vgpu:GRID M60-1B', 'it has no shape vgpu:GRID M60-1B'),
            ('vgpu:NVIDIA A100-3-20C', 'it has no shape'),
        ):
            error = self.assertRaises(
                exceptions.DeviceError,
                self.discover,
                shapes=[self.LARGE, shape],
            )
            self.assertIn(why, str(error))

    def test_whole(self):
        whole, _large = self.discover(shapes=['whole', self.LARGE]).deployables
        [handle] = whole.handles
        self.assertEqual(
            (test_mdev.an_address(), None, True),
            (handle.address, handle.mdev_type, handle.is_managed),
        )
        driver = mdev.MdevDriver(
            simulated_mdevs.SimulatedMdevs([self.card()]),
            self.fake.sysfs,
            test_mdev.NODE_UUID,
        )
        self.assertRaises(
            exceptions.DeviceError, driver.check_migratable, handle
        )

    def test_what_it_makes_changes_nothing(self):
        before = self.discover()
        _small, large = before.deployables
        made = [
            pci_function.Mdev(
                large.handles[0].uuid, 'nvidia-2', test_mdev.an_address()
            )
        ]
        card = dataclasses.replace(
            self.card(),
            mdev_types={
                mdev_type: int(mdev_type == 'nvidia-2')
                for mdev_type, _name, _most in self.TYPES
            },
        )
        self.assertEqual(before, self.discover(card, mdevs=made, held=made))

    def test_what_others_have_made(self):
        foreign = pci_function.Mdev(
            test_mdev.FOREIGN, 'nvidia-2', test_mdev.an_address()
        )
        elsewhere = dataclasses.replace(
            foreign, parent=test_mdev.an_address(1)
        )
        self.discover(mdevs=[elsewhere], held=[elsewhere])
        for kind in ('mdevs', 'held'):
            error = self.assertRaises(
                exceptions.DeviceError, self.discover, **{kind: [foreign]}
            )
            self.assertIn(test_mdev.FOREIGN, str(error))
            self.assertIn('none of its shapes', str(error))

    def test_virtual_functions_make_one_unit_each(self):
        """Those of all types begin with the first one."""
        functions = [
            test_mdev.a_card(
                number,
                parent_address=test_mdev.an_address(0),
                mdev_types={'nvidia-1': 1, 'nvidia-2': 1},
            )
            for number in range(1, 5)
        ]
        for each in functions:
            self.describe(each)
        card = test_mdev.a_card(
            0, virtual_functions=tuple(each.address for each in functions)
        )
        small, large = self.discover(card, *functions).deployables
        addresses = [each.address for each in functions]
        # There are fewer than the card could make.
        self.assertEqual(
            addresses, [handle.address for handle in small.handles]
        )
        self.assertEqual(
            addresses[:2], [handle.address for handle in large.handles]
        )
        sixteenth = card_slice.WHOLE_CARD // 16
        self.assertEqual(
            [number * sixteenth for number in range(4)],
            [handle.slice.start for handle in small.handles],
        )

    def test_it_is_a_function_of_a_card_as_ever(self):
        [only] = test_mdev.discover(
            self.card(), sysfs=self.fake.sysfs, mdev_type='nvidia-1'
        ).deployables
        self.assertEqual({None}, {handle.slice for handle in only.handles})
        self.assertEqual('VGPU', only.resource_class)
