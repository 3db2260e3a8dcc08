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

"""Servers on NVSwitch boards, through Nova's scheduler and Placement.

``tools/bench boards`` does the same with many more servers.
"""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

import random

import fixtures
import sqlalchemy as sa
import testtools

from nova_accel.db.sql import clock
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.testing import hgx_host
from rig.benchmark import board_boots
from rig.loopback import board_cloud
from rig.loopback import board_host

_BOOTS = 30


class BoardsTestCase(testtools.TestCase):
    module_ids = hgx_host.PAIRS_ON_SWITCHES

    def start(self, hosts=2, **kwargs):
        self.useFixture(fixtures.FakeLogger())
        return self.useFixture(
            board_cloud.BoardCloud(
                [
                    board_host.BoardHost(
                        f'board-{number}', module_ids=self.module_ids, **kwargs
                    )
                    for number in range(hosts)
                ]
            )
        )


class TestBoots(BoardsTestCase):
    def come_and_go(self, *sizes, **kwargs):
        boots = board_boots.Boots(
            self.start(**kwargs), sizes, random.Random(18)
        )
        boots.run(_BOOTS, lambda done: None)
        self.assertEqual(0, boots.tally.invalid)
        self.assertEqual(0, boots.tally.refused_wrongly)
        # Otherwise there was always enough, and nothing is shown.
        self.assertLess(0, boots.tally.refused)

    def test_flavors_of_two_and_four(self):
        self.come_and_go(2, 4)

    def test_flavors_of_all_sizes(self):
        self.come_and_go(1, 2, 4, 8)

    def test_partitions_that_are_not_supported(self):
        self.come_and_go(
            1, 2, 4, unsupported=(frozenset({1, 3}), frozenset({5, 6, 7, 8}))
        )


class TestLongAfterTheReport(BoardsTestCase):
    def test_servers_boot(self):
        cloud = self.start(hosts=1)
        with engine.manager().writer.get_engine().begin() as connection:
            connection.execute(
                sa.update(schema.HOSTS).values(reported_at=clock.ago(3600))
            )
        boots = board_boots.Boots(cloud, (2,), random.Random(18))
        boots.boot(2)
        self.assertEqual(board_boots.Tally(booted=1), boots.tally)


class TestBootsAcrossSwitches(TestBoots):
    """The pairs of this board are on two PCIe switches each."""

    module_ids = hgx_host.PAIRS_ACROSS_SWITCHES


class TestLargeSetsStayWhole(BoardsTestCase):
    def test_small_servers_go_together(self):
        cloud = self.start(hosts=3)
        boots = board_boots.Boots(cloud, (1, 2, 4, 8), random.Random(18))
        for size in (1, 2, 1, 4, 2, 1, 1, 4):
            boots.boot(size)
        self.assertEqual(8, boots.tally.booted)
        # 16 GPUs are used, of two boards alone.
        self.assertTrue(cloud.has_whole(8))
        boots.boot(8)
        self.assertEqual(0, boots.tally.refused)


class TestPairs(BoardsTestCase):
    def test_gpu_and_network_card_of_one_switch(self):
        cloud = self.start(hosts=1)
        cloud.profile(
            'pair',
            {'resources:PGPU': '1', 'accel:link': 'pcie'},
            {'resources:CUSTOM_NIC': '1', 'accel:link': 'pcie'},
        )
        [host] = cloud.hosts.values()
        used = set()
        for _switch in range(4):
            server = cloud.boot('pair')
            self.assertEqual((0, 1), server.group_ids)
            [switch] = host.switches(server.addresses)
            used.add(switch)
        self.assertEqual(4, len(used))
        self.assertTrue(cloud.is_refused('pair'))
