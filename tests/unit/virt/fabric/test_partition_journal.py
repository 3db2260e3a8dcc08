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
import pathlib

import fixtures
import testtools

from nova_accel.model import pci_address
from nova_accel.model.links import fabric
from nova_accel.virt.fabric import partition_journal

ONE = '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d11'
OTHER = '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d12'

ENTRY = fabric.PartitionEntry(
    3,
    frozenset({1, 3}),
    ONE,
    fabric.PartitionStep.ACTIVE,
    'boot',
    frozenset(
        {
            '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d21',
            '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d23',
        }
    ),
    (
        pci_address.PciAddress(0, 1, 0, 4),
        pci_address.PciAddress(0, 3, 0, 4),
    ),
)


class TestJournal(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.log = self.useFixture(fixtures.FakeLogger('nova_accel'))

    @property
    def journal(self):
        return partition_journal.PartitionJournal(self.directory)

    def test_it_survives(self):
        self.journal.write(ENTRY)
        other = dataclasses.replace(ENTRY, number=4, instance_uuid=OTHER)
        self.journal.write(other)
        self.assertEqual([ENTRY, other], self.journal.entries())
        self.assertEqual([other], self.journal.of_instance(OTHER))
        self.journal.remove(ENTRY)
        self.assertEqual([other], self.journal.entries())

    def test_one_guest_for_each_partition(self):
        journal = self.journal
        for instance in (ONE, OTHER):
            journal.write(dataclasses.replace(ENTRY, instance_uuid=instance))
        self.assertEqual([], journal.of_instance(ONE))

    def test_damage(self):
        self.journal.write(ENTRY)
        (self.directory / 'partition-5.json').write_text('{')
        self.assertEqual([ENTRY], self.journal.entries())
        self.assertIn('learns from the devices', self.log.output)
        self.assertEqual({5}, self.journal.damaged_numbers())
        self.journal.put_aside(5)
        self.assertEqual([], self.journal.damaged())

    def test_a_file_of_another_partition(self):
        self.journal.write(ENTRY)
        (self.directory / 'partition-3.json').rename(
            self.directory / 'partition-4.json'
        )
        self.assertEqual([], self.journal.entries())
        ((_nobody, why),) = self.journal.damaged()
        self.assertIn('by its content it is partition-3', why)
