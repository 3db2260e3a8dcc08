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

import time

import fixtures
from oslo_db import exception as db_exc

from nova_accel.api.compute import hurrying
from unit.api import base
from unit.api import programming


class HurryingTest(programming.ProgrammingTestCase):
    def assert_asked_once(self) -> None:
        self.host.hurried.get(timeout=10)
        self.assertTrue(self.host.hurried.empty())

    def test_each_change(self) -> None:
        device, drain = f'/devices/{base.DEVICE}', f'/hosts/{base.HOSTNAME}'
        for method, path, body in (
            ('POST', f'{device}/disable', None),
            ('POST', f'{device}/enable', None),
            ('PUT', f'{drain}/drain', {'reason': 'x', 'until': None}),
            ('DELETE', f'{drain}/drain', None),
        ):
            self.ok(method, path, body, version='2.4')
            self.assert_asked_once()

    def test_a_host_that_is_silent(self) -> None:
        """Nobody waits for a message that nobody reads."""
        self.be_silent()
        hurrying.order(base.HOSTNAME)
        self.assertTrue(self.host.hurried.empty())

    def test_an_unknown_host(self) -> None:
        hurrying.order('compute-9')
        self.assertTrue(self.host.hurried.empty())

    def test_the_bus_is_away(self) -> None:
        """The change is made, and takes a bounded time."""
        self.bus.lose()
        before = time.monotonic()
        self.ok('POST', f'/devices/{base.DEVICE}/disable')
        self.assertLess(time.monotonic() - before, 30)
        self.assertEqual(
            'maintaining', self.ok('GET', f'/devices/{base.DEVICE}')['status']
        )
        self.assertIn('is not told to report now', self.log.output)

    def test_nova_does_not_answer(self) -> None:
        self.useFixture(
            fixtures.MockPatch(
                'nova.objects.HostMapping.get_by_host',
                side_effect=db_exc.DBConnectionError,
            )
        )
        self.ok('POST', f'/devices/{base.DEVICE}/disable')
        self.assertIn('is not told to report now', self.log.output)
