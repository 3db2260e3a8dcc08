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

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.model import finding
from nova_accel.model import host_findings

LEFT = finding.Finding(finding.Kind.REFUSED, 'left')
REPAIRED = finding.Finding(finding.Kind.MDEV, 'repaired', is_repaired=True)

_PUTS = st.tuples(
    st.sampled_from(('one', 'other')),
    st.lists(
        st.builds(
            finding.Finding,
            st.just(finding.Kind.BINDING),
            st.sampled_from('abc'),
            st.booleans(),
        ),
        max_size=3,
    ),
)


class TestFindings(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.findings = host_findings.Findings()

    def test_what_is_left_alone_stays_until_it_is_gone(self) -> None:
        self.findings.put('one', [LEFT])
        for _round in range(3):
            self.findings.end_round()
        self.findings.put('other', [])
        self.assertEqual({LEFT}, self.findings.all())
        self.assertEqual((LEFT,), self.findings.of('one'))
        self.findings.put('one', [])
        self.assertEqual(frozenset(), self.findings.all())
        self.assertEqual((), self.findings.of('one'))

    def test_what_is_repaired_stays_until_the_next_round_ends(self) -> None:
        self.findings.put('one', iter([REPAIRED]))
        self.findings.put('one', [])
        self.findings.end_round()
        self.assertEqual({REPAIRED}, self.findings.all())
        self.findings.end_round()
        self.assertEqual(frozenset(), self.findings.all())

    def test_what_is_repaired_again_stays_as_long_again(self) -> None:
        for _round in range(3):
            self.findings.put('one', [REPAIRED])
            self.findings.end_round()
        self.assertEqual({REPAIRED}, self.findings.all())

    @given(st.lists(_PUTS | st.none(), max_size=12))
    def test_nothing_is_lost_and_nothing_stays(
        self,
        steps: list[tuple[str, list[finding.Finding]] | None],
    ) -> None:
        """None is the end of a round."""
        findings = host_findings.Findings()
        left: dict[str, set[finding.Finding]] = {}
        rounds: list[set[finding.Finding]] = [set(), set()]
        for step in steps:
            if step is None:
                findings.end_round()
                rounds.append(set())
            else:
                part, found = step
                findings.put(part, found)
                left[part] = {each for each in found if not each.is_repaired}
                rounds[-1] |= {each for each in found if each.is_repaired}
        self.assertEqual(
            rounds[-1].union(rounds[-2], *left.values()), findings.all()
        )
