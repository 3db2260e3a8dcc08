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

import fixtures
from nova import context as nova_context
from nova import exception
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
            traits.known(
                self.context, ['CUSTOM_A', 'CUSTOM_B', 'OWNER_CYBORG']
            ),
        )

    def test_ownership_trait_is_made(self):
        self.assertNotIn(naming.OWNERSHIP_TRAIT, self.placement.traits)
        traits.ensure_ownership(self.context)
        self.assertIn(naming.OWNERSHIP_TRAIT, self.placement.traits)

    def test_ownership_trait_that_is_there(self):
        self.placement.add_provider(
            'host', {'VCPU': 1}, traits=[naming.OWNERSHIP_TRAIT]
        )
        traits.ensure_ownership(self.context)
        self.assertIn(naming.OWNERSHIP_TRAIT, self.placement.traits)

    def test_a_placement_is_asked_once(self):
        traits.ensure_ownership(self.context)
        self.placement.client.delete(
            f'/traits/{naming.OWNERSHIP_TRAIT}', version='1.6'
        )
        traits.ensure_ownership(self.context)
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
            lambda: traits.known(self.context, ['CUSTOM_A']),
            lambda: traits.ensure_ownership(self.context),
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
