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

import json

import fixtures

from functional import test_programming
from nova_accel.testing import devices
from nova_accel.testing import fake_fpga

BITS = test_programming.BITS


class StockTestCase(test_programming.TestCase):
    """Reports are always an occasion to look at idle regions."""

    def setUp(self):
        for name in ('INTERVAL_S', 'TRY_S'):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.api.compute.region_stocking.{name}', 0
                )
            )
        super().setUp()

    def turn_on(self):
        self.flags(stock_programmings_per_minute=10, group='nova_accel')
        self.settle_all()

    def settle_all(self):
        for host in self.hosts:
            self.settle(host)

    def wait_until_stocked(self):
        self._wait_for_assert(lambda: self.assert_programmed(BITS, BITS))
        self.settle_all()
        self._run_periodics()

    def wait_until_logged(self, text):
        self._wait_for_assert(
            lambda: self.assertIn(text, self.stdlog.logger.output)
        )
        self.settle_all()


class TestIdleRegions(StockTestCase):
    hosts = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        self.first = self.boot_asking(bitstream_id=self.image)
        self.second = None

    def boot_second(self, **kwargs):
        self.second = self.boot(self.create_accel_flavor('profile'), **kwargs)

    def delete_all(self):
        self.delete(self.first, self.second)

    def test_the_next_boot_programs_nothing(self):
        self.turn_on()
        self.wait_until_stocked()
        self.boot_second()
        self.assert_guest_has_its_arqs(self.second, (0, 'PCI'))
        self.settle_all()
        self.assert_programmed(BITS, BITS)
        self.assertCountEqual(
            [None, self.first['id']],
            [
                found['instance_uuid']
                for found in self.accelerator.get('/programmings')[
                    'programmings'
                ]
            ],
        )
        self.delete_all()

    def test_not_with_an_image_that_is_not_for_all(self):
        self.flags(bitstream_projects=['ours'], group='nova_accel')
        self.glance.images[self.image].update(
            is_public=False, visibility='private', owner='ours'
        )
        self.turn_on()
        self.wait_until_logged('is not for all projects')
        self.assert_programmed(BITS)
        self.delete(self.first)

    def test_with_a_community_image_of_the_operators(self):
        self.flags(bitstream_projects=['ours'], group='nova_accel')
        self.glance.images[self.image].update(
            is_public=False, visibility='community', owner='ours'
        )
        self.turn_on()
        self.wait_until_stocked()
        self.delete(self.first)

    def test_a_failure_keeps_nobody_from_the_region(self):
        # This driver tries each of them twice.
        self.cards.faults = [fake_fpga.Fault.FAILS] * 2
        self.turn_on()
        self.wait_until_logged('does not get bitstream')
        # It is not ordered again.
        self.settle_all()
        self.assert_programmed(BITS)
        self.assertEqual([], self.cards.faults)
        self.delete(self.first)

    def test_a_boot_waits_for_it(self):
        self.cards.may_end.clear()
        self.turn_on()
        self._wait_for_assert(
            lambda: self.assertTrue(self.cards.is_programming)
        )
        self.boot_second(expected_state='BUILD')
        self.cards.may_end.set()
        self.second = self._wait_for_state_change(self.second, 'ACTIVE')
        self.assert_programmed(BITS, BITS)
        self.delete_all()

    def test_the_host_restarts_before_the_boot(self):
        self.turn_on()
        self.wait_until_stocked()
        [other] = {*self.hosts} - {self.first['OS-EXT-SRV-ATTR:host']}
        self.restart_compute_service(other)
        self._run_periodics()
        self.boot_second()
        self.assert_programmed(BITS, BITS)
        self.delete_all()


class TestCleaning(StockTestCase):
    def setUp(self):
        super().setUp()
        self.blank = self.upload(self.region, b'blank')
        self.flags(
            group='nova_accel',
            stock_programmings_per_minute=10,
            clean_with_stock=True,
            device_spec=[
                json.dumps(
                    {
                        **json.loads(devices.FPGA_SPEC),
                        'clean': 'program',
                        'clean_bitstream': self.blank,
                    }
                )
            ],
        )

    def test_a_region_is_cleaned_by_what_is_in_demand(self):
        self.restart_compute_service('host1')
        # No one wants anything yet.
        self.wait_until_clean(b'blank')
        server = self.boot_asking(bitstream_id=self.image)
        self.delete(server)
        self.wait_until_clean(b'blank', BITS, BITS)
        server = self.boot(self.create_accel_flavor('profile'))
        self.assert_programmed(b'blank', BITS, BITS)
        self.delete(server)

    def test_only_if_the_host_allows_it(self):
        self.flags(clean_with_stock=False, group='nova_accel')
        self.restart_compute_service('host1')
        self.wait_until_clean(b'blank')
        server = self.boot_asking(bitstream_id=self.image)
        self.flags(stock_programmings_per_minute=0, group='nova_accel')
        self.delete(server)
        self.wait_until_clean(b'blank', BITS, b'blank')

    def wait_until_clean(self, *programmed):
        self._wait_for_assert(lambda: self.assert_programmed(*programmed))
        # The other region, which the blank bitstream does not fit.
        self._wait_for_assert(lambda: self.assertEqual(1, self.reserved()))
