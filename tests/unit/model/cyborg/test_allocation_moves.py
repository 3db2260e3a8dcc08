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

import collections

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model.cyborg import allocation_moves

_Unit = allocation_moves.MovedUnit

_THEIRS = st.builds(
    _Unit, st.sampled_from(['a', 'b', 'c']), st.sampled_from(['FPGA', 'VGPU'])
)
_OURS = st.builds(
    _Unit, st.sampled_from(['x', 'y']), st.sampled_from(['FPGA', 'VGPU'])
)
_MOVES = st.lists(
    st.builds(allocation_moves.AllocationMove, _THEIRS, _OURS), max_size=8
)
_OTHERS = st.dictionaries(
    st.sampled_from(['node', 'other']),
    st.just({'VCPU': 2, 'MEMORY_MB': 64}),
)


def _amounts(
    units: list[allocation_moves.MovedUnit],
) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for unit, amount in collections.Counter(units).items():
        found.setdefault(unit.rp_uuid, {})[unit.resource_class] = amount
    return found


class TestMoved(testtools.TestCase):
    @given(_MOVES, _OTHERS)
    def test_each_unit_goes_and_nothing_else(
        self,
        moves: list[allocation_moves.AllocationMove],
        others: dict[str, dict[str, int]],
    ) -> None:
        before = {**others, **_amounts([move.source for move in moves])}
        after = {**others, **_amounts([move.target for move in moves])}
        self.assertEqual(after, allocation_moves.moved(before, moves))

    @given(_MOVES, _OTHERS)
    def test_again_changes_nothing(
        self,
        moves: list[allocation_moves.AllocationMove],
        others: dict[str, dict[str, int]],
    ) -> None:
        after = {**others, **_amounts([move.target for move in moves])}
        self.assertEqual(after, allocation_moves.moved(after, moves))

    @given(_MOVES, _OTHERS)
    def test_there_and_back(
        self,
        moves: list[allocation_moves.AllocationMove],
        others: dict[str, dict[str, int]],
    ) -> None:
        before = {**others, **_amounts([move.source for move in moves])}
        back = [
            allocation_moves.AllocationMove(move.target, move.source)
            for move in moves
        ]
        self.assertEqual(
            before,
            allocation_moves.moved(
                allocation_moves.moved(before, moves), back
            ),
        )

    def test_another_amount_is_refused(self) -> None:
        move = allocation_moves.AllocationMove(
            _Unit('a', 'FPGA'), _Unit('x', 'FPGA')
        )
        fault = self.assertRaises(
            exceptions.Conflict,
            allocation_moves.moved,
            {'a': {'FPGA': 2}},
            [move],
        )
        self.assertIn('2 FPGA of provider a', str(fault))
