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

import hypothesis
from hypothesis import strategies
import testtools

from nova_accel import exceptions
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import quota

_AMOUNTS = strategies.integers(0, 6)


def passes(limit: int | None, total: int, by_server: int, wanted: int) -> bool:
    try:
        quota.check(
            {} if limit is None else {'FPGA': limit},
            {'FPGA': quota.Usage(total, by_server)},
            {'FPGA': wanted},
        )
    except exceptions.OverQuota:
        return False
    return True


class TestCheck(testtools.TestCase):
    def test_operations(self) -> None:
        """Limit, in use by the project, by the server elsewhere, wanted."""
        for name, numbers, expected in (
            ('boot', (1, 0, 0, 1), True),
            ('boot over the limit', (1, 1, 0, 1), False),
            ('nothing is limited', (None, 9, 0, 9), True),
            ('nobody may have any', (0, 0, 0, 1), False),
            ('cold or live migration at the limit', (1, 1, 1, 1), True),
            ('evacuation at the limit', (2, 2, 2, 2), True),
            ('migration, and the limit was lowered', (0, 5, 1, 1), True),
            ('resize to more, and both fit', (3, 1, 1, 2), True),
            ('resize to more, and both do not fit', (2, 1, 1, 2), False),
            ('resize to less', (2, 2, 2, 1), True),
        ):
            self.assertEqual(expected, passes(*numbers), name)

    def test_the_text(self) -> None:
        fault = self.assertRaises(
            exceptions.OverQuota,
            quota.check,
            {'FPGA': 2, 'VGPU': 1, 'PGPU': 8},
            {'FPGA': quota.Usage(2)},
            {'VGPU': 2, 'FPGA': 1, 'PGPU': 8},
        )
        text = (
            'quota exceeded: class:FPGA: limit 2, in use 2, wanted 1; '
            'class:VGPU: limit 1, in use 0, wanted 2'
        )
        self.assertEqual((text, text), (str(fault), fault.public))
        self.assertEqual({'FPGA': 2, 'VGPU': 1}, fault.over)

    @hypothesis.given(_AMOUNTS, strategies.lists(_AMOUNTS, max_size=8))
    def test_servers_one_after_the_other_stay_within(
        self, limit: int, servers: list[int]
    ) -> None:
        total = 0
        for wanted in servers:
            if passes(limit, total, 0, wanted):
                total += wanted
        self.assertLessEqual(total, limit)

    @hypothesis.given(_AMOUNTS, _AMOUNTS, _AMOUNTS, _AMOUNTS)
    def test_a_move_is_never_refused(
        self, limit: int, others: int, held: int, wanted: int
    ) -> None:
        hypothesis.assume(wanted <= held)
        self.assertTrue(passes(limit, others + held, held, wanted))


class TestTake(testtools.TestCase):
    def test_the_scarcest_class_decides(self) -> None:
        groups = [
            device_profile.Group(resources)
            for resources in ({'FPGA': 1}, {'FPGA': 1, 'VGPU': 3})
        ]
        cases: tuple[tuple[dict[str, int], int, dict[str, int]], ...] = (
            ({}, 5, {}),
            ({'PGPU': 0}, 5, {'PGPU': 0}),
            ({'FPGA': 9}, 4, {'FPGA': 1}),
            ({'FPGA': 9, 'VGPU': 8}, 2, {'FPGA': 5, 'VGPU': 2}),
            ({'FPGA': 1}, 0, {'FPGA': 1}),
            ({'FPGA': -3}, 0, {'FPGA': -3}),
            ({'FPGA': 99}, 5, {'FPGA': 89}),
        )
        for left, taken, after in cases:
            self.assertEqual(taken, quota.take(left, groups, 5))
            self.assertEqual(after, left)
