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

import fixtures

from nova_accel import exceptions
from nova_accel.drivers import answers
from nova_accel.drivers import mig_places
from nova_accel.model import naming
from nova_accel.model.cards import card_slice
from nova_accel.testing import driver_conformance
from nova_accel.testing import nvidia_cards
from unit.drivers import divided_card

EIGHTH = card_slice.WHOLE_CARD // 8


class TestShapes(divided_card.CardTestCase):
    def assert_refused(self, *texts, shapes=('mig:*', 'vgpu:*')):
        error = self.assertRaises(
            exceptions.DeviceError, self.discover, *shapes
        )
        for text in texts:
            self.assertIn(text, str(error))

    def test_each_shape_is_a_part(self):
        device = self.discover('mig:3g.40gb', 'vgpu:NVIDIA H100-20C')
        answers.device(device, self.functions[0], self.spec)
        self.assertEqual(('VGPU', False), (device.type, device.pooled))
        instances, vgpus = device.deployables
        self.assertEqual(
            [
                ('mig:3g.40gb', 'CUSTOM_SHAPE_MIG_3G_40GB'),
                (
                    'vgpu:NVIDIA H100-20C',
                    'CUSTOM_SHAPE_VGPU_NVIDIA_H100_20C',
                ),
            ],
            [(each.name, each.resource_class) for each in device.deployables],
        )
        self.assertEqual(
            [
                card_slice.CardSlice('mig:3g.40gb', 'mig', start, 4 * EIGHTH)
                for start in (0, 4 * EIGHTH)
            ],
            [each.slice for each in instances.handles],
        )
        self.assertEqual(
            [
                card_slice.CardSlice(
                    'vgpu:NVIDIA H100-20C',
                    'vgpu:NVIDIA H100-20C',
                    number * 2 * EIGHTH,
                    2 * EIGHTH,
                )
                for number in range(4)
            ],
            [each.slice for each in vgpus.handles],
        )
        self.assertEqual(
            {None: 2, '1131': 4},
            {
                each.vgpu_type: len(deployable.handles)
                for deployable in device.deployables
                for each in deployable.handles
            },
        )
        self.assertFalse(any(each.is_managed for each in device.handles))
        self.assertEqual(
            naming.derived_uuid(
                driver_conformance.NODE_UUID,
                'pci_0000_3d_00_0',
                'mig:3g.40gb',
                str(4 * EIGHTH),
            ),
            instances.handles[1].uuid,
        )

    def test_all(self):
        units = self.units()
        self.assertEqual(
            [
                *('mig:1g.10gb', 'mig:1g.20gb', 'mig:2g.20gb', 'mig:3g.40gb'),
                *('mig:4g.40gb', 'mig:7g.80gb', 'vgpu:NVIDIA H100-20C'),
                *('vgpu:NVIDIA H100-40C', 'vgpu:NVIDIA H100-5C'),
                'vgpu:NVIDIA H100-80C',
            ],
            list(units),
        )
        self.assertEqual(
            [7, 4, 3, 2, 1, 1, 4, 2, 16, 1], list(map(len, units.values()))
        )

    def test_functions_of_what_is_had_at_a_time_differ(self):
        handles = list(self.discover().handles)
        for one, other in itertools.combinations(handles, 2):
            self.assertTrue(
                one.address != other.address
                or one.slice.excludes(other.slice),
                (one, other),
            )

    def test_what_the_card_is_changes_nothing(self):
        before = self.discover()
        units = self.units()
        driver = self.a_driver()
        for several in (
            units['mig:3g.40gb'],
            units['vgpu:NVIDIA H100-5C'],
            units['mig:1g.10gb'],
        ):
            for handle in several:
                driver.plug(handle)
            self.assertEqual(before, self.discover())
            for handle in several:
                driver.unplug(handle)
            self.assertEqual(before, self.discover())

    def test_too_few_functions(self):
        self.functions[0] = dataclasses.replace(
            self.functions[0],
            virtual_functions=self.functions[0].virtual_functions[:15],
        )
        self.assert_refused('need 16 virtual functions', 'has 15')
        self.assertEqual(7, len(self.units('mig:1g.10gb')['mig:1g.10gb']))

    def test_the_card_rules_over_the_table(self):
        self.card.profiles = [
            each._replace(starts=each.starts[:1]) for each in nvidia_cards.H100
        ]
        self.assertEqual(2, len(self.units('mig:3g.40gb')['mig:3g.40gb']))
        self.card.is_on = True
        self.assertEqual(1, len(self.units('mig:3g.40gb')['mig:3g.40gb']))

    def test_whole(self):
        device = self.discover('whole', 'mig:*', 'vgpu:*')
        answers.device(device, self.functions[0], self.spec)
        whole, *parts = device.deployables
        self.assertEqual(
            ('whole', 'CUSTOM_SHAPE_WHOLE'), (whole.name, whole.resource_class)
        )
        [handle] = whole.handles
        self.assertEqual(self.functions[0].address, handle.address)
        self.assertTrue(handle.is_managed)
        # Another guest has none of it, and this one none beside another.
        others = {
            each.uuid for deployable in parts for each in deployable.handles
        }
        self.assertEqual(others, set(device.excluded({handle.uuid})))
        self.assertEqual(
            {handle.uuid}, set(device.excluded({next(iter(others))})) - others
        )

    def test_whole_alone(self):
        """Its virtual functions are in no one's way."""
        self.functions[0] = dataclasses.replace(
            self.functions[0], virtual_functions=()
        )
        [whole] = self.discover('whole').deployables
        self.assertEqual('whole', whole.name)

    def test_whole_with_its_audio_function(self):
        audio = dataclasses.replace(
            self.functions[0],
            address=dataclasses.replace(self.functions[0].address, function=1),
            virtual_functions=(),
            name='pci_0000_3d_00_1',
        )
        self.functions.append(audio)
        [whole] = self.discover('whole').deployables
        self.assertEqual((audio.address,), whole.handles[0].further_functions)

    def test_what_a_card_does_not_have(self):
        self.assert_refused(
            'no shape mig:9g.90gb', '1g.10gb', shapes=('mig:9g.90gb',)
        )
        self.assert_refused(
            'no shape vgpu:NVIDIA A40-1Q',
            'NVIDIA H100-20C',
            shapes=('vgpu:NVIDIA A40-1Q',),
        )
        self.card.types = [each for each in self.card.types if each.profile]
        self.assert_refused('no shape vgpu:*', 'none', shapes=('vgpu:*',))

    def test_types_that_are_not_told(self):
        for text in ('', 'No devices were found\n', 'GPU 0000\n' * 9):
            self.tool.text = lambda _text, text=text: text
            self.assert_refused('vgpu -s -v', shapes=('vgpu:*',))

    def test_no_units_by_an_answer_that_is_cut(self):
        self.tool.text = lambda text: text.replace('Max Instances  ', 'Ma')
        self.assert_refused('vgpu -s -v', shapes=('vgpu:*',))


