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

"""The journal of the partitions that this host has activated.

It has one small JSON file for each partition, written before Fabric Manager is
asked and after it has answered. It survives a kill of nova-compute, and is
what Fabric Manager is told after its own restart.
"""

import pathlib
import re

from nova_accel.model.links import fabric
from nova_accel.state import durable_file
from nova_accel.state import record_files

_NAME = re.compile('partition-(?P<number>0|[1-9][0-9]{0,9})', re.ASCII)


class PartitionJournal:
    """The entries of one host, below ``directory``."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._files = record_files.RecordFiles(
            directory,
            fabric.PartitionEntry.from_dict,
            _name,
            'partitions of NVSwitches',
            'the host learns from the devices of its instances whose the '
            f'partition is, and keeps the file as *{durable_file.DAMAGED}',
        )

    def entries(self) -> list[fabric.PartitionEntry]:
        """Every entry that is not damaged."""
        return self._files.entries()

    def damaged(self) -> list[tuple[None, str]]:
        """The fault of each damaged entry. No one knows whose it is."""
        return [(None, why) for why in sorted(self._files.damaged.values())]

    def damaged_numbers(self) -> frozenset[int]:
        """The partitions whose entries are damaged, by the files' names."""
        return frozenset(
            int(match['number'])
            for name in self._files.damaged
            if (match := _NAME.fullmatch(name))
        )

    def put_aside(self, number: int) -> None:
        """Forget the damaged entry of a partition that is not active.

        :raises DiskError: the disk refused.
        """
        self._files.remove(f'partition-{number}')

    def of_instance(self, instance_uuid: str) -> list[fabric.PartitionEntry]:
        """The entries of an instance."""
        return [
            entry
            for entry in self.entries()
            if entry.instance_uuid == instance_uuid
        ]

    def write(self, entry: fabric.PartitionEntry) -> None:
        """Store the entry, so that it survives a crash of the host.

        :raises DiskError: the disk refused.
        """
        self._files.write(entry)

    def remove(self, entry: fabric.PartitionEntry) -> None:
        """Forget the entry.

        :raises DiskError: the disk refused.
        """
        self._files.remove(_name(entry))


def _name(entry: fabric.PartitionEntry) -> str:
    return f'partition-{entry.number}'
