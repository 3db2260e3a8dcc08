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

"""Which GPUs the host's own processes use, without vendors' tools.

AMD's driver reports it in sysfs. A process that uses another vendor's GPU has
a device node of it open (``/dev/nvidia0``, ``/dev/dri/renderD128``). Only root
can see which nodes other users' processes have open.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import functools
import re

from oslo_log import log as logging

from nova_accel import privileged
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.privileged import gpu_nodes

LOG = logging.getLogger(__name__)

_MINOR = re.compile(r'^Device Minor:\s*([0-9]+)\s*$', re.MULTILINE)
_MEMORY = re.compile(r'vram_(?P<gpu>[0-9]+)')

# This daemon keeps GPUs awake for others, and releases a GPU that is unbound.
_PERSISTENCE_DAEMON = 'nvidia-persiste'


class GpuProcesses:
    """The processes that use GPUs at one moment."""

    def __init__(self, sysfs: sysfs_tree.Sysfs) -> None:
        self._sysfs = sysfs

    def uses(self, address: pci_address.PciAddress) -> Iterator[str]:
        """The uses of a function, empty if it is no GPU.

        :raises DeviceError: it cannot be read.
        :raises OSError: it cannot be read.
        """
        nodes = list(self._nodes(address))
        if not nodes:
            return
        for name in self._of_kfd.get(address, ()):
            yield f'process {name} computes with it'
        for node in nodes:
            for process, command in self._opened.get(node, ()):
                if command != _PERSISTENCE_DAEMON:
                    yield f'process {process} ({command}) has {node} open'

    def _nodes(self, address: pci_address.PciAddress) -> Iterator[str]:
        """The function's device nodes, below ``/dev``."""
        for directory, pattern in (
            ('drm', r'(card|renderD)[0-9]+'),
            ('accel', r'accel[0-9]+'),
        ):
            for name in self._sysfs.names(address, directory):
                if re.fullmatch(pattern, name):
                    yield f'{"dri" if directory == "drm" else "accel"}/{name}'
        try:
            information = (
                self._sysfs.proc
                / 'driver/nvidia/gpus'
                / str(address)
                / 'information'
            ).read_text(errors='replace')
        except FileNotFoundError:
            return
        yield from (
            f'nvidia{number}' for number in _MINOR.findall(information)
        )

    @functools.cached_property
    def _opened(self) -> Mapping[str, list[tuple[int, str]]]:
        """Device node -> (process, its command); empty if it is unreadable."""
        try:
            return gpu_nodes.opened()
        except privileged.ERRORS as error:
            LOG.warning(
                'Cannot find out which processes of this host use GPUs: %s',
                error,
            )
            return {}

    @functools.cached_property
    def _of_kfd(self) -> Mapping[pci_address.PciAddress, list[str]]:
        """As :meth:`_look_at_kfd`; empty if it cannot be read."""
        try:
            return self._look_at_kfd()
        except (OSError, ValueError) as error:
            # This happens in a container whose devices are restricted.
            LOG.warning(
                'Cannot find out which processes of this host compute '
                'with GPUs of AMD: %s',
                error,
            )
            return {}

    def _look_at_kfd(self) -> Mapping[pci_address.PciAddress, list[str]]:
        """GPU -> processes with memory in it, by AMD's compute driver.

        See ``drivers/gpu/drm/amd/amdkfd``: kfd_topology.c, kfd_process.c.

        :raises OSError, ValueError: it cannot be read, or is malformed.
        """
        kfd = self._sysfs.root / 'class/kfd/kfd'
        gpus = {}
        for node in sorted(kfd.glob('topology/nodes/*')):
            properties = dict(
                line.split(maxsplit=1)
                for line in (node / 'properties').read_text().splitlines()
                if line
            )
            place = int(properties.get('location_id', '0'))
            gpus[(node / 'gpu_id').read_text().strip()] = (
                pci_address.PciAddress(
                    int(properties.get('domain', '0')),
                    place >> 8 & 0xFF,
                    place >> 3 & 0x1F,
                    place & 0x7,
                )
            )
        found: dict[pci_address.PciAddress, list[str]] = {}
        for memory in sorted(kfd.glob('proc/*/vram_*')):
            match = _MEMORY.fullmatch(memory.name)
            try:
                if match and match['gpu'] in gpus and int(memory.read_text()):
                    found.setdefault(gpus[match['gpu']], []).append(
                        memory.parent.name
                    )
            except FileNotFoundError:
                # The process has ended.
                continue
        return found
