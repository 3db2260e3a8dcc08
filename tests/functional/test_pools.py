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

from nova import context as nova_context

from functional import base
from nova_accel.model import naming
from nova_accel.testing import devices

HOST = 'host1'
GPU_IDS = '56c0', '56c1'
POOL = 'pgpu_8086_56c1'
NUMA_POOLS = [f'{POOL}_numa0', f'{POOL}_numa1']


def a_line(**keys):
    return json.dumps(
        {**json.loads(devices.QAT_SPEC), 'product_id': GPU_IDS[1], **keys}
    )


def two_sockets():
    """Four GPUs each."""
    info = devices.pci_info(
        gpus=0, fpgas=0, qat_vfs=4, qat_ids=GPU_IDS, bus=0x84
    )
    info.devices.update(
        devices.pci_info(
            gpus=0, fpgas=0, qat_vfs=4, qat_ids=GPU_IDS, bus=0xC4, numa_node=1
        ).devices
    )
    return info


class TwoSocketsTestCase(base.AcceleratorTestCase):
    hosts = ()

    def start(self, **keys):
        self.start_accelerated_compute(HOST, two_sockets(), [a_line(**keys)])

    def restart(self, **keys):
        self.flags(device_spec=[a_line(**keys)], group='nova_accel')
        self.restart_compute_service(HOST)

    def update(self, times):
        """Nova updates its resources, after our worker's cycle."""
        for _time in range(times):
            self.settle(HOST)
            self.computes[HOST].manager.update_available_resource(
                nova_context.get_admin_context()
            )

    def used(self):
        """Name after the infix of each pool -> total, used."""
        return {
            provider['name'].removeprefix(f'{HOST}_accel_'): (
                provider['inventory']['PGPU'],
                provider['usage']['PGPU'],
            )
            for provider in self.accelerator_providers(HOST)
        }

    def nodes(self, server):
        """The NUMA node of each device of the guest, sorted."""
        return sorted(
            int(device.startswith('0000:c4'))
            for device in self.guest_devices(server)
        )

    def boot_gpus(self, amount, name=None, **kwargs):
        name = name or f'gpus{amount}'
        self.create_profile(name, [{'resources:PGPU': f'{amount}'}])
        return self.boot(self.create_accel_flavor(name), **kwargs)

    def assert_group_0(self, server, amount):
        self.assert_guest_has_its_arqs(server, *[(0, 'PCI')] * amount)


class TestOnePool(TwoSocketsTestCase):
    def test_all_gpus_of_both_sockets(self):
        self.start()
        self.assertEqual({POOL: (8, 0)}, self.used())
        server = self.boot_gpus(8)
        self.assert_group_0(server, 8)
        self.assertEqual([0] * 4 + [1] * 4, self.nodes(server))
        self.delete(server)

    def test_more_than_any_host_has(self):
        self.start()
        server = self.boot_gpus(40, expected_state='ERROR')
        self.assertIn(
            'device profile gpus40: no pool of devices has PGPU=40, which '
            'group 0 asks for; the largest has 8',
            server['fault']['message'],
        )
        self.delete(server)

    def test_devices_apart(self):
        self.start(pool=False)
        server = self.boot_gpus(2, expected_state='ERROR')
        self.assertIn(
            'device profile gpus2: no pool of devices has PGPU=2, which group '
            '0 asks for',
            server['fault']['message'],
        )
        self.delete(server)


class TestOneNumaNode(TwoSocketsTestCase):
    """Of a pool that has both nodes."""

    def setUp(self):
        super().setUp()
        self.start()

    def boot_on_one_node(self, amount, **kwargs):
        name = f'node{amount}'
        self.create_profile(
            name,
            [
                {
                    'resources:PGPU': f'{amount}',
                    'accel:single_numa_node': 'true',
                }
            ],
        )
        return self.boot(self.create_accel_flavor(name), **kwargs)

    def test_it_is_kept(self):
        others = [self.boot_gpus(3, name) for name in ('first', 'second')]
        self.assertEqual([[0] * 3, [1] * 3], sorted(map(self.nodes, others)))
        refused = self.boot_on_one_node(2, expected_state='ERROR')
        self.assertEqual({POOL: (8, 6)}, self.used())
        self.delete_only(refused, others.pop())
        server = self.boot_on_one_node(4)
        self.assertEqual(1, len(set(self.nodes(server))))
        self.delete(server, *others)

    def delete_only(self, *servers):
        for server in servers:
            self._delete_server(server)

    def test_more_than_a_node_has(self):
        server = self.boot_on_one_node(5, expected_state='ERROR')
        self.assertIn(
            'no NUMA node has PGPU=5, which group 0 asks for; the largest has '
            '4',
            server['fault']['message'],
        )
        self.delete(server)


