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

from functional import base
from nova_accel.testing import devices
from nova_accel.testing import hostdev

#: Of Nova's fake host with two NUMA nodes of four processors.
CPUS = ('0-3', '4-7')
GPU_IDS = ('56c0', '56c1')
BUSES = (0x84, 0xC4)


def a_line(**keys):
    return json.dumps(
        {**json.loads(devices.QAT_SPEC), 'product_id': GPU_IDS[1], **keys}
    )


def gpus(*nodes):
    """A host with four GPUs on each of these NUMA nodes."""
    info = devices.pci_info(gpus=0, fpgas=0, qats=0)
    for node in nodes:
        info.devices.update(
            devices.pci_info(
                gpus=0,
                fpgas=0,
                qat_vfs=4,
                qat_ids=GPU_IDS,
                bus=BUSES[node],
                numa_node=node,
            ).devices
        )
    return info


class TestNumaAffinity(base.AcceleratorTestCase):
    """Guests with pinned processors, which are on one NUMA node only."""

    hosts = ()

    def start(self, host='host1', nodes=(0, 1), guests_on=1, **keys):
        self.flags(cpu_dedicated_set=CPUS[guests_on], group='compute')
        self.start_accelerated_compute(host, gpus(*nodes), [a_line(**keys)])

    def flavor(self, amount, affinity=None, pinned=True):
        name = f'gpus{amount}-{affinity}'
        group = {'resources:PGPU': f'{amount}'}
        if affinity:
            group['accel:numa_affinity'] = affinity
        self.create_profile(name, [group])
        return self.create_accel_flavor(
            name,
            extra_spec={'hw:cpu_policy': 'dedicated'} if pinned else {},
        )

    def nodes(self, server, host=None):
        """The NUMA node of each device of the guest, sorted."""
        return sorted(
            int(device.startswith(f'0000:{BUSES[1]:02x}'))
            for device in map(hostdev.identity, self.hostdevs(server, host))
        )

    def test_of_one_pool_the_near_ones(self):
        self.start()
        flavor = self.flavor(2, 'required')
        servers = [self.boot(flavor) for _server in range(2)]
        for server in servers:
            self.assertEqual([1, 1], self.nodes(server))
        self._reboot_server(servers[0], hard=True)
        self.assertEqual([1, 1], self.nodes(servers[0]))
        self.delete(*servers)

    def test_too_few_are_near(self):
        self.start()
        flavor = self.flavor(3, 'required')
        server = self.boot(flavor)
        failed = self.boot(flavor, expected_state='ERROR')
        self.assertEqual([1, 1, 1], self.nodes(server))
        far = self.boot(self.flavor(3, 'preferred'))
        self.assertEqual([0, 0, 1], self.nodes(far))
        self.delete(server, failed, far)

    def test_another_host_has_near_ones(self):
        """Nova tries the next host when one has too few."""
        self.start('host1', nodes=[0])
        self.start('host2', nodes=[1])
        flavor = self.flavor(1, 'required')
        servers = [self.boot(flavor) for _server in range(4)]
        self.assertEqual(
            {'host2'}, {each['OS-EXT-SRV-ATTR:host'] for each in servers}
        )
        self.delete(*servers)

    def test_pools_by_numa_node(self):
        """nova-scheduler knows no cells, so a pool may be on the other."""
        self.start(pool='numa')
        flavor = self.flavor(4, 'preferred')
        servers = [self.boot(flavor) for _server in range(2)]
        self.assertEqual([[0] * 4, [1] * 4], sorted(map(self.nodes, servers)))
        self.delete(*servers)

    def test_a_guest_without_cells(self):
        self.flags(cpu_shared_set=CPUS[0], group='compute')
        self.start()
        server = self.boot(self.flavor(8, 'required', pinned=False))
        self.assertEqual([0] * 4 + [1] * 4, self.nodes(server))
        self.delete(server)

    def test_a_resize_moves_the_cells(self):
        self.start('host1', nodes=[0, 1], guests_on=0)
        server = self.boot(self.flavor(1, 'required'))
        self.assertEqual([0], self.nodes(server))
        self.start('host2', nodes=[0, 1], guests_on=1)
        server = self._resize_server(server, self.flavor(2, 'required'))
        self.assertEqual('host2', server['OS-EXT-SRV-ATTR:host'])
        self.assertEqual([1, 1], self.nodes(server, 'host2'))
        server = self._revert_resize(server)
        self.assertEqual([0], self.nodes(server))
        self.delete(server)
