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


class TestCount(testtools.TestCase):
    """Servers on a board, one after the other."""

    def count(self, *groups, used=(), most=99):
        links = boards.links(used)
        return host_fit.count(
            {
                rp_uuid: known_pool.KnownPool(units, {}, {}, 'the host')
                for rp_uuid, units in links.pools.items()
            },
            groups,
            most,
        )

    def test_sets(self):
        for amount, servers in ((2, 4), (4, 2), (8, 1)):
            self.assertEqual(servers, self.count(*parts(amount)))
        self.assertEqual(1, self.count(*parts(4), used={0}))
        self.assertEqual(3, self.count(*parts(2), used={0}))
        self.assertEqual(0, self.count(*parts(6)))

    def test_no_more_than_asked_for(self):
        self.assertEqual(3, self.count(*parts(1, None, size=1), most=3))
        self.assertEqual(8, self.count(*parts(1, None, size=1)))
