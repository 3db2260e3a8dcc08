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

"""The links as they were known before, kept across restarts.

A GPU that a guest has tells neither its module id nor its peers, and Fabric
Manager may be away when nova-compute starts.
"""

from collections.abc import Mapping
import pathlib
from typing import Any
from typing import NamedTuple

from nova_accel.model.links import link_discovery
from nova_accel.model.links import nvlink_peers
from nova_accel.state import value_file


class KnownGpu(NamedTuple):
    """A GPU as NVIDIA's driver had it the last time.

    ``identity`` is the serial number of the card, None if it is not known.
    ``peers`` are the devices that its NVLinks end at.
    """

    identity: str | None
    module_id: int | None
    has_fabric: bool
    peers: nvlink_peers.Peers


class Known(NamedTuple):
    """The GPUs by address, and the partitions of the last list."""

    gpus: Mapping[str, KnownGpu] = {}
    partitions: tuple[link_discovery.Partition, ...] = ()


class LinkMemory:
    """The memory of one host, in a file."""

    def __init__(self, path: pathlib.Path) -> None:
        self._file: value_file.ValueFile[Known] = value_file.ValueFile(
            path,
            _from_json,
            _to_json,
            Known(),
            'GPUs of an NVSwitch board are not offered until the driver of '
            'NVIDIA has had them again',
            'After a restart, GPUs of an NVSwitch board would not be offered '
            'until the driver of NVIDIA has had them again',
        )

    def read(self) -> Known:
        return self._file.value

    def write(self, known: Known) -> None:
        """Remember it. Does not raise. Nothing new costs nothing."""
        self._file.write(known)


def _from_json(value: Any) -> Known:
    return Known(
        {
            address: KnownGpu(
                gpu['identity'],
                gpu['module_id'],
                bool(gpu['has_fabric']),
                nvlink_peers.Peers(
                    frozenset(gpu['peers']),
                    # Earlier releases did not keep it.
                    frozenset(gpu.get('lost_peers', ())),
                ),
            )
            for address, gpu in value['gpus'].items()
        },
        tuple(
            link_discovery.Partition(frozenset(map(int, numbers)))
            for numbers in value['partitions']
        ),
    )


def _to_json(known: Known) -> Any:
    return {
        'gpus': {
            address: gpu._asdict()
            | {
                'peers': sorted(gpu.peers.up),
                'lost_peers': sorted(gpu.peers.lost),
            }
            for address, gpu in known.gpus.items()
        },
        'partitions': [sorted(each.module_ids) for each in known.partitions],
    }
