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

import json

import testtools

from nova_accel.model.devices import device_spec
from nova_accel.model.devices import subsystem
from nova_accel.testing import pci_functions
from nova_accel.virt.publishing import host_offers
from nova_accel.virt.publishing import host_preview
from nova_accel.virt.publishing import line_results
from unit.virt.publishing import previewed

_function = pci_functions.function

CARD = '0000:3d:00.0'

#: A card with two virtual functions, which can get two types.
VGPUS = pci_functions.virtual_functions(
    _function(CARD, '10de', '2235'), 2, '2235'
)
VGPU_TYPES = {
    str(part.address): {
        'nvidia__current_vgpu_type': '0',
        'nvidia__creatable_vgpu_types': (
            'ID : vGPU Name\n1001 : NVIDIA A40-8Q\n558 : NVIDIA A40-1Q'
        ),
    }
    for part in VGPUS[1:]
}


class OffersTestCase(testtools.TestCase):
    def offers(self, *functions, **attributes):
        return host_offers.of(
            self.useFixture(
                previewed.Previewed(functions, attributes.get('attributes'))
            ).preview()
        )

    def offer(self, *functions, **attributes):
        (found,) = self.offers(*functions, **attributes)
        return found


class TestOf(OffersTestCase):
    def test_a_line_for_each_kind(self):
        offers = self.offers(
            _function('0000:19:00.0', '10de', '2331'),
            _function('0000:3b:00.0', '10de', '2331'),
            _function('0000:3d:00.0', '8086', '4940'),
        )
        self.assertEqual(
            [
                '{"vendor_id": "10de", "product_id": "2331", "driver": '
                '"nvidia_gpu"}',
                '{"vendor_id": "8086", "product_id": "4940", "driver": "qat"}',
            ],
            [each.line.text for each in offers],
        )
        self.assertEqual([2, 1], [len(each.offered) for each in offers])
        self.assertEqual([('pci',), ('pci',)], [each.also for each in offers])
        self.assertEqual('NVIDIA H100 PCIe 80GB', offers[0].kind.product)
        self.assertEqual('10de:2331', offers[0].kind.ids)

    def test_what_is_no_accelerator(self):
        self.assertEqual(
            [],
            self.offers(
                _function('0000:00:00.0', '10de', '2331', is_bridge=True),
                _function('0000:00:1f.0', '8086', 'a382', class_code='060100'),
                _function('0000:01:00.0', '1a03', '2000', class_code='030000'),
            ),
        )

    def test_one_that_the_catalogue_does_not_know(self):
        found = self.offer(
            _function(CARD, 'abcd', '0001', class_code='120000')
        )
        self.assertIsNone(found.kind.type)
        self.assertEqual([], found.offered)
        (why,) = found.others
        self.assertIn('the line must have a "type"', why.why)

    def test_any_drive(self):
        found = self.offer(
            _function(CARD, 'abcd', '0001', class_code='010802')
        )
        self.assertEqual('nvme', found.line.driver)
        self.assertTrue(found.offered)
        self.assertEqual(
            ['each drive is erased before its first guest gets it'],
            found.hints,
        )

    def test_the_host_uses_it(self):
        found = self.offer(
            _function(CARD, '10de', '2331'),
            attributes={CARD: {'boot_vga': '1'}},
        )
        self.assertEqual([], found.offered)
        self.assertEqual('nvidia_gpu', found.line.driver)
        self.assertIn('the display', found.others[0].why)

    def test_a_board(self):
        found = self.offer(
            _function(
                CARD,
                '10de',
                '25b6',
                subsystem=subsystem.Subsystem('10de', '14a9'),
            )
        )
        self.assertEqual('10de:25b6/10de:14a9', found.kind.ids)
        self.assertEqual(
            ('10de', '14a9'),
            (
                found.line.subsystem_vendor_id,
                found.line.subsystem_product_id,
            ),
        )
        self.assertTrue(found.offered)

    def test_a_card_that_makes_mediated_devices(self):
        """Its vendor's driver for vGPUs is there for that."""
        found = self.offer(
            _function(
                CARD,
                '10de',
                '1eb8',
                mdev_types={'nvidia-222': 0, 'nvidia-223': 4},
            )
        )
        self.assertEqual(
            ('mdev', 'nvidia-223'), (found.line.driver, found.line.mdev_type)
        )
        self.assertEqual('4 x nvidia-223', found.offered[0].units)
        self.assertEqual(
            ['"mdev_type" may be one of nvidia-222, nvidia-223'], found.hints
        )

    def test_vgpus_that_are_virtual_functions(self):
        found = self.offer(*VGPUS, attributes=VGPU_TYPES)
        self.assertEqual(
            ('nvidia_vfio', (('558', 1),)),
            (found.line.driver, found.line.vgpu_types),
        )
        self.assertIn('choose the "vgpu_types"', found.hints[0])

    def test_a_network_that_no_host_tells(self):
        found = self.offer(
            _function(CARD, '15b3', '1021', max_virtual_functions=8)
        )
        self.assertEqual('nic', found.line.driver)
        replace, carve = found.hints
        self.assertIn('replace "physnet1"', replace)
        self.assertIn('"sriov_numvfs": 8', carve)

    def test_virtual_functions_that_are_there(self):
        """The card cannot be offered, and says so."""
        card, parts = self.offers(
            *pci_functions.virtual_functions(
                _function(CARD, '8086', '4940', max_virtual_functions=16),
                2,
                '4941',
            )
        )
        self.assertEqual([], card.offered)
        self.assertIn('virtual functions are enabled', card.others[0].why)
        self.assertEqual([], card.hints)
        self.assertEqual(2, len(parts.offered))

    def test_a_card_that_takes_its_parts(self):
        """The lines are tried in one configuration, too."""
        card, part = self.offers(
            *pci_functions.virtual_functions(
                _function(CARD, '1002', '74a1'), 2, '74b5'
            )
        )
        self.assertEqual('gpu_sriov', card.line.driver)
        self.assertEqual('2 x function', card.offered[0].units)
        self.assertEqual([], part.offered)
        self.assertIn(f'is a part of {CARD}', part.others[0].why)

    def test_what_is_not_known_of_a_device(self):
        """It is offered, and the note stays."""
        found = self.offer(_function(CARD, '15b3', 'a2d6'))
        self.assertTrue(found.offered)
        self.assertIn(
            'it is a physical function of a BlueField',
            ' '.join(each.text for each in found.others),
        )


