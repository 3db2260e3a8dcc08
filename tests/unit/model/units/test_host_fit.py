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
from nova_accel.model.units import free_providers
from nova_accel.model.units import free_units
from nova_accel.model.units import host_fit
from nova_accel.model.units import known_pool
from unit.model import boards


def parts(amount, link='nvlink', size=2):
    return [
        device_profile.Group({'PGPU': size}, link=link)
        for _part in range(amount // size)
    ]


class TestFit(testtools.TestCase):
    def serves(self, *groups, used=(), is_isolated=False):
        links = boards.links(used)

        def room(rp_uuid, group):
            return {
                'PGPU': sum(
                    units.free
                    for units in links.pools[rp_uuid]
                    if free_providers.suits(group, ('PGPU', units.traits))
                )
            }

        return host_fit.Fit(tuple(links.pools), room, is_isolated).serves(
            groups, lambda: links
        )

    def test_a_whole_set(self):
        for amount in (2, 4, 8):
            self.assertTrue(self.serves(*parts(amount)))

    def test_as_many_gpus_that_are_no_set(self):
        self.assertFalse(self.serves(*parts(4), used={0, 4}))
        self.assertFalse(self.serves(*parts(8), used={7}))
        # Four pairs of which two are free, one in each half.
        self.assertFalse(self.serves(*parts(4), used={0, 1, 4, 5}))
        self.assertTrue(self.serves(*parts(4), used={0, 1}))

    def test_a_size_that_nothing_joins(self):
        self.assertFalse(self.serves(*parts(6)))
        self.assertFalse(self.serves(*parts(3, size=3)))

    def test_another_link(self):
        self.assertTrue(self.serves(*parts(4, 'numa')))
        self.assertFalse(self.serves(*parts(4, 'pcie')))
        self.assertFalse(self.serves(*parts(8, 'numa')))

    def test_groups_that_are_not_joined_take_what_is_left(self):
        others = parts(4, None)
        self.assertTrue(self.serves(*others, *parts(4)))
        self.assertFalse(self.serves(*others, *parts(4), used={0}))

    def test_a_set_that_was_tried_in_vain(self):
        """It has one whole pair, which is free for others again."""
        for used in ({0}, {7}):
            self.assertTrue(self.serves(*parts(2, None), *parts(4), used=used))

    def test_a_provider_for_each_group(self):
        single = parts(1, None, size=1)
        self.assertTrue(self.serves(*single * 5, used={0, 2, 4}))
        self.assertFalse(
            self.serves(*single * 5, used={0, 2, 4}, is_isolated=True)
        )

    def test_traits(self):
        self.assertFalse(
            self.serves(
                device_profile.Group(
                    {'PGPU': 2}, frozenset({'CUSTOM_B200'}), link='nvlink'
                )
            )
        )


def pools(used=()):
    """Those of a board of which GPUs are used."""
    return {
        rp_uuid: known_pool.KnownPool(units, {}, {}, 'the host')
        for rp_uuid, units in boards.links(used).pools.items()
    }


class TestCount(testtools.TestCase):
    """Servers on a board, one after the other."""

    def count(self, *groups, used=(), most=99):
        return host_fit.count(pools(used), groups, most)

    def test_sets(self):
        for amount, servers in ((2, 4), (4, 2), (8, 1)):
            self.assertEqual(servers, self.count(*parts(amount)))
        self.assertEqual(1, self.count(*parts(4), used={0}))
        self.assertEqual(3, self.count(*parts(2), used={0}))
        self.assertEqual(0, self.count(*parts(6)))

    def test_after_others(self):
        single, half = parts(1, None, size=1), parts(4)
        pool = known_pool.KnownPool(
            [
                free_units.FreeUnits(
                    'deployable', 'pool', 'PGPU', frozenset(), 7, 7, ()
                )
            ],
            {},
            {},
        )
        for found, where, groups, before in (
            (0, pools(), parts(2), [half]),
            (1, pools({0}), parts(2), [half]),
            (3, pools({0}), single, [half]),
            (0, pools({0}), half, [single]),
            (2, {'pool': pool}, parts(3, None, size=3), []),
            (1, {'pool': pool}, single, [parts(3, None, size=3)]),
            (0, {'pool': pool}, single, [parts(3, None, size=3), single]),
        ):
            self.assertEqual(found, host_fit.count(where, groups, 99, before))

    def test_no_more_than_asked_for(self):
        self.assertEqual(3, self.count(*parts(1, None, size=1), most=3))
        self.assertEqual(8, self.count(*parts(1, None, size=1)))


class TestFindServable(testtools.TestCase):
    def find(self, *requests, is_isolated=False):
        """Whether each is served, on a host with a board and one with half."""
        return host_fit.find_servable(
            [host_fit.Request(groups, is_isolated) for groups in requests],
            lambda _groups: [('half', pools({4, 5, 6, 7})), ('all', pools())],
        )

    def test_one_after_the_other(self):
        pair, half, board = parts(2), parts(4), parts(8)
        self.assertEqual([True, True], self.find(half, board))
        self.assertEqual([True, True, True, False], self.find(*[half] * 4))
        self.assertEqual([True, True, False], self.find(half, pair, board))
        self.assertEqual([True] * 6 + [False], self.find(*[pair] * 7))

    def test_each_with_its_own_hosts(self):
        half = parts(4)
        found = host_fit.find_servable(
            [
                host_fit.Request(half, only='half'),
                host_fit.Request(half, only='half'),
                host_fit.Request(half, without=['all']),
                host_fit.Request(half, without=['half']),
                host_fit.Request(half),
                host_fit.Request(half),
            ],
            lambda _groups: [('half', pools({4, 5, 6, 7})), ('all', pools())],
        )
        self.assertEqual([True, False, False, True, True, False], found)

    def test_what_is_not_served_takes_nothing(self):
        six = parts(6)
        self.assertEqual([False, True, True], self.find(six, *[parts(4)] * 2))

    def test_a_provider_for_each_group(self):
        single = parts(1, None, size=1)
        self.assertEqual([True, True], self.find(single * 4, single * 8))
        self.assertEqual(
            [True, False],
            self.find(single * 4, single * 5, is_isolated=True),
        )
