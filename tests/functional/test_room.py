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


"""Servers move so that one with eight GPUs finds room, by the command's code.

It talks through keystone and HTTP, as the command does.
"""

import json
import time

import fixtures
from keystoneauth1 import adapter
from openstack import config
from openstack import connection

from functional import base
from nova_accel.osc import host_places
from nova_accel.osc import room_cloud
from nova_accel.osc import room_making
from nova_accel.scheduler import known_stock
from nova_accel.testing import devices
from nova_accel.testing import pci_functions

_SPEC = json.dumps(
    {'vendor_id': '10de', 'product_id': '2330', 'driver': 'pci', 'type': 'GPU'}
)

_TIMEOUT_S = 120


class RoomTestCase(base.AcceleratorTestCase):
    """Three hosts with eight GPUs each; those of host1 are freed most easily.

    :ivar small: two servers of host1, of which the first one is stopped
    :ivar others: one of each other host
    """

    CAST_AS_CALL = False
    hosts = ()

    def setUp(self):
        super().setUp()
        self.hosts = ('host1', 'host2', 'host3')
        for host in self.hosts:
            self.start_accelerated_compute(host, self._info(), [_SPEC])
        # Nova's driver confirms on the host that this says; all computes here
        # share the option.
        self.flags(host='host1')
        path = self.write_clouds(self.admin)
        region = config.OpenStackConfig(config_files=[str(path)]).get_one(
            cloud='admin'
        )
        # Nova's fixtures replace its proxies, not its session.
        session = connection.Connection(config=region).session
        self.nova_adapter, accelerator = (
            adapter.Adapter(session, service_type=service, interface='public')
            for service in ('compute', 'accelerator')
        )
        self.cloud = room_cloud.RoomCloud(self.nova_adapter, accelerator)
        self.flavors = {}
        for size in (1, 2, 6, 8):
            self.create_profile(f'gpus{size}', [{'resources:PGPU': str(size)}])
            self.flavors[size] = self.create_accel_flavor(f'gpus{size}')
        self.small = [
            self.boot(self.flavors[size], host='host1', name=f'of{size}')
            for size in (1, 2)
        ]
        self._stop_server(self.small[0])
        self.others = [
            self.boot(self.flavors[6], host=host)
            for host in ('host2', 'host3')
        ]

    def _info(self):
        info = devices.pci_info(gpus=0, fpgas=0, qats=0)
        pci_functions.add(
            info,
            *(
                pci_functions.function(
                    f'0000:{bus:02x}:00.0', '10de', '2330', iommu_group=bus
                )
                for bus in range(0x81, 0x89)
            ),
        )
        return info

    def making(self, sleep=time.sleep):
        return room_making.RoomMaking(
            self.cloud,
            'gpus8',
            1,
            room_making.Allowed(cold=True),
            clock=time.monotonic,
            sleep=sleep,
        )

    def make_room(self, **kwargs):
        making = self.making(**kwargs)
        left = making.run(_TIMEOUT_S, lambda _progress: None)
        self.assertEqual((), left.moves, left)
        return making.done

    def remove(self, server):
        self.api.delete_server(server['id'])
        self._wait_until_deleted(server)

    def assert_there_is_room(self):
        large = self.boot(self.flavors[8])
        self.assertEqual(
            'host1',
            self.api.get_server(large['id'])['OS-EXT-SRV-ATTR:host'],
        )
        self.assertEqual(8, len(self.hostdevs(large)))
        for server, status in zip(
            self.small, ('SHUTOFF', 'ACTIVE'), strict=True
        ):
            server = self.api.get_server(server['id'])
            self.assertEqual(status, server['status'])
            self.assertIn(server['OS-EXT-SRV-ATTR:host'], ('host2', 'host3'))
        self.delete(large, *self.small, *self.others)


class TestRoom(RoomTestCase):
    def test_zones_and_aggregates(self):
        aggregate = self.admin_api.post_aggregate(
            {'aggregate': {'name': 'gpu'}}
        )
        self.admin_api.add_host_to_aggregate(aggregate['id'], 'host2')
        for places, found in (
            ('zone', [['nova']] * 3),
            ('aggregate', [[], ['gpu'], []]),
        ):
            self.assertEqual(
                dict(zip(self.hosts, found, strict=True)),
                host_places.of_hypervisors(
                    self.nova_adapter, host_places.Places(places)
                ),
            )
        self.delete(*self.small, *self.others)

    def test_a_plan_is_carried_out(self):
        self.remove(self.boot(self.flavors[8], expected_state='ERROR'))
        planned = self.making().plan()
        self.assertTrue(planned.is_proven)
        self.assertEqual(
            {'host1'}, {move.told['from'] for move in planned.moves}
        )
        done = self.make_room()
        self.assertEqual(['moved'] * 2, [move.result for move in done])
        self.assert_there_is_room()

    def test_it_is_killed_and_run_again(self):
        """A migration that it has begun is confirmed then."""

        def interrupt(_seconds):
            self._wait_for_assert(
                lambda: self.assertIn(
                    'VERIFY_RESIZE',
                    [
                        self.api.get_server(server['id'])['status']
                        for server in self.small
                    ],
                )
            )
            raise KeyboardInterrupt

        self.assertRaises(KeyboardInterrupt, self.make_room, sleep=interrupt)
        # The API knows nothing of what nova-scheduler has claimed in vain. In
        # this test alone both are one process.
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.scheduler.known_stock._STOCK',
                known_stock.KnownStock(),
            )
        )
        self.make_room()
        self.assert_there_is_room()

    def test_the_cloud_changes(self):
        """The server that was to move is gone, and another one is there."""
        planned = self.making().plan()
        self.remove(self.small[0])
        self.small[0] = self.boot(self.flavors[1], host='host1', name='new')
        self._stop_server(self.small[0])
        self.assertNotEqual(
            {move.server.uuid for move in planned.moves},
            {move.server.uuid for move in self.making().plan().moves},
        )
        self.make_room()
        self.assert_there_is_room()
