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

"""Placement follows soon when devices are disabled or enabled.

Nova's periodic tasks do not run in these tests, unless a test has them run.
"""

import time

import fixtures

from functional import base

HOST = 'host1'

#: A host has followed an order after so many seconds.
_SOON_S = 5


class OrderPublicationTestCase(base.AcceleratorTestCase):
    def setUp(self):
        super().setUp()
        self.create_profile('qat', [base.QAT])
        self.qat = self.create_accel_flavor('qat')
        # Nova's start has ended by now.
        self._run_periodics()
        self._run_periodics()
        self.accelerator.microversion = '2.5'

    def devices(self, type_='QAT'):
        return [
            device
            for device in self.accelerator.get('/devices')['devices']
            if device['type'] == type_
        ]

    def change(self, call):
        """Of all QAT functions."""
        for device in self.devices():
            self.accelerator.post(f'/devices/{device["uuid"]}/{call}', None)

    def reserved(self):
        return sum(
            provider['reserved'].get('CUSTOM_QAT', 0)
            for provider in self.accelerator_providers(HOST)
        )

    def wait_reserved(self, amount):
        """Until Placement has that, and the API knows of it."""
        until = time.monotonic() + _SOON_S
        while not (
            self.reserved() == amount
            and all(device['is_published'] for device in self.devices())
        ):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.1)

    def refused(self):
        """What the owner of a server reads that cannot be booted."""
        server = self.boot(self.qat, expected_state='ERROR')
        return self.api.get_server(server['id'])['fault']['message']


class TestOrderPublication(OrderPublicationTestCase):
    def test_it_is_disabled_and_enabled(self):
        amount = len(self.devices())
        self.assertEqual(0, self.reserved())
        self.change('disable')
        self.wait_reserved(amount)
        self.assertIn('disabled', self.refused())
        self.change('enable')
        self.wait_reserved(0)
        self.boot(self.qat)

    def test_a_host_is_drained_and_undrained(self):
        amount = len(self.devices())
        self.accelerator.put(
            f'/hosts/{HOST}/drain', {'reason': 'x', 'until': None}
        )
        self.wait_reserved(amount)
        self.accelerator.delete(f'/hosts/{HOST}/drain')
        self.wait_reserved(0)
        self.boot(self.qat)

    def test_an_order_that_is_lost(self):
        """The next report ends it, and until then the fault tells of it."""
        amount = len(self.devices())
        self.change('disable')
        self.wait_reserved(amount)
        self.lose_orders()
        self.change('enable')
        time.sleep(1)
        self.assertEqual(amount, self.reserved())
        self.assertEqual(
            {False}, {device['is_published'] for device in self.devices()}
        )
        fault = self.refused()
        self.assertIn('Placement still reserves them', fault)
        self.assertNotIn(HOST, fault)
        self.settle(HOST)
        self.wait_reserved(0)
        self.boot(self.qat)

    def lose_orders(self):
        self.useFixture(
            fixtures.MockPatch(
                'nova_accel.virt.rpc_agent.Endpoint.hurry', return_value=None
            )
        )

    def test_nova_fails_to_update(self):
        """It is tried again, and nobody is told that Placement has it."""
        self.break_method(
            type(self.computes[HOST].rt),
            'update_available_resource',
            RuntimeError('stuck'),
        )
        self.change('disable')
        self._wait_for_assert(lambda: self.assertEqual(1, self.failures))
        self.assertEqual(
            {False}, {device['is_published'] for device in self.devices()}
        )
        self.settle(HOST)
        self.wait_reserved(len(self.devices()))
