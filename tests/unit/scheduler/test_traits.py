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

from unittest import mock

import fixtures
from nova import context as nova_context
from nova import exception
from oslo_utils import uuidutils
import testtools

from nova_accel.model import naming
from nova_accel.scheduler import traits
from nova_accel.testing import scheduling


class TestTraits(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.context = nova_context.get_admin_context()
        self.placement = self.useFixture(scheduling.Placement())

    def test_known(self):
        self.placement.add_provider('host', {'VCPU': 1}, traits=['CUSTOM_A'])
        self.assertEqual(
            {'CUSTOM_A', 'OWNER_CYBORG'},
            traits.find_or_create(
                self.context, ['CUSTOM_A', 'CUSTOM_B', 'OWNER_CYBORG']
            ),
        )

    def test_ownership_trait_is_made(self):
        self.assertNotIn(naming.OWNERSHIP_TRAIT, self.placement.traits)
        traits.ensure(self.context, naming.OWNERSHIP_TRAIT)
        self.assertIn(naming.OWNERSHIP_TRAIT, self.placement.traits)

    def test_ours_are_known_and_made(self):
        ours = [naming.OWNERSHIP_TRAIT, naming.FABRIC_TRAIT]
        for _again in range(2):
            self.assertEqual(
                set(ours),
                traits.find_or_create(self.context, [*ours, 'CUSTOM_B']),
            )
            self.assertLess(set(ours), self.placement.traits)

    def test_ownership_trait_that_is_there(self):
        self.placement.add_provider(
            'host', {'VCPU': 1}, traits=[naming.OWNERSHIP_TRAIT]
        )
        traits.ensure(self.context, naming.OWNERSHIP_TRAIT)
        self.assertIn(naming.OWNERSHIP_TRAIT, self.placement.traits)

    def count_requests(self, call):
        """How many requests to Placement a call makes."""
        with mock.patch.object(
            self.placement.client, 'get', wraps=self.placement.client.get
        ) as get:
            call()
        return get.call_count

    def test_placement_is_asked_once_about_a_trait_that_it_has(self):
        self.placement.add_provider('host', {'VCPU': 1}, traits=['CUSTOM_A'])

        def know(*names):
            return traits.find_or_create(self.context, names)

        self.assertEqual(1, self.count_requests(lambda: know('CUSTOM_A')))
        self.assertEqual(0, self.count_requests(lambda: know('CUSTOM_A')))
        self.assertEqual({'CUSTOM_A'}, know('CUSTOM_A'))
        # It may get any other trait at any time.
        for _again in range(2):
            self.assertEqual(
                1, self.count_requests(lambda: know('CUSTOM_A', 'CUSTOM_B'))
            )
            self.assertEqual({'CUSTOM_A'}, know('CUSTOM_A', 'CUSTOM_B'))
        self.placement.add_provider('other', {}, traits=['CUSTOM_B'])
        self.assertEqual(
            {'CUSTOM_A', 'CUSTOM_B'}, know('CUSTOM_A', 'CUSTOM_B')
        )

    def test_a_trait_that_is_deleted(self):
        """It is known for a while, or until something is refused."""
        for forget in (
            traits.forget,
            lambda: self.useFixture(
                fixtures.MonkeyPatch(
                    'nova_accel.scheduler.timed_cache.KEPT_S', 0
                )
            ),
        ):
            self.placement.client.put('/traits/CUSTOM_A', None, version='1.6')
            self.assertEqual(
                {'CUSTOM_A'}, traits.find_or_create(self.context, ['CUSTOM_A'])
            )
            self.placement.client.delete('/traits/CUSTOM_A', version='1.6')
            self.assertEqual(
                {'CUSTOM_A'}, traits.find_or_create(self.context, ['CUSTOM_A'])
            )
            forget()
            self.assertEqual(
                set(), traits.find_or_create(self.context, ['CUSTOM_A'])
            )

    def test_another_placement(self):
        self.test_a_trait_that_is_deleted()
        self.placement.client.put('/traits/CUSTOM_A', None, version='1.6')
        traits.find_or_create(self.context, ['CUSTOM_A'])
        self.placement.use(self.placement.client._client.get_endpoint())
        self.placement.client.delete('/traits/CUSTOM_A', version='1.6')
        self.assertEqual(
            set(), traits.find_or_create(self.context, ['CUSTOM_A'])
        )

    def test_the_traits_of_a_region_are_asked_for_once(self):
        region = uuidutils.generate_uuid()
        trait = naming.region_trait('FPGA', 'Intel', region)

        def find():
            return traits.of_region(self.context, region)

        # While there is none, one may come at any time.
        self.assertEqual(set(), find())
        self.placement.client.put(f'/traits/{trait}', None, version='1.6')
        self.assertEqual({trait}, find())
        self.assertEqual(0, self.count_requests(find))
        self.assertEqual({trait}, find())

    def test_a_placement_is_asked_once(self):
        traits.ensure(self.context, naming.OWNERSHIP_TRAIT)
        self.placement.client.delete(
            f'/traits/{naming.OWNERSHIP_TRAIT}', version='1.6'
        )
        traits.ensure(self.context, naming.OWNERSHIP_TRAIT)
        self.assertNotIn(naming.OWNERSHIP_TRAIT, self.placement.traits)


class TestPlacementAway(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.context = nova_context.get_admin_context()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.placement = self.useFixture(scheduling.Placement())

    def _test(self, url, expected):
        self.placement.use(url)
        for ask in (
            lambda: traits.find_or_create(self.context, ['CUSTOM_A']),
            lambda: traits.ensure(self.context, naming.OWNERSHIP_TRAIT),
        ):
            error = self.assertRaises(exception.RequestFilterFailed, ask)
            self.assertIn('Placement could not be asked', str(error))
            self.assertIn(expected, str(error))
            self.assertNotIn(url, str(error))

    def test_unreachable(self):
        self._test('http://127.0.0.1:1', 'for the traits of accelerators')
        self.assertIn('Unable to establish connection', self.log.output)

    def test_fault(self):
        url = self.placement.client._client.get_endpoint()
        self._test(f'{url}/nowhere', '404')
