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

import re

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import explanation
from nova_accel.model.units import shortage_reason
from unit.model import shortages

#: The refusals that are explained, of each cause as many.
_REFUSALS = 210

_MAX_LENGTH = 190


def told(shortage: shortages.Shortage, max_length: int = _MAX_LENGTH) -> str:
    """The text, as nova-scheduler asks for it."""
    tell = (
        shortage_reason.together
        if len(shortage.unmet) > 1
        else shortage_reason.alone
    )
    return tell(
        {name: shortage.groups[name] for name in shortage.unmet},
        shortage.inventories,
        max_length,
    )


class TestRefusals(testtools.TestCase):
    def test_each_by_its_group_and_cause(self) -> None:
        for number in range(_REFUSALS):
            cause = [*shortages.CAUSES][number % len(shortages.CAUSES)]
            shortage = shortages.CAUSES[cause](shortages.Cloud(number))
            text = told(shortage)
            self.assertEqual(
                shortage.unmet if len(shortage.unmet) == 1 else [],
                [
                    name
                    for name, group in shortage.groups.items()
                    if shortage_reason.find(group, shortage.inventories)
                ],
            )
            self.assertEqual(
                {*shortage.unmet},
                {*re.findall('device_profile_[0-9]', text)},
                f'{number} {cause}: {text}',
            )
            for words in shortage.words:
                self.assertIn(words, text, f'{number} {cause}')

    @hypothesis.given(
        st.integers(0, 10_000),
        st.sampled_from([*shortages.CAUSES]),
        st.integers(0, 255),
    )
    def test_no_text_is_long_or_names_a_host(
        self, seed: int, cause: str, max_length: int
    ) -> None:
        shortage = shortages.CAUSES[cause](shortages.Cloud(seed))
        text = told(shortage, max_length)
        self.assertLessEqual(len(text), max(3, max_length))
        self.assertNotRegex(text, 'host-|compute-|rp|I/O|fire')


class TestUnplaced(testtools.TestCase):
    def found(self, *hosts: tuple[int, bool]) -> str | None:
        """Why two FPGAs cannot be had.

        :param hosts: the free units of each, and whether Placement lacks a
            change of it
        """
        shortage = shortage_reason.find(
            device_profile.Group({'FPGA': 2}),
            [
                explanation.Inventory(
                    f'host-{number}',
                    f'rp-{number}',
                    'FPGA',
                    frozenset(),
                    (),
                    {None: free, 'in use': 4 - free},
                    is_unpublished=is_unpublished,
                )
                for number, (free, is_unpublished) in enumerate(hosts)
            ],
        )
        return None if shortage is None else str(shortage)

    def test_all_that_have_enough(self) -> None:
        for hosts in (((2, True),), ((3, True), (1, False))):
            self.assertEqual(
                'free, but Placement still reserves them until a host reports',
                self.found(*hosts),
            )

    def test_some_of_them(self) -> None:
        self.assertIsNone(self.found((2, True), (2, False)))

    def test_one_that_has_too_few(self) -> None:
        self.assertEqual(
            'of 4, 3 in use and 1 free, nearest: 1 free at one place',
            self.found((1, True)),
        )


class TestNotFree(testtools.TestCase):
    def test_units_that_suit_by_their_reasons(self) -> None:
        suited = frozenset({'CUSTOM_A'})
        self.assertEqual(
            {
                ('FPGA', 'in use'): 5,
                ('FPGA', 'on hosts that do not report'): 2,
            },
            shortage_reason.not_free(
                [
                    device_profile.Group(
                        {'FPGA': 1},
                        required=suited,
                        forbidden=frozenset({'CUSTOM_B'}),
                    )
                ]
                * 2,
                [
                    shortages.inventory(
                        units={None: 4, 'in use': 2}, traits=suited
                    ),
                    shortages.inventory(units={'in use': 3}, traits=suited),
                    shortages.inventory(
                        units={None: 1, 'in use': 1},
                        traits=suited,
                        is_silent=True,
                    ),
                    shortages.inventory(units={'in use': 9}),
                    shortages.inventory(
                        units={'in use': 9},
                        traits=suited | {'CUSTOM_B'},
                    ),
                    shortages.inventory(
                        units={'in use': 9},
                        traits=suited,
                        resource_class='VGPU',
                    ),
                ],
            ),
        )


class TestFind(testtools.TestCase):
    def cause(self, **group: object) -> str:
        return str(
            shortage_reason.find(
                device_profile.Group(**{'resources': {'FPGA': 1}, **group}),  # type: ignore[arg-type]
                [
                    shortages.inventory(
                        units={None: 4}, traits=frozenset({'CUSTOM_A'})
                    ),
                    shortages.inventory(
                        units={'in use': 2},
                        traits=frozenset({'CUSTOM_A', 'CUSTOM_B'}),
                    ),
                ],
            )
        )

    def test_it_can_be_served(self) -> None:
        self.assertEqual('None', self.cause())

    def test_the_nearest_miss_lacks_one_trait(self) -> None:
        self.assertEqual(
            'all 2 are in use, nearest: 4 free without CUSTOM_B',
            self.cause(required=frozenset({'CUSTOM_B'})),
        )
        self.assertEqual(
            'no FPGA has CUSTOM_C, nearest: 4 free without CUSTOM_C',
            self.cause(required=frozenset({'CUSTOM_C'})),
        )
        self.assertEqual(
            'each FPGA has what is forbidden: CUSTOM_A, '
            'nearest: 4 free with CUSTOM_A',
            self.cause(forbidden=frozenset({'CUSTOM_A'})),
        )

    def test_no_near_miss(self) -> None:
        self.assertEqual(
            'no FPGA has CUSTOM_C and CUSTOM_D',
            self.cause(required=frozenset({'CUSTOM_C', 'CUSTOM_D'})),
        )

    def test_two_classes(self) -> None:
        self.assertEqual(
            'no device has FPGA and VGPU',
            self.cause(resources={'FPGA': 1, 'VGPU': 1}),
        )


class TestAlone(testtools.TestCase):
    def test_long_traits_leave_room_for_all_causes(self) -> None:
        groups = {
            name: device_profile.Group(
                {'FPGA': 1}, frozenset({f'CUSTOM_{letter * 100}'})
            )
            for name, letter in (('g0', 'A'), ('g1', 'B'))
        }
        text = shortage_reason.alone(
            groups, [shortages.inventory('FPGA')], _MAX_LENGTH
        )
        self.assertLessEqual(len(text), _MAX_LENGTH)
        for words in (
            'g0: no FPGA has CUSTOM_AAAA',
            'g1: no FPGA has CUSTOM_B',
        ):
            self.assertIn(words, text)

    def test_the_free_ones_are_claimed_already(self) -> None:
        self.assertEqual(
            'g (FPGA=1): the free ones are being handed out',
            shortage_reason.alone(
                {'g': device_profile.Group({'FPGA': 1})},
                [shortages.inventory()],
                200,
            ),
        )

    def test_causes_come_before_details(self) -> None:
        group = device_profile.Group(
            {'FPGA': 1}, frozenset({'CUSTOM_LONG_NAME'})
        )
        inventories = [shortages.inventory()]
        self.assertEqual(
            'g (FPGA=1, CUSTOM_LONG_NAME): no FPGA has CUSTOM_LONG_NAME, '
            'nearest: 1 free without CUSTOM_LONG_NAME',
            shortage_reason.alone({'g': group}, inventories, 200),
        )
        self.assertEqual(
            'g: no FPGA has CUSTOM_LONG_NAME',
            shortage_reason.alone({'g': group}, inventories, 40),
        )
