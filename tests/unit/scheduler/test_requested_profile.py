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
import testtools

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.scheduler import requested_profile
from rig.loopback import board_cloud
from rig.loopback import board_host

HALF = {'resources:PGPU': '4', 'accel:link': 'nvlink'}


class TestRead(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.cloud = self.useFixture(
            board_cloud.BoardCloud([board_host.BoardHost('board')])
        )

    def read(self, *groups, **kind):
        self.cloud.profile('gold', *groups)
        return requested_profile.read(
            nova_context.get_admin_context(), 'gold', **kind
        )

    def test_parts_of_a_set(self):
        asked = self.read(HALF)
        self.assertEqual(
            [2, 2], [each.group.resources['PGPU'] for each in asked.groups]
        )
        self.assertEqual(naming.link_trait('nvlink', 4), asked.sets[0].trait)

    def test_whole(self):
        error = self.assertRaises(
            exceptions.NotFound, self.read, HALF, is_whole=True
        )
        self.assertIn('takes no more than a pool', str(error))

    def test_of_a_port(self):
        [group] = self.read(
            {'resources:PGPU': '1'}, is_whole=True, port_uuid='port'
        ).groups
        self.assertTrue(group.requester_id.endswith('port'))

    def test_forbidden_traits_that_no_one_knows(self):
        [group] = self.read(
            {'resources:PGPU': '1', 'trait:CUSTOM_HTWO': 'forbidden'}
        ).groups
        self.assertEqual(frozenset(), group.group.forbidden)

    def test_refused(self):
        for group, fault, text in (
            (
                {'resources:PGPU': '1', 'trait:CUSTOM_HTWO': 'required'},
                exceptions.NotFound,
                'which may be misspelt: CUSTOM_HTWO',
            ),
            (
                {
                    'resources:PGPU': '1',
                    'trait:CUSTOM_NOVA_ACCEL': 'forbidden',
                },
                exceptions.InvalidDeviceProfile,
                'it forbids CUSTOM_NOVA_ACCEL',
            ),
            (
                {'resources:PGPU': '3', 'accel:link': 'nvlink'},
                exceptions.NotFound,
                'no host has PGPU=3 joined by NVLink',
            ),
        ):
            name = text[-5:].strip()
            self.cloud.profile(name, group)
            error = self.assertRaises(
                fault,
                requested_profile.read,
                nova_context.get_admin_context(),
                name,
            )
            self.assertIn(text, error.public)

    def test_no_such_profile(self):
        error = self.assertRaises(
            exceptions.NotFound,
            requested_profile.read,
            nova_context.get_admin_context(),
            'nothing',
        )
        self.assertEqual('there is none of that name', error.public)
