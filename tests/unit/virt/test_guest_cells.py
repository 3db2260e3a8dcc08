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

import types

from nova import objects
from nova.tests.fixtures import libvirt as fakelibvirt
import testtools

from nova_accel.model import arq_types
from nova_accel.testing import devices
from nova_accel.testing import libvirt
from nova_accel.virt import guest_cells

ACTIVE = arq_types.Role.ACTIVE
INCOMING = arq_types.Role.INCOMING


def topology(*nodes):
    """Of a guest with a cell on each of the host's nodes."""
    return objects.InstanceNUMATopology(
        cells=[objects.InstanceNUMACell(id=node) for node in nodes]
    )


def instance(numa_topology, context=None):
    return types.SimpleNamespace(
        numa_topology=numa_topology, migration_context=context
    )


class TestGuestCells(testtools.TestCase):
    def cells(self, nodes=2):
        fake = self.useFixture(libvirt.Libvirt(devices.pci_info()))
        fake.connection.host_info = fakelibvirt.HostInfo(cpu_nodes=nodes)
        return guest_cells.GuestCells(fake.host)

    def test_the_nodes_of_the_cells(self):
        cells = self.cells(4)
        for nodes in ([0], [3], [1, 2]):
            self.assertEqual(
                set(nodes),
                cells.numa_nodes(instance(topology(*nodes)), ACTIVE),
            )

    def test_a_guest_without_cells(self):
        self.assertEqual(
            set(), self.cells().numa_nodes(instance(None), ACTIVE)
        )

    def test_all_of_the_host_is_near(self):
        cells = self.cells()
        self.assertEqual(
            set(), cells.numa_nodes(instance(topology(0, 1)), ACTIVE)
        )
        self.assertEqual(
            set(), self.cells(1).numa_nodes(instance(topology(0)), ACTIVE)
        )

    def test_a_live_migration_has_claimed_others(self):
        cells = self.cells()
        claimed = types.SimpleNamespace(new_numa_topology=topology(1))
        moving = instance(topology(0), claimed)
        self.assertEqual({1}, cells.numa_nodes(moving, INCOMING))
        self.assertEqual({0}, cells.numa_nodes(moving, ACTIVE))
        for context in (None, types.SimpleNamespace(new_numa_topology=None)):
            unclaimed = instance(topology(0), context)
            self.assertEqual({0}, cells.numa_nodes(unclaimed, INCOMING))