class TestTold(divided_card.CardTestCase):
    def setUp(self):
        super().setUp()
        driver = super().a_driver()
        self.a_driver = lambda: driver
        self.now = 0
        self.useFixture(
            fixtures.MonkeyPatch('time.monotonic', lambda: self.now)
        )

    def test_a_card_is_not_asked_at_each_look(self):
        """Guests cannot be started meanwhile."""
        before = self.discover()
        calls = len(self.tool.calls)
        self.now += 3600
        self.assertEqual(before, self.discover())
        self.assertEqual(calls, len(self.tool.calls))
        self.now += 1
        self.assertEqual(before, self.discover())
        self.assertGreater(len(self.tool.calls), calls)

    def test_a_card_that_does_not_answer_any_more(self):
        before = self.discover()
        self.now += 4000
        self.tool.text = lambda _text: 'Unknown Error'
        self.assertEqual(before, self.discover())


class TestUnknownCard(divided_card.CardTestCase):
    product_id = '2bb5'

    def test_in_its_modes(self):
        error = self.assertRaises(
            exceptions.DeviceError, self.discover, 'mig:*'
        )
        for text in ('10de:2bb5', 'nvidia-smi -i 0000:3d:00.0 -mig 1'):
            self.assertIn(text, str(error))
        self.card.is_on = True
        self.assertEqual(6, len(self.units('mig:*')))


class TestTable(divided_card.CardTestCase):
    def test_of_the_simulated_card(self):
        """What the table has of it is what it prints."""
        self.assertEqual(
            {
                (each.name, each.size, each.starts)
                for each in nvidia_cards.H100
                if '+' not in each.name
            },
            {each[:3] for each in mig_places.of('2330')},
        )

    def test_every_set_of_disjoint_places_has_its_compute_slices(self):
        """So memory alone has to be counted."""
        for product_id, compute in (('2330', 7), ('20b0', 7), ('20b7', 4)):
            places = [
                (int(each.name[0]), start, start + each.size)
                for each in mig_places.of(product_id)
                for start in each.starts
            ]
            self.assertLessEqual(_most(places, 0), compute)


def _most(places, start):
    """The most compute slices of disjoint places from a start on."""
    return max(
        (
            slices + _most(places, end)
            for slices, begin, end in places
            if begin >= start
        ),
        default=0,
    )
