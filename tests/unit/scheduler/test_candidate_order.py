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

import datetime
import json

from nova import objects
from nova.scheduler import host_manager
import testtools

from nova_accel import conf
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import known_units
from nova_accel.model.units import unit_changes
from nova_accel.scheduler import candidate_order
from nova_accel.scheduler import our_group
from rig.stubs import stock
from unit.model import boards
from unit.model.cards import slices

CONF = conf.CONF
BITSTREAM = 'd5ca2f11-3108-4426-a11c-a959987565df'
OTHER = '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d11'

objects.register_all()


def a_request_group(index=0, **values):
    group = device_profile.Group(**{'resources': {'FPGA': 1}, **values})
    return our_group.make(f'device_profile_{index}', group)


class TestOrder(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.stock = stock.Stock()
        self.host = host_manager.HostState('host', 'host', None)

    def sorted(self, *groups, known=True, used=()):
        """The providers of the first group, the best candidate first."""
        for group in groups:
            group.provider_uuids = list(used)
        order = candidate_order.CandidateOrder(
            groups, self.stock.known if known else None
        )
        return [
            candidate['mappings']['device_profile_0'][0]
            for candidate in order.sorted(self.host)
        ]

    def offer(self, *places):
        """Candidates: the provider of each group."""
        self.host.allocation_candidates = [
            {
                'allocations': {uuid: {'resources': {}} for uuid in uuids},
                'mappings': {
                    f'device_profile_{index}': [uuid]
                    for index, uuid in enumerate(uuids)
                },
            }
            for uuids in places
        ]

    def test_the_region_that_holds_the_bitstream(self):
        self.stock.add('host', 'other', region='a', bitstream_id=OTHER)
        self.stock.add('host', 'holder', region='a', bitstream_id=BITSTREAM)
        self.stock.add('host', 'empty', region='a')
        self.offer(['other'], ['holder'], ['empty'])
        group = a_request_group(properties={'bitstream_id': BITSTREAM})
        self.assertEqual(['holder', 'empty', 'other'], self.sorted(group))

    def test_whose_units_are_not_free_comes_last(self):
        """Placement may know better: it is not dropped."""
        self.stock.add('host', 'full', free=0, total=1)
        self.stock.add('host', 'free')
        self.offer(['full'], ['unknown'], ['free'])
        found = self.sorted(a_request_group())
        self.assertEqual('free', found[0])
        self.assertEqual({'full', 'unknown'}, set(found[1:]))

    def test_claims_count_before_they_are_bound(self):
        for uuid in 'ab':
            self.stock.add('host', uuid)
        self.offer(['a'], ['b'])
        for claimed, first in (('a', 'b'), ('b', 'a')):
            consumer = f'server-{claimed}'
            self.stock.known.claim(consumer, claimed, 'FPGA', 1, 0.0)
            self.assertEqual(first, self.sorted(a_request_group())[0])
            self.stock.known.claim(consumer, claimed, 'FPGA', 0, 0.0)

    def test_equal_ones_are_shuffled(self):
        """Each wants what it likes: the odds of a mistake are 8 ** -19."""
        self.offer(*[[uuid] for uuid in 'abcdefgh'])
        for known in (False, True):
            self.assertLess(
                1,
                len(
                    {
                        self.sorted(a_request_group(), known=known)[0]
                        for _request in range(20)
                    }
                ),
            )

    def test_used_ones_come_after_equal_ones(self):
        self.offer(*[[uuid] for uuid in [OTHER, *'abcdefgh']])
        for _request in range(20):
            found = self.sorted(a_request_group(), known=False, used=[OTHER])
            self.assertEqual(OTHER, found[-1])

    def test_two_groups_on_cards_of_many_shapes(self):
        halves = tuple(slices.eighths('half', start, 4) for start in (0, 4))
        for card in 'ab':
            for name, offered in (('HALF', halves), ('ALL', (slices.WHOLE,))):
                self.stock.add(
                    'host',
                    card,
                    free=len(offered),
                    resource_class=f'CUSTOM_SHAPE_{name}',
                    slices=offered,
                )
        half, whole = (
            {'resources': {f'CUSTOM_SHAPE_{name}': 1}}
            for name in ('HALF', 'ALL')
        )
        for second, expected in ((half, 'aa'), (whole, 'ba')):
            # One card is broken rather than two, and none is both.
            self.offer(*map(list, ('ba', 'aa')))
            found = candidate_order.CandidateOrder(
                [a_request_group(**half), a_request_group(1, **second)],
                self.stock.known,
            ).sorted(self.host)
            self.assertEqual(
                list(expected),
                [rp_uuid for [rp_uuid] in found[0]['mappings'].values()],
            )

    def test_two_groups_together(self):
        """A provider may have room for either of them, and not for both."""
        self.stock.add('host', 'one')
        self.stock.add('host', 'two', free=2)
        self.offer(['one', 'one'], ['two', 'two'])
        for _request in range(20):
            self.assertEqual(
                ['two', 'one'],
                self.sorted(a_request_group(0), a_request_group(1)),
            )

    def test_the_policy_of_the_operator(self):
        self.stock.add('host', 'fuller', free=1, total=4)
        self.stock.add('host', 'emptier', free=4, total=4)
        self.offer(['fuller'], ['emptier'])
        self.addCleanup(CONF.clear_override, 'unit_policies', 'nova_accel')
        for policy, first in (('pack', 'fuller'), ('spread', 'emptier')):
            CONF.set_override('unit_policies', {'FPGA': policy}, 'nova_accel')
            self.assertEqual(first, self.sorted(a_request_group())[0])

    def test_nothing_is_changed(self):
        self.offer(['a'], ['b'])
        before = json.dumps(self.host.allocation_candidates)
        self.sorted(a_request_group())
        self.assertEqual(before, json.dumps(self.host.allocation_candidates))

    def test_a_host_without_candidates(self):
        self.assertEqual([], self.sorted(a_request_group()))
        order = candidate_order.CandidateOrder(
            [a_request_group()], self.stock.known
        )
        self.assertTrue(order.fit(self.host, None).is_doubtful)


class TestLinks(testtools.TestCase):
    """A host with a board; nova-scheduler knows which GPUs are free."""

    def order(self, candidates, used, sizes):
        known = known_units.KnownUnits()
        known.apply(
            unit_changes.Changes(
                datetime.datetime.now(datetime.UTC),
                True,
                {'host': boards.deployables(used=used)},
            ),
            0.0,
        )
        host = host_manager.HostState('host', 'host', None)
        host.allocation_candidates = [
            {
                'allocations': {
                    f'host-pair-{pair}': {'resources': {'PGPU': size}}
                    for pair, size in zip(pairs, sizes, strict=True)
                },
                'mappings': {
                    'device_profile_0_set': ['a set'],
                    **{
                        f'device_profile_{index}': [f'host-pair-{pair}']
                        for index, pair in enumerate(pairs)
                    },
                },
            }
            for pairs in candidates
        ]
        groups = [
            a_request_group(index, resources={'PGPU': size})
            for index, size in enumerate(sizes)
        ]
        order = candidate_order.CandidateOrder(groups, known)
        return [
            tuple(
                int(uuid.removeprefix('host-pair-'))
                for uuid in candidate['allocations']
            )
            for candidate in order.sorted(host)
        ]

    def test_a_pair_that_breaks_least(self):
        for used, first in (({0}, 1), ({6, 7}, 2), ({0, 1, 4}, 3)):
            for _request in range(5):
                found = self.order(
                    [
                        [pair]
                        for pair in range(4)
                        if not used & {2 * pair, 2 * pair + 1}
                    ],
                    used,
                    [2],
                )
                self.assertIn((first,), found[:2], used)
                self.assertNotIn(
                    found[0][0] // 2,
                    {0, 1} - {each // 4 for each in used},
                    used,
                )

    def test_one_gpu_goes_where_another_is_used(self):
        for _request in range(5):
            found = self.order([[0], [1], [2], [3]], {5}, [1])
            self.assertEqual([(2,), (3,)], found[:2])
            self.assertEqual({(0,), (1,)}, set(found[2:]))

    def test_the_half_that_is_broken_less(self):
        """Two pairs that are not joined take what nothing larger needs."""
        for _request in range(5):
            found = self.order([[0, 1], [0, 3], [2, 3]], {4, 5}, [2, 2])
            self.assertEqual((0, 1), found[0])

    def test_the_same_pools_in_another_order(self):
        found = self.order([[0, 1], [1, 0], [2, 3], [3, 2]], (), [2, 2])
        self.assertEqual(
            [{0, 1}, {2, 3}], sorted((set(each) for each in found), key=min)
        )
