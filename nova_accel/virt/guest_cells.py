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

"""The NUMA nodes of the host that have the cells of a guest.

Nova chooses them when it claims the guest's processors and memory on a host
(``nova.virt.hardware.numa_fit_instance_to_host``). From then on the id of each
of the guest's cells is that of the node.
"""

from nova import objects
from nova.virt.libvirt import host as libvirt_host

from nova_accel.model import arq_types


class GuestCells:
    """Knows the NUMA nodes of the guests of one host."""

    def __init__(self, host: libvirt_host.Host) -> None:
        self._host = host

    def numa_nodes(
        self, instance: objects.Instance, role: arq_types.Role
    ) -> frozenset[int]:
        """The nodes that have the guest's cells; none if it makes no odds.

        That is so without cells, and if no node of the host is without one.

        :param role: in which the instance gets accelerators. A live migration
            has claimed other nodes than those that the guest is still on
        """
        topology = instance.numa_topology
        if topology is None:
            return frozenset()
        if role is arq_types.Role.INCOMING and instance.migration_context:
            topology = instance.migration_context.new_numa_topology or topology
        found = frozenset(cell.id for cell in topology.cells)
        return frozenset() if found >= self._of_host() else found

    def _of_host(self) -> frozenset[int]:
        described = self._host.get_capabilities().host.topology
        return frozenset(
            cell.id for cell in (described.cells if described else ())
        )