class TestHints(OffersTestCase):
    """A line that follows its hint offers what that says."""

    def units(self, offer, **keys):
        line = json.dumps({**json.loads(offer.line.text), **keys})
        preview = host_preview.of_this_host()
        specs = device_spec.parse([line], preview.drivers)
        return [
            (each.outcome, each.units)
            for each in line_results.of(preview, specs)
        ]

    def test_another_type(self):
        types = {'nvidia-222': 8, 'nvidia-223': 4}
        found = self.offer(_function(CARD, '10de', '1eb8', mdev_types=types))
        for name, units in types.items():
            self.assertEqual(
                [('offered', f'{units} x {name}')],
                self.units(found, mdev_type=name),
            )

    def test_more_vgpus(self):
        found = self.offer(*VGPUS, attributes=VGPU_TYPES)
        self.assertIn(
            ('offered', '1 x vGPU type 1001'),
            self.units(found, vgpu_types={'1001': 1, '558': 1}),
        )

    def test_more_functions(self):
        found = self.offer(
            _function(CARD, '8086', '4940', max_virtual_functions=16)
        )
        (hint,) = found.hints
        self.assertIn('"sriov_numvfs": 16', hint)
        self.assertEqual(
            [('made at start', '')], self.units(found, sriov_numvfs=16)
        )
