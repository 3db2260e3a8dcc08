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

"""Learning what damaged entries of the journal of partitions said.

A partition is activated for exactly the GPUs that a guest gets. So the devices
that instances hold tell whose it is. If no one has any of its GPUs, it is not
needed any more. If a guest may have one, the partition stays as it is.

All code here runs under the lock of the host's partitions.
"""

from collections.abc import Iterable

from oslo_log import log as logging

from nova_accel.host import fabric_manager
from nova_accel.model.links import fabric
from nova_accel.virt.fabric import fabric_need
from nova_accel.virt.fabric import partition_journal

LOG = logging.getLogger(__name__)


class Mending:
    """The damaged entries of one host.

    :param boot_id: the kernel's name of this boot of the host
    :param need: knows which GPUs guests get
    """

    def __init__(
        self,
        boot_id: str,
        journal: partition_journal.PartitionJournal,
        manager: fabric_manager.FabricManager,
        need: fabric_need.Need,
    ) -> None:
        self._boot_id = boot_id
        self._journal = journal
        self._manager = manager
        self._need = need

    def mend(self, partitions: Iterable[fabric.Partition]) -> bool:
        """Replace the damaged entries, or put them aside if no one needs them.

        :param partitions: as Fabric Manager has them
        :returns: whether one is whole again
        :raises AcceleratorError: Fabric Manager, libvirt or the disk refuses.
        """
        damaged = self._journal.damaged_numbers()
        is_mended = False
        for partition in partitions:
            if partition.number in damaged and self._is_mended(partition):
                is_mended = True
                LOG.info(
                    'The journal of partition %s of the NVSwitch fabric is '
                    'whole again',
                    partition.number,
                )
        return is_mended

    def _is_mended(self, partition: fabric.Partition) -> bool:
        """Mend the entry of a partition, or leave it for the next time."""
        owners = self._need.owners(partition.module_ids)
        exact = [
            (uuid, gpus)
            for uuid, gpus in owners.items()
            if gpus.module_ids == partition.module_ids
        ]
        if partition.is_active and len(owners) == len(exact) == 1:
            ((uuid, gpus),) = exact
            self._journal.write(
                gpus.entry(
                    partition, uuid, fabric.PartitionStep.ACTIVE, self._boot_id
                )
            )
        elif not partition.is_active:
            self._journal.put_aside(partition.number)
        elif not owners and not self._need.is_unsure(partition.module_ids):
            self._manager.deactivate(partition.number)
            self._journal.put_aside(partition.number)
        else:
            return False
        return True
