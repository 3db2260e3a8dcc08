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

from typing import Any

import fixtures
from oslo_db import exception as db_exc

from unit.api import base
from unit.api import programming


class PrefetchingTest(programming.ProgrammingTestCase):
    def create(self, **keys: str) -> Any:
        return self.ok(
            'POST',
            '/device_profiles',
            [
                {
                    'name': 'fpga',
                    'groups': [
                        {
                            **base.GROUP,
                            'accel:bitstream_id': programming.BITSTREAM,
                            **keys,
                        }
                    ],
                }
            ],
        )

    def test_a_profile_that_wants_it(self) -> None:
        self.create(**{'accel:prefetch': 'True'})
        self.assertEqual(
            programming.BITSTREAM, self.host.fetched.get(timeout=10)
        )
        self.assertTrue(self.host.fetched.empty())

    def test_one_that_does_not(self) -> None:
        self.create(**{'accel:prefetch': 'false'})
        self.ok('DELETE', '/device_profiles?value=fpga')
        self.create()
        self.assertTrue(self.host.fetched.empty())

    def test_one_that_is_changed(self) -> None:
        profile = self.create()
        self.ok(
            'PUT',
            f'/device_profiles/{profile["uuid"]}',
            {'groups': [{**profile['groups'][0], 'accel:prefetch': 'true'}]},
            version='2.4',
        )
        self.assertEqual(
            programming.BITSTREAM, self.host.fetched.get(timeout=10)
        )

    def test_nobody_to_be_asked(self) -> None:
        self.be_silent()
        self.create(**{'accel:prefetch': 'true'})
        self.assertTrue(self.host.fetched.empty())

    def test_a_host_that_cannot_be_asked(self) -> None:
        self.bus._hosts.clear()
        self.assertEqual(
            'fpga', self.create(**{'accel:prefetch': 'true'})['name']
        )
        self.assertTrue(self.host.fetched.empty())

    def test_nova_does_not_answer(self) -> None:
        """The profile is there: it must not be refused any more."""
        self.useFixture(
            fixtures.MockPatch(
                'nova.objects.HostMapping.get_by_host',
                side_effect=db_exc.DBConnectionError(),
            )
        )
        self.assertEqual(
            'fpga', self.create(**{'accel:prefetch': 'true'})['name']
        )
        self.assertIn('not asked to fetch', self.log.output)
