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

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import known_groups


def group(amount: int = 1, trait: str = 'A') -> device_profile.Group:
    return device_profile.Group({'FPGA': amount}, frozenset({trait}))


class TestKnownGroups(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.known = known_groups.KnownGroups()

    def test_equal_groups_have_one_object(self) -> None:
        found = self.known.of_contents(group())
        self.assertEqual(group(), found.group)
        self.assertIs(found, self.known.of_contents(group()))
        self.assertIs(found, self.known.of_object(group()))
        for other in (
            group(2),
            group(trait='B'),
            device_profile.Group({'FPGA': 1}, forbidden=frozenset('A')),
            device_profile.Group({'FPGA': 1}, frozenset('A'), link='numa'),
            device_profile.Group(
                {'FPGA': 1}, frozenset('A'), properties={'bitstream_id': 'b'}
            ),
        ):
            self.assertIsNot(found, self.known.of_contents(other))

    def test_an_object_is_found_again(self) -> None:
        asked = group()
        found = self.known.of_object(asked)
        self.assertIs(found, self.known.of_object(asked))

    def test_many_groups(self) -> None:
        """An object that gets the id of another one is not taken for it."""
        for amount in range(1, 2000):
            for find in (self.known.of_object, self.known.of_contents):
                self.assertEqual(
                    amount, find(group(amount)).group.resources['FPGA']
                )
        self.assertLessEqual(len(self.known._by_object), 256)
        self.assertLessEqual(len(self.known._by_contents), 256)
