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


from nova_accel.api.handlers import alternatives
from nova_accel.db import device_profile as device_profile_db
from nova_accel.model.profiles import provider_allocation
from rig.loopback import board_host
from unit.api import base


class ObstaclesTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.clean_host(functions=10)
        board_host.BoardHost('board').report()
        for name, *groups in (
            ('free', {'resources:FPGA': '10'}),
            ('large', {'resources:FPGA': '11'}),
            ('typo', {'resources:CUSTOM_FPAG': '1'}),
            ('joined', {'resources:PGPU': '3', 'accel:link': 'nvlink'}),
            ('small', {'resources:FPGA': '1'}),
        ):
            device_profile_db.create(name, groups)
        self.one = [
            provider_allocation.ProviderAllocation(
                base.RP, {'FPGA': 1}, frozenset()
            )
        ]

    def test_the_reason_of_each(self) -> None:
        found = alternatives.get_obstacles(
            ['free', 'large', 'typo', 'joined', 'nothing'], self.one
        )
        self.assertEqual(
            {
                'large': 'no host has all of it free together',
                'typo': 'no host has CUSTOM_FPAG',
                'joined': 'no set of a host joins 3',
                'nothing': 'there is none of that name, or it is malformed',
            },
            found,
        )

    def test_what_is_disabled(self) -> None:
        for device in self.ok('GET', '/devices', roles=base.ADMIN)['devices']:
            self.disable(device['uuid'])
        self.assertEqual(
            {'free': 'all 10 are disabled'},
            alternatives.get_obstacles(['free', 'small'], self.one),
        )

    def disable(self, uuid: str) -> None:
        self.ok('POST', f'/devices/{uuid}/disable', roles=base.ADMIN)

    def test_only_of_those_before_the_one_that_is_served(self) -> None:
        for names, found in (
            (['small', 'typo'], {}),
            (['typo', 'small', 'nothing'], {'typo'}),
            (['small'], {}),
        ):
            self.assertEqual(
                set(found),
                alternatives.get_obstacles(names, self.one).keys(),
            )
