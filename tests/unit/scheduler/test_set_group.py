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

from nova import objects
from nova.scheduler import utils
import testtools

from nova_accel.model import naming
from nova_accel.scheduler import set_group
from nova_accel.testing import scheduling

TRAIT = 'CUSTOM_NOVA_ACCEL_NVLINK_4'


def members(*ids):
    return [
        objects.RequestGroup(
            requester_id=requester_id,
            resources={'PGPU': 2},
            required_traits={naming.OWNERSHIP_TRAIT},
        )
        for requester_id in ids
    ]


class TestSetGroup(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.of_set = set_group.make('a_set', TRAIT)

    def test_it_names_no_resources(self):
        """Placement refuses an empty list."""
        self.assertEqual(
            [('requireda_set', f'{naming.OWNERSHIP_TRAIT},{TRAIT}')],
            self.of_set.to_queryparams(),
        )

    def test_it_is_a_request_group_for_nova(self):
        spec = scheduling.request_spec(groups=[self.of_set])
        [found] = spec.obj_clone().requested_resources
        self.assertIsInstance(found, objects.RequestGroup)
        self.assertEqual(self.of_set.to_queryparams(), found.to_queryparams())
        self.assertEqual('RequestGroup', self.of_set.obj_name())

    def test_nova_keeps_it(self):
        request = utils.ResourceRequest.from_request_groups(
            [self.of_set, *members('a')], objects.RequestLevelParams(), 'none'
        )
        self.assertIn('requireda_set', request.to_querystring())


class TestJoin(testtools.TestCase):
    def test_once(self):
        spec = scheduling.request_spec()
        spec.request_level_params.same_subtree = [['port']]
        for _time in range(2):
            set_group.join(spec, ['b', 'a'])
        self.assertEqual([['port'], ['a', 'b']], spec.same_subtree)

    def test_another_request_has_its_own(self):
        set_group.join(scheduling.request_spec(), ['a'])
        self.assertEqual([], scheduling.request_spec().same_subtree)


class TestInPlacement(testtools.TestCase):
    """A host with two sets of two pools each."""

    def setUp(self):
        super().setUp()
        self.placement = self.useFixture(scheduling.Placement())
        host = self.placement.add_provider(
            'host', {'VCPU': 8, 'MEMORY_MB': 1024}
        )
        self.pools = {}
        for half in 'ab':
            of_set = self.placement.add_provider(
                f'set_{half}', {}, host, [naming.OWNERSHIP_TRAIT, TRAIT]
            )
            self.pools[of_set] = {
                self.placement.add_provider(
                    f'pool_{half}{number}',
                    {'PGPU': 2},
                    of_set,
                    [naming.OWNERSHIP_TRAIT],
                )
                for number in range(2)
            }

    def candidates(self):
        spec = scheduling.request_spec(
            {'group_policy': 'none'},
            [*members('a', 'b'), set_group.make('a_set', TRAIT)],
        )
        set_group.join(spec, ['a', 'b', 'a_set'])
        return self.placement.candidates(spec)

    def test_both_pools_are_of_the_set_that_is_told(self):
        found = self.candidates()
        self.assertEqual(4, len(found))
        for candidate in found:
            mappings = candidate['mappings']
            [of_set] = mappings['a_set']
            self.assertNotIn(of_set, candidate['allocations'])
            self.assertEqual(
                self.pools[of_set], {*mappings['a'], *mappings['b']}
            )

    def test_it_can_be_claimed(self):
        [first, *_others] = self.candidates()
        self.assertTrue(self.placement.claim(first))
        self.assertEqual(2, len(self.candidates()))
