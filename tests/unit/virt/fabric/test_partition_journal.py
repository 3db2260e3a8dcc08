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

from nova_accel.model import fabric
from nova_accel.model import pci_address
from nova_accel.virt.fabric import partition_journal

ENTRY = fabric.Entry(
    3,
    frozenset({1, 3}),
    'i1',
    fabric.Step.ACTIVE,
    'boot',
    frozenset({'handle1', 'handle3'}),
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
        return partition_journal.Journal(self.directory)

    def test_it_survives(self):
        self.journal.write(ENTRY)
        other = dataclasses.replace(ENTRY, number=4, instance_uuid='i2')
        self.journal.write(other)
        self.assertEqual([ENTRY, other], self.journal.entries())
        self.assertEqual([other], self.journal.of_instance('i2'))
        self.journal.remove(ENTRY)
        self.assertEqual([other], self.journal.entries())

    def test_one_guest_for_each_partition(self):
        journal = self.journal
        for instance in ('i1', 'i2'):
            journal.write(dataclasses.replace(ENTRY, instance_uuid=instance))
        self.assertEqual([], journal.of_instance('i1'))

    def test_damage(self):
        self.journal.write(ENTRY)
        (self.directory / 'partition-5.json').write_text('{')
        self.assertEqual([ENTRY], self.journal.entries())
        self.assertIn('no other guest gets its GPUs', self.log.output)
