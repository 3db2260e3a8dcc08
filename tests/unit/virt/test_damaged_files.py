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


import testtools

from nova_accel.model import finding
from nova_accel.model import host_findings
from nova_accel.virt import damaged_files

UUID = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'


class Files:
    def __init__(self, *found):
        self.found = found

    def damaged(self):
        return self.found


class TestDamagedFiles(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.findings = host_findings.Findings()
        self.files = damaged_files.DamagedFiles(self.findings)

    def told(self):
        self.files.report()
        return {
            (found.words, found.instance_uuid, found.is_repaired)
            for found in self.findings.all()
            if found.kind is finding.Kind.JOURNAL
        }

    def test_journals_are_told_as_long_as_they_are_damaged(self):
        one = Files((UUID, 'no JSON'))
        other = Files((None, 'no name'))
        for journal in (one, other):
            self.assertIs(journal, self.files.of_journal(journal))
        self.assertEqual(
            {('no JSON', UUID, False), ('no name', None, False)}, self.told()
        )
        one.found = ()
        self.assertEqual({('no name', None, False)}, self.told())

    def test_a_memory_is_told_once(self):
        memory = Files((None, 'no JSON'))
        self.assertIs(memory, self.files.of_memory(memory))
        self.assertEqual({('no JSON', None, True)}, self.told())
        for _round in range(2):
            self.findings.end_round()
        self.assertEqual(set(), self.told())
