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
from nova_accel.model.units import free_units
from nova_accel.model.units import host_fit
from nova_accel.model.units import known_pool
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


GPU = device_profile.Group({'PGPU': 1})
GPUS = device_profile.Group({'PGPU': 2})


class TestPromises(testtools.TestCase):
    """A host has four GPUs in a pool."""

    def setUp(self) -> None:
        super().setUp()
        self.promises = unit_claims.Promises()
        self.pools = {
            'pool': known_pool.KnownPool(
                [
                    free_units.FreeUnits(
                        'deployable', 'pool', 'PGPU', frozenset(), 4, 4, ()
                    )
                ],
                {},
                {},
            )
        }

    def give(
        self,
        consumer: str,
        group: device_profile.Group = GPU,
        servers: int = 1,
        now: float = 0.0,
        only: str | None = None,
    ) -> bool:
        return self.promises.give(
            consumer,
            unit_claims.Promise(
                host_fit.Request((group,), only=only),
                servers,
                'project',
                'kind',
            ),
            now,
            lambda _groups: [('host', self.pools)],
        )

    def test_beside_those_before(self) -> None:
        self.assertEqual(
            [True, True, False, True, False],
            [
                self.give('a', GPUS),
                self.give('b'),
                self.give('c', GPUS),
                self.give('d'),
                self.give('e'),
            ],
        )

    def test_all_servers_of_a_request(self) -> None:
        self.assertFalse(self.give('a', servers=5))
        self.assertTrue(self.give('a', servers=4))
        self.assertFalse(self.give('b'))

    def test_it_takes_the_place_of_the_servers_own(self) -> None:
        for _time in range(3):
            self.assertTrue(self.give('a', servers=3))

    def test_one_that_cannot_be_kept_is_no_obstacle(self) -> None:
        """Others have claimed the units meanwhile."""
        self.promises.note(
            'a',
            unit_claims.Promise(host_fit.Request((GPUS,)), 3, 'project'),
            0.0,
        )
        self.assertFalse(self.give('b'))
        self.pools.clear()
        self.assertFalse(self.give('b'))
        self.promises.end('a')
        self.assertEqual([], self.promises.before('', 0.0))

    def test_it_ends(self) -> None:
        self.give('a', servers=4)
        self.assertTrue(self.promises.has('a', [GPU], 0.0))
        self.assertFalse(self.give('b', now=unit_claims.KEPT_S - 1))
        self.assertTrue(self.give('b', now=unit_claims.KEPT_S))
        self.promises.end('b')
        self.promises.end('b')
        self.assertFalse(self.promises.has('b', [GPU], unit_claims.KEPT_S))

    def test_it_is_of_its_groups(self) -> None:
        self.give('a', GPUS)
        for groups, now, has_them in (
            ([GPUS], 0.0, True),
            ([GPU], 0.0, False),
            ([GPUS, GPUS], 0.0, False),
            ([GPUS], unit_claims.KEPT_S, False),
        ):
            self.assertEqual(has_them, self.promises.has('a', groups, now))

    def test_of_one_host(self) -> None:
        """Others may go to any host."""
        self.assertFalse(self.give('a', only='other'))
        self.assertTrue(self.give('a', servers=4))
        self.assertFalse(self.give('b', only='host'))

    def test_units_of_a_project(self) -> None:
        self.give('a', GPUS)
        self.give('b')
        for consumer, project, units in (
            ('a', 'project', 0),
            ('b', 'project', 2),
            ('c', 'project', 3),
            ('c', 'other', 0),
        ):
            self.assertEqual(
                units,
                self.promises.units_before(consumer, project, 0.0)['PGPU'],
            )

    def test_one_that_is_late(self) -> None:
        self.give('a')
        for kind, now, is_late in (
            ('kind', 0.0, False),
            ('kind', unit_claims.LATE_S + 1, True),
            ('other', unit_claims.LATE_S + 1, False),
            ('kind', unit_claims.KEPT_S, False),
        ):
            self.assertEqual(is_late, self.promises.is_late(kind, now))

    def test_their_number_is_limited(self) -> None:
        for number in range(unit_claims.MOST + 5):
            self.promises.note(
                str(number),
                unit_claims.Promise(host_fit.Request((GPU,)), 1, 'project'),
                0.0,
            )
        self.assertFalse(self.promises.has('4', [GPU], 0.0))
        self.assertTrue(self.promises.has('5', [GPU], 0.0))
        self.assertEqual(unit_claims.MOST, len(self.promises.before('', 0.0)))
