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

import itertools

import hypothesis
from hypothesis import strategies
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.devices import replacement_devices


def a_host(bus):
    """Makes ARQs of different devices of one host."""
    numbers = itertools.count(1)

    def an_arq(group=0, mdev_type=None):
        number = next(numbers)
        return arq_types.Arq(
            f'arq-{bus}-{number}',
            arq_types.State.BOUND,
            'profile',
            group,
            {},
            'rp',
            attach_handle.AttachHandle(
                f'handle-{bus}-{number}',
                pci_address.PciAddress(0, bus, number, 0),
                mdev_type,
            ),
        )

    return an_arq


class TestTargets(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.here, self.there = a_host(0x81), a_host(0x91)

    def assert_refused(self, source, destination, text):
        error = self.assertRaises(
            exceptions.NoAssignment,
            replacement_devices.targets,
            source,
            destination,
        )
        self.assertIn(text, str(error))

    def test_both_kinds(self):
        targets = replacement_devices.targets(
            [self.here(0, 'nvidia-11'), self.here(1)],
            [self.there(1), self.there(0, 'nvidia-11')],
        )
        self.assertEqual({'handle-129-1': 'handle-145-2'}, targets.mdevs)
        self.assertEqual({'0000:81:02.0': '0000:91:01.0'}, targets.pci)

    def test_none(self):
        self.assertEqual(
            replacement_devices.Targets({}, {}),
            replacement_devices.targets([], []),
        )

    def test_another_type(self):
        self.assert_refused(
            [self.here(0), self.here(1, 'nvidia-11')],
            [self.there(0), self.there(1, 'nvidia-12')],
            'group 1 is nvidia-11 on the source and nvidia-12 on',
        )
        self.assert_refused(
            [self.here(0, 'nvidia-11')],
            [self.there(0)],
            'nvidia-11 on the source and a PCI function on',
        )

    def test_more_or_fewer(self):
        for source, destination in (
            ([0, 1], [0]),
            ([0], [0, 1]),
            ([0, 0], [0, 1]),
            ([1], [2]),
        ):
            self.assert_refused(
                map(self.here, source),
                map(self.there, destination),
                'has different numbers of devices',
            )

    def test_facts_name_both_values(self):
        pci = {'0000:81:00.4': '0000:91:00.5'}
        facts = {'the ECC mode': 'Enabled', 'vgpu_params': ''}
        replacement_devices.check_facts(
            pci, {'0000:81:00.4': facts}, {'0000:91:00.5': facts}
        )
        replacement_devices.check_facts(pci, {}, {})
        for destination in (
            {'0000:91:00.5': {**facts, 'the ECC mode': 'Disabled'}},
            {'0000:91:00.5': {'vgpu_params': ''}},
            {},
        ):
            error = self.assertRaises(
                exceptions.NoAssignment,
                replacement_devices.check_facts,
                pci,
                {'0000:81:00.4': facts},
                destination,
            )
            self.assertIn("the ECC mode is 'Enabled' at", str(error))
            self.assertIn('at 0000:91:00.5 on the destination', str(error))
            # Tenants read no address.
            self.assertIn("the ECC mode is 'Enabled' on the", error.public)
            self.assertNotIn('0000:', error.public)

    def test_facts_are_told_and_heard(self):
        facts = {'vgpu_params': 'enable_uvm=1', 'the ECC mode': 'N/A'}
        self.assertEqual(
            facts,
            replacement_devices.load_facts(
                replacement_devices.dump_facts(facts)
            ),
        )
        for text in ('', 'nvidia-11', '[]', '{'):
            self.assertRaises(
                exceptions.NoAssignment, replacement_devices.load_facts, text
            )

    @hypothesis.given(
        strategies.lists(
            strategies.tuples(
                strategies.integers(0, 3),
                strategies.sampled_from([None, 'nvidia-11']),
            ),
            unique_by=lambda each: each[0],
        ),
        strategies.integers(1, 3),
        strategies.randoms(),
    )
    def test_each_has_one_of_its_group(self, groups, units, random):
        source = [
            self.here(*group) for group in groups for _unit in range(units)
        ]
        destination = [
            self.there(*group) for group in groups for _unit in range(units)
        ]
        random.shuffle(source)
        random.shuffle(destination)
        targets = replacement_devices.targets(source, destination)

        def groups_of(arqs):
            return {
                name: request.device_profile_group_id
                for request in arqs
                for name in (request.handle.uuid, str(request.handle.address))
            }

        before, after = groups_of(source), groups_of(destination)
        for found in (targets.mdevs, targets.pci):
            self.assertEqual(len(found), len(set(found.values())))
            for ours, theirs in found.items():
                self.assertEqual(before[ours], after[theirs])
        self.assertEqual(len(source), len(targets.mdevs) + len(targets.pci))
