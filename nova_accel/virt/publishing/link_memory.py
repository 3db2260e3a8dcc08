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

from nova_accel.model import bounds
from nova_accel.model import decoding
from nova_accel.model import pci_address
from nova_accel.model.links import fabric
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
    partitions: tuple[link_discovery.KnownPartition, ...] = ()


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

    def damaged(self) -> list[tuple[None, str]]:
        """The fault of the file, if it was damaged at the last start."""
        return [(None, why) for why in self._file.damaged]

    def read(self) -> Known:
        return self._file.value

    def write(self, known: Known) -> None:
        """Remember it. Does not raise. Nothing new costs nothing."""
        self._file.write(known)


def _from_json(value: Any) -> Known:
    field = decoding.Fields(value)
    return Known(
        field('gpus', decoding.mapped(_address, _gpu, bounds.MAX_DEVICES)),
        field('partitions', decoding.listed(_partition)),
    )


def _gpu(value: Any) -> KnownGpu:
    field = decoding.Fields(value)
    peers = decoding.listed(_address)
    return KnownGpu(
        field('identity', decoding.optional(decoding.text)),
        field('module_id', decoding.optional(fabric.NUMBER)),
        field('has_fabric', decoding.boolean),
        nvlink_peers.Peers(
            frozenset(field('peers', peers)),
            frozenset(field('lost_peers', peers)),
        ),
    )


def _partition(value: Any) -> link_discovery.KnownPartition:
    return link_discovery.KnownPartition(
        frozenset(decoding.listed(fabric.NUMBER)(value))
    )


def _address(value: Any) -> str:
    return str(pci_address.from_text(value))


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
