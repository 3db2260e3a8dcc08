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

"""Which devices the host's own processes use, without vendors' tools.

AMD's driver reports it in sysfs. A process that uses another vendor's device
has a device node of it open (``/dev/nvidia0``, ``/dev/infiniband/uverbs0``).
Only root can see which nodes other users' processes have open.

A GPU of AMD may be divided. Each partition is a node of KFD, with a render
node of its own below no PCI function, and its number in the place of the
function (``drivers/gpu/drm/amd/amdkfd/kfd_topology.c``, ``location_id``).
"""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import functools
import re
from typing import NamedTuple

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel import privileged
from nova_accel import reason
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.model.devices import host_uses
from nova_accel.privileged import gpu_nodes

LOG = logging.getLogger(__name__)

_MINOR = re.compile(r'^Device Minor:\s*([0-9]+)\s*$', re.MULTILINE)
_MEMORY = re.compile(r'vram_(?P<gpu>[0-9]+)')

# Directory below a function -> below /dev, and what is a node in it. A mei is
# below a device of a GPU's driver (drivers/gpu/drm/xe/xe_heci_gsc.c).
_DIRECTORIES = {
    'drm': ('dri/', re.compile(r'(card|renderD)[0-9]+')),
    'accel': ('accel/', re.compile(r'accel(_controlD)?[0-9]+')),
    'habanalabs': ('', re.compile(r'hl(_controlD)?[0-9]+')),
    'davinci': ('', re.compile(r'davinci[0-9]+')),
    'infiniband_verbs': ('infiniband/', re.compile(r'uverbs[0-9]+')),
    'infiniband_mad': ('infiniband/', re.compile(r'(umad|issm)[0-9]+')),
    'mei': ('', re.compile(r'mei[0-9]+')),
}
_MEI_DEVICE = re.compile(r'.+\.mei-.+')

_CAPABILITY = re.compile(r'^DeviceFileMinor:\s*([0-9]+)\s*$', re.MULTILINE)


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
        for name in self._kfd.processes.get(address, ()):
            yield host_uses.COMPUTING.text(f'process {name} computes with it')
        for node in nodes:
            for process, command in self._opened.get(node, ()):
                yield host_uses.of_command(command).text(
                    f'process {process} ({reason.printable(command)}) has '
                    f'{node} open'
                )

    def _nodes(self, address: pci_address.PciAddress) -> Iterator[str]:
        """The function's device nodes, below ``/dev``."""
        for child in self._sysfs.names(address):
            kind, directory = child, child
            if _MEI_DEVICE.fullmatch(child):
                kind, directory = 'mei', f'{child}/mei'
            if kind in _DIRECTORIES:
                below, pattern = _DIRECTORIES[kind]
                for name in self._sysfs.names(address, directory):
                    if pattern.fullmatch(name):
                        yield f'{below}{name}'
        for minor in sorted(self._kfd.render_minors.get(address, ())):
            yield f'dri/renderD{minor}'
        yield from self._nodes_of_nvidia(address)

    def _nodes_of_nvidia(
        self, address: pci_address.PciAddress
    ) -> Iterator[str]:
        """The nodes of the GPU, and of its parts that MIG has made."""
        driver = self._sysfs.proc / 'driver/nvidia'
        try:
            information = sysfs_tree.text(
                driver / 'gpus' / str(address) / 'information'
            )
        except FileNotFoundError:
            return
        for number in _MINOR.findall(information):
            yield f'nvidia{number}'
            parts = driver / f'capabilities/gpu{number}/mig'
            for access in sorted(parts.glob('gi*/**/access')):
                for minor in _CAPABILITY.findall(sysfs_tree.text(access)):
                    yield f'nvidia-caps/nvidia-cap{minor}'

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
    def _kfd(self) -> '_Kfd':
        """The part of AMD's compute driver's report that can be read.

        See ``drivers/gpu/drm/amd/amdkfd``: kfd_topology.c, kfd_process.c.
        """
        kfd = self._sysfs.root / 'class/kfd/kfd'
        found = _Kfd({}, {})
        gpus = {}
        for node in sorted(kfd.glob('topology/nodes/*')):
            with _unless_unreadable():
                properties = dict(
                    line.split(maxsplit=1)
                    for line in sysfs_tree.text(
                        node / 'properties'
                    ).splitlines()
                    if line
                )
                address = self._whole_gpu(
                    int(properties.get('domain', '0')),
                    int(properties.get('location_id', '0')),
                )
                gpus[sysfs_tree.text(node / 'gpu_id')] = address
                minor = int(properties.get('drm_render_minor', '0'))
                if minor > 0:
                    found.render_minors.setdefault(address, set()).add(minor)
        for memory in sorted(kfd.glob('proc/*/vram_*')):
            match = _MEMORY.fullmatch(memory.name)
            with _unless_unreadable():
                if (
                    match
                    and match['gpu'] in gpus
                    and int(sysfs_tree.text(memory))
                ):
                    found.processes.setdefault(gpus[match['gpu']], []).append(
                        memory.parent.name
                    )
        return found

    def _whole_gpu(self, domain: int, place: int) -> pci_address.PciAddress:
        """The function of a node of KFD, whose place may be a partition's."""
        exact = pci_address.PciAddress(
            domain, place >> 8 & 0xFF, place >> 3 & 0x1F, place & 0x7
        )
        if self._sysfs.names(exact):
            return exact
        return dataclasses.replace(exact, function=0)


class _Kfd(NamedTuple):
    """GPU -> its render nodes' numbers, and processes with memory in it."""

    render_minors: dict[pci_address.PciAddress, set[int]]
    processes: dict[pci_address.PciAddress, list[str]]


@contextlib.contextmanager
def _unless_unreadable() -> Iterator[None]:
    """Lose no more to one file than what it tells."""
    try:
        yield
    except FileNotFoundError:
        # A process has ended.
        return
    except (OSError, ValueError, exceptions.DeviceError) as error:
        # This happens in a container whose devices are restricted.
        LOG.warning(
            'Cannot find out which processes of this host compute '
            'with a GPU of AMD: %s',
            error,
        )
