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

from nova_accel.model.units import unit_claims


class TestUnitClaims(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.claims = unit_claims.UnitClaims()

    def add(
        self,
        consumer: str = 'one',
        rp_uuid: str = 'rp',
        resource_class: str = 'FPGA',
        amount: int = 1,
        now: float = 0,
    ) -> set[str]:
        return self.claims.add(consumer, rp_uuid, resource_class, amount, now)

    def test_all_of_a_provider_are_added_up(self) -> None:
        self.assertEqual({'rp'}, self.add())
        self.add('two', amount=2)
        self.add(resource_class='VGPU', amount=4)
        self.add(rp_uuid='other')
        self.assertEqual({'FPGA': 3, 'VGPU': 4}, self.claims.of('rp'))
        self.assertEqual({'FPGA': 1}, self.claims.of('other'))
        self.assertEqual({}, self.claims.of('third'))

    def test_the_same_again_counts_once(self) -> None:
        self.add(amount=3)
        self.add(amount=2)
        self.assertEqual({'FPGA': 2}, self.claims.of('rp'))

    def test_nothing_withdraws(self) -> None:
        self.add()
        self.assertEqual({'rp'}, self.add(amount=0))
        self.assertEqual({}, self.claims.of('rp'))

    def test_they_last_for_a_while(self) -> None:
        self.add(now=10)
        self.add('two', now=20)
        self.assertEqual(set(), self.claims.expire(39))
        self.assertEqual({'rp'}, self.claims.expire(40))
        self.assertEqual({'FPGA': 1}, self.claims.of('rp'))
        self.assertEqual({'rp'}, self.claims.expire(50))
        self.assertEqual(0, len(self.claims))

    def test_the_oldest_are_bound_first(self) -> None:
        self.add()
        self.add('two', amount=2)
        self.add('three', resource_class='VGPU')
        self.claims.bind('rp', 'FPGA', 2)
        self.assertEqual({'FPGA': 1, 'VGPU': 1}, self.claims.of('rp'))
        self.claims.bind('rp', 'FPGA', 9)
        self.assertEqual({'VGPU': 1}, self.claims.of('rp'))

    def test_units_that_become_free_bind_nothing(self) -> None:
        self.add()
        for amount in (0, -1):
            self.claims.bind('rp', 'FPGA', amount)
        self.claims.bind('other', 'FPGA', 1)
        self.assertEqual({'FPGA': 1}, self.claims.of('rp'))

    def test_their_number_is_limited(self) -> None:
        self.add('first', 'forgotten')
        for number in range(unit_claims.MOST - 1):
            self.assertEqual({'rp'}, self.add(str(number)))
        self.assertEqual({'rp', 'forgotten'}, self.add('last'))
        self.assertEqual(unit_claims.MOST, len(self.claims))
        self.assertEqual({}, self.claims.of('forgotten'))
