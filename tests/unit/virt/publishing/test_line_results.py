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

import fixtures
import testtools

from nova_accel.model.devices import device_spec
from nova_accel.model.providers import publishable
from nova_accel.testing import pci_functions
from nova_accel.virt.publishing import line_results
from unit.virt.publishing import previewed

_function = pci_functions.function

GPU = _function('0000:19:00.0', '10de', '2331')
SECOND = _function('0000:3b:00.0', '10de', '2331')
QAT = _function('0000:3d:00.0', '8086', '4940', max_virtual_functions=16)
DRIVE = _function('0000:5e:00.0', '144d', 'a824', class_code='010802')

Outcome = line_results.Outcome


def _line(driver, **keys):
    return {'driver': driver, **keys}


class TestOf(testtools.TestCase):
    def results(self, *lines, functions=(GPU, SECOND, QAT, DRIVE), **sysfs):
        preview = self.useFixture(
            previewed.Previewed(functions, sysfs.get('attributes'))
        ).preview()
        self.specs = device_spec.parse(map(json.dumps, lines), preview.drivers)
        return line_results.of(preview, self.specs)

    def outcomes(self, *lines, **facts):
        return [
            (each.line, each.outcome, each.addresses)
            for each in self.results(*lines, **facts)
        ]

    def useless(self, *lines, **facts):
        return line_results.useless(self.results(*lines, **facts), self.specs)

    def test_what_a_line_offers(self):
        first, second = self.results(_line('nvidia_gpu', vendor_id='10de'))
        self.assertEqual(
            (1, Outcome.OFFERED, ('0000:19:00.0',), '1 x function', ''),
            (
                first.line,
                first.outcome,
                first.addresses,
                first.units,
                first.why,
            ),
        )
        self.assertEqual('PGPU', first.part.resource_class)
        self.assertIn('CUSTOM_GPU_NVIDIA_H100_PCIE_80GB', first.part.traits)
        self.assertEqual('H100 PCIe 80GB', first.device.product)
        self.assertEqual(('0000:3b:00.0',), second.addresses)

    def test_cards_with_one_cause_share_a_result(self):
        (refused,) = self.results(
            _line('pci', vendor_id='10de'),
            functions=[
                _function('0000:19:00.0', 'abcd', '0001'),
                *(
                    _function(address, '10de', '2331', 7, [other])
                    for address, other in (
                        ('0000:3b:00.0', '0000:00:1f.0'),
                        ('0000:4c:00.0', '0000:00:1f.0'),
                    )
                ),
            ],
        )
        self.assertEqual(Outcome.REFUSED, refused.outcome)
        self.assertEqual(('0000:3b:00.0', '0000:4c:00.0'), refused.addresses)
        self.assertIn('shares the IOMMU group 7', refused.why)
        self.assertEqual('', refused.units)
        self.assertIn('0000:3b:00.0, 0000:4c:00.0 refused: ', refused.text)

    def test_the_host_uses_it(self):
        attributes = {'0000:19:00.0': {'boot_vga': '1'}}
        results = self.results(
            _line('nvidia_gpu', vendor_id='10de'), attributes=attributes
        )
        self.assertEqual(
            [Outcome.FAULTY, Outcome.OFFERED],
            [each.outcome for each in results],
        )
        self.assertIn('the display that the host has booted', results[0].why)

    def test_the_first_line_has_them(self):
        lines = (
            _line('nvidia_gpu', vendor_id='10de'),
            _line('pci', address='0000:19:00.0'),
        )
        self.assertEqual(
            (2, Outcome.SHADOWED, ('0000:19:00.0',)),
            self.outcomes(*lines)[-1],
        )
        self.assertEqual([2], self.useless(*lines))

    def test_the_same_line_twice(self):
        line = _line('nvidia_gpu', address='0000:19:00.0')
        self.assertEqual(
            [
                (1, Outcome.OFFERED, ('0000:19:00.0',)),
                (2, Outcome.SHADOWED, ('0000:19:00.0',)),
            ],
            self.outcomes(line, line),
        )

    def test_a_line_matches_nothing(self):
        lines = (
            _line('pci', vendor_id='8068'),
            _line('nvme', vendor_id='144d'),
        )
        nothing, _offered = self.results(*lines)
        self.assertEqual((1, Outcome.NOTHING), (nothing.line, nothing.outcome))
        self.assertIn('did you mean "8086"', nothing.why)
        self.assertEqual([1], self.useless(*lines))

    def test_virtual_functions_that_nova_compute_makes(self):
        line = _line('qat', vendor_id='8086', sriov_numvfs=16)
        self.assertEqual(
            [(1, Outcome.AT_START, ('0000:3d:00.0',))], self.outcomes(line)
        )
        self.assertEqual([], self.useless(line))

    def test_more_of_them_than_it_can_have(self):
        line = _line('qat', vendor_id='8086', sriov_numvfs=17)
        self.assertEqual(
            [(1, Outcome.REFUSED, ('0000:3d:00.0',))], self.outcomes(line)
        )
        self.assertEqual([1], self.useless(line))

    def test_what_cannot_be_published(self):
        """It is of no line, by the words of nova-compute."""
        why = '0000:19:00.0 (driver nvidia_gpu) is not published: why'
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.model.providers.publishable.of',
                lambda *_arguments: publishable.Publishable((), (why,)),
            )
        )
        (left,) = self.results(_line('nvidia_gpu', vendor_id='10de'))
        self.assertEqual((None, Outcome.REFUSED), (left.line, left.outcome))
        self.assertEqual(why, left.why)