class TestPoolsOfNumaNodes(TwoSocketsTestCase):
    def test_a_group_is_divided(self):
        self.start(pool='numa')
        self.assertEqual(dict.fromkeys(NUMA_POOLS, (4, 0)), self.used())
        server = self.boot_gpus(8)
        self.assertEqual(dict.fromkeys(NUMA_POOLS, (4, 4)), self.used())
        self.assert_group_0(server, 8)
        # What is made from the allocations alone stays as it is.
        self.api.post_server_action(server['id'], {'reboot': {'type': 'HARD'}})
        self._wait_for_server_parameter(
            server, {'status': 'ACTIVE', 'OS-EXT-STS:task_state': None}
        )
        self.assert_group_0(server, 8)
        self.delete(server)

    def test_a_group_that_fits_is_on_one_node(self):
        self.start(pool='numa')
        servers = [self.boot_gpus(4, name) for name in ('first', 'second')]
        self.assertEqual([[0] * 4, [1] * 4], sorted(map(self.nodes, servers)))
        self.delete(*servers)

    def test_parts_that_are_not_free(self):
        self.start(pool='numa')
        other = self.boot_gpus(1)
        server = self.boot_gpus(8, expected_state='ERROR')
        self.assertIn(
            'device profile gpus8: no host has device_profile_0_0, '
            'device_profile_0_1 free together',
            server['fault']['message'],
        )
        self.delete(server, other)


class TestOtherPools(TwoSocketsTestCase):
    """From pools by NUMA node, and back."""

    def setUp(self):
        super().setUp()
        self.start(pool='numa')

    def test_the_names_of_the_pools_stay(self):
        """With other uuids the allocations of servers would move."""
        node_uuid = self.compute_rp_uuids[HOST]
        self.assertEqual(
            {
                naming.derived_uuid(
                    node_uuid, 'provider', 'pgpu', '8086', '56c1', node
                ): f'{HOST}_accel_{POOL}_{node}'
                for node in ('numa0', 'numa1')
            },
            self.provider_names(),
        )

    def test_running_servers(self):
        servers = [self.boot_gpus(1), self.boot_gpus(7)]
        before = [self.guest_devices(server) for server in servers]
        for keys, pools in (
            ({}, {POOL: (8, 8)}),
            ({'pool': 'numa'}, dict.fromkeys(NUMA_POOLS, (4, 4))),
        ):
            self.restart(**keys)
            self.update(2)
            self.assertEqual(pools, self.used())
            for server, devices_before, amount in zip(
                servers, before, (1, 7), strict=True
            ):
                self.assertEqual(devices_before, self.guest_devices(server))
                self.assert_group_0(server, amount)
                self.assertLessEqual(
                    {arq['device_rp_uuid'] for arq in self.arqs(server)},
                    self.provider_names().keys(),
                )
        self.delete(*servers)
        self.assertEqual(dict.fromkeys(NUMA_POOLS, (4, 0)), self.used())

    def test_new_servers_beside_old_ones(self):
        old = self.boot_gpus(3)
        self.restart()
        self.update(2)
        new = self.boot_gpus(5)
        self.assertEqual({POOL: (8, 8)}, self.used())
        self.assertEqual(
            8, len({*self.guest_devices(old), *self.guest_devices(new)})
        )
        self.delete(old, new)

    def test_a_server_that_waits_to_be_confirmed(self):
        """A resize to the same host holds two groups, of two consumers."""
        self.flags(allow_resize_to_same_host=True)
        server = self.boot_gpus(4)
        old = self.guest_devices(server)
        server = self._resize_server(
            server, self.create_accel_flavor('gpus4', memory_mb=128)
        )
        self.restart()
        self.update(2)
        self.assertEqual({POOL: (8, 8)}, self.used())
        # The one option that all of Nova's services here share.
        self.flags(host=HOST)
        self._revert_resize(server)
        self.update(1)
        self.assertEqual({POOL: (8, 4)}, self.used())
        self.assertEqual(old, self.guest_devices(server))
        self.delete(server)
