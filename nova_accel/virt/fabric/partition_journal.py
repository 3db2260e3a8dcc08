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

from nova_accel.model import fabric
from nova_accel.state import record_files


class Journal:
    """The entries of one host, below ``directory``."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._files = record_files.RecordFiles(
            directory,
            fabric.Entry.from_dict,
            'partitions of NVSwitches',
            'if the partition is active, no other guest gets its GPUs: '
            'deactivate it when no guest has them, remove the file and '
            'restart nova-compute',
        )

    def entries(self) -> list[fabric.Entry]:
        """Every entry that could be understood."""
        return self._files.entries()

    def of_instance(self, instance_uuid: str) -> list[fabric.Entry]:
        """The entries of an instance."""
        return [
            entry
            for entry in self.entries()
            if entry.instance_uuid == instance_uuid
        ]

    def write(self, entry: fabric.Entry) -> None:
        """Store the entry, so that it survives a crash of the host.

        :raises DiskError: the disk refused.
        """
        self._files.write(_name(entry), entry)

    def remove(self, entry: fabric.Entry) -> None:
        """Forget the entry.

        :raises DiskError: the disk refused.
        """
        self._files.remove(_name(entry))


def _name(entry: fabric.Entry) -> str:
    return f'partition-{entry.number}'
