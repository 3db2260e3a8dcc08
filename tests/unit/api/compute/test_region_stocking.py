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

from nova_accel import conf
from nova_accel.api.compute import rpc
from nova_accel.db import bitstream_demand
from nova_accel.db import idle_regions
from nova_accel.db import lease
from nova_accel.model import host_contract
from nova_accel.model import host_rpc
from unit.api import base
from unit.api import programming

OTHER = base.numbered_uuid(78)
CALLEE = host_rpc.Callee(base.HOSTNAME, host_contract.NEWEST)
STOCKED = (programming.DEPLOYABLE, programming.BITSTREAM)


class StockingTestCase(programming.ProgrammingTestCase):
    """A region that a server has had, whose profile named a bitstream."""

    is_cleaned = False

    def setUp(self) -> None:
        super().setUp()
        for name in ('INTERVAL_S', 'TRY_S'):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.api.compute.region_stocking.{name}', 0
                )
            )
        # The message comes later, if at all.
        self.sent: list[tuple[Any, ...]] = []
        send = rpc.stock
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.api.compute.rpc.stock',
                lambda *order: (self.sent.append(order), send(*order)),
            )
        )
        if self.is_cleaned:
            self.clean_host()
        self.create_profile(
            'profile',
            {**base.GROUP, 'accel:bitstream_id': programming.BITSTREAM},
        )
        arq = self.create_arq()
        self.bind(arq)
        self.ok('DELETE', f'/accelerator_requests?arqs={arq}', token=True)
        self.set_rate(10)

    def set_rate(self, rate: int) -> None:
        conf.CONF.set_override(
            'stock_programmings_per_minute', rate, 'nova_accel'
        )

    def report(self) -> Any:
        return self.report_host(is_cleaned=self.is_cleaned)

    def is_stocked(self) -> None:
        self.assertEqual([(CALLEE, *STOCKED)], self.sent)
        self.assertEqual(STOCKED, self.host.stocked.get(timeout=10))
        self.sent.clear()

    def is_not_stocked(self) -> None:
        self.report()
        self.assertEqual([], self.sent)


class OrderTest(StockingTestCase):
    def test_an_idle_region(self) -> None:
        self.report()
        self.is_stocked()
        # It is ordered once.
        self.is_not_stocked()

    def test_an_unchanged_report_is_an_occasion_too(self) -> None:
        self.set_rate(0)
        told = self.report()['orders']
        self.set_rate(10)
        answer = self.call(
            'PUT',
            f'/hosts/{base.HOSTNAME}',
            {**base.report(), 'orders_seen': told['revision']},
            roles=base.SERVICE,
        )
        self.assertEqual(204, answer.status_int)
        self.is_stocked()

    def test_off_by_default(self) -> None:
        conf.CONF.clear_override('stock_programmings_per_minute', 'nova_accel')
        self.is_not_stocked()
        # No one has looked.
        self.assertTrue(lease.take('stock', 3600))

    def test_somebody_elses_turn(self) -> None:
        lease.take('stock', 3600)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.api.compute.region_stocking.INTERVAL_S', 3600
            )
        )
        self.is_not_stocked()

    def test_a_region_that_a_server_has(self) -> None:
        self.bind(self.create_arq(), instance=base.INSTANCE)
        self.is_not_stocked()

    def test_a_bitstream_that_no_profile_names(self) -> None:
        self.ok('DELETE', '/device_profiles?value=profile')
        self.is_not_stocked()

    def test_a_silent_host(self) -> None:
        self.be_silent()
        self.assertEqual([], idle_regions.read_idle(60))

    def test_a_host_that_cannot_be_asked(self) -> None:
        self.bus._hosts.clear()
        self.report()
        self.assertIn(f'Host {base.HOSTNAME} is not asked', self.log.output)

    def test_the_report_does_not_suffer(self) -> None:
        def fail() -> None:
            raise ZeroDivisionError('oops')

        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.db.bitstream_demand.read', fail)
        )
        self.is_not_stocked()
        self.assertIn('oops', self.log.output)

    def test_the_demand_of_a_server_without_a_profile(self) -> None:
        """It counts, but nothing is stocked for it."""
        self.ok('DELETE', '/device_profiles?value=profile')
        path = f'/hosts/{base.HOSTNAME}/instances/{base.INSTANCE}/active'
        self.ok(
            'PUT',
            path,
            {
                'attempt': 1,
                'project_id': base.PROJECT,
                'groups': [{**base.GROUP, 'accel:bitstream_id': OTHER}],
                'providers': {
                    base.RP: {
                        'allocated': {'FPGA': 1},
                        'traits': base.TRAITS,
                    }
                },
            },
            roles=base.SERVICE,
        )
        self.ok('DELETE', f'{path}?attempt=1', roles=base.SERVICE)
        self.assertEqual(
            {programming.BITSTREAM, OTHER}, bitstream_demand.read().keys()
        )
        self.is_not_stocked()


class CleaningTest(StockingTestCase):
    is_cleaned = True

    def test_what_is_in_demand_is_named(self) -> None:
        told = self.report()['orders']
        [handle] = told['uncleaned']
        self.assertEqual({handle: programming.BITSTREAM}, told['stock'])
        # An unclean region is not idle.
        self.assertEqual([], self.sent)

    def test_only_if_it_is_on(self) -> None:
        self.set_rate(0)
        self.assertNotIn('stock', self.report()['orders'])

    def test_a_fault_leaves_the_blank_one(self) -> None:
        def fail(_hostname: str) -> None:
            raise ZeroDivisionError('oops')

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.db.idle_regions.read_unclean', fail
            )
        )
        self.assertNotIn('stock', self.report()['orders'])
        self.assertIn('oops', self.log.output)
