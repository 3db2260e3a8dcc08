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
import re

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.model import bounds
from nova_accel.model import finding

SERVER = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'

_FINDINGS = st.builds(
    finding.Finding,
    kind=st.sampled_from(finding.Kind) | st.just('a_newer_one'),
    words=st.text(max_size=2 * finding.MAX_WORDS),
    is_repaired=st.booleans(),
    instance_uuid=st.none() | st.just(SERVER) | st.text(max_size=40),
    device=st.none() | st.text(max_size=2 * bounds.MAX_TEXT),
)


class TestFinding(testtools.TestCase):
    def test_there_and_back(self) -> None:
        for found in (
            finding.Finding(finding.Kind.MDEV, 'destroyed', True),
            finding.Finding('a_newer_one', 'brr', False, SERVER, '0000:01'),
        ):
            self.assertEqual(found, finding.from_dict(found.to_dict()))

    @given(_FINDINGS)
    def test_what_is_told_is_within_bounds(
        self, found: finding.Finding
    ) -> None:
        told = found.to_dict()
        self.assertRegex(told['kind'], finding.KIND)
        self.assertLessEqual(len(told['words']), finding.MAX_WORDS)
        self.assertRegex(told['words'], re.compile(bounds.TEXT, re.DOTALL))
        if told['instance_uuid'] is not None:
            self.assertRegex(told['instance_uuid'], bounds.UUID)
        if told['device'] is not None:
            self.assertLessEqual(len(told['device']), bounds.MAX_TEXT)

    def test_each_kind_has_a_remedy(self) -> None:
        for kind in finding.Kind:
            self.assertNotEqual('', finding.Finding(kind, 'x').remedy)
        self.assertEqual('', finding.Finding('a_newer_one', 'x').remedy)

    def test_a_remedy_names_the_server(self) -> None:
        found = finding.Finding(
            finding.Kind.GUEST_GONE, 'x', instance_uuid=SERVER
        )
        self.assertEqual(
            f'openstack server reboot --hard {SERVER}', found.remedy
        )

    def test_nothing_is_to_do_where_the_host_has_done_it(self) -> None:
        found = finding.Finding(finding.Kind.MDEV, 'x', is_repaired=True)
        self.assertIn('the host has repaired it', found.remedy)


class TestTold(testtools.TestCase):
    @given(st.lists(_FINDINGS, max_size=8))
    def test_each_once_and_what_is_not_repaired_first(
        self, found: list[finding.Finding]
    ) -> None:
        told = finding.to_dicts([*found, *found])
        self.assertEqual(len(set(found)), len(told))
        repaired = [each['is_repaired'] for each in told]
        self.assertEqual(sorted(repaired), repaired)
        self.assertEqual(told, finding.to_dicts(reversed(found)))

    def test_the_kinds_that_matter_most_come_first(self) -> None:
        found = [finding.Finding(kind, 'x') for kind in finding.Kind]
        self.assertEqual(
            [*finding.Kind, 'a_newer_one'],
            [
                each['kind']
                for each in finding.to_dicts(
                    [finding.Finding('a_newer_one', 'x'), *reversed(found)]
                )
            ],
        )

    def test_too_many(self) -> None:
        refused = finding.Finding(finding.Kind.REFUSED, 'no')
        found = [
            dataclasses.replace(refused, device=str(number))
            for number in range(finding.MAX_FINDINGS)
        ]
        self.assertEqual(finding.MAX_FINDINGS, len(finding.to_dicts(found)))
        gone = finding.Finding(finding.Kind.GUEST_GONE, 'no guest')
        told = finding.to_dicts([*found, gone])
        self.assertEqual(finding.MAX_FINDINGS, len(told))
        self.assertEqual(gone.to_dict(), told[0])
        self.assertEqual(finding.Kind.MORE, told[-1]['kind'])
        self.assertIn('2 more', told[-1]['words'])
