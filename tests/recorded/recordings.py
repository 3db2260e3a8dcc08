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

"""Read the recordings of real hosts.

A recording is an archive with ``sys/``, perhaps ``proc/``, and
``libvirt/nodedev.xml``, or a text of a vendor's tool.
"""

import atexit
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import functools
import lzma
import os
import pathlib
import shutil
import tarfile
import tempfile
from typing import Any

import fixtures
from lxml import etree
import yaml

from nova_accel.host import libvirt_devices
from nova_accel.host import sysfs_tree
from nova_accel.testing import libvirt

_CHECKOUT = pathlib.Path(__file__).parents[2]

FOLDER = pathlib.Path(
    os.environ.get(
        'NOVA_ACCEL_RECORDED', _CHECKOUT.parent / 'shared/recorded-hosts'
    )
)


def archives() -> list[pathlib.Path]:
    """The recorded hosts of the folder."""
    return sorted(FOLDER.glob('*/*.tar.xz'))


def texts(directory: str) -> Mapping[str, str]:
    """Name -> recorded text of a tool; the name is that of its file."""
    return {
        path.name.partition('.')[0]: (
            lzma.decompress(path.read_bytes())
            if path.suffix == '.xz'
            else path.read_bytes()
        ).decode()
        for path in sorted((FOLDER / directory).iterdir())
    }


@functools.cache
def answers(name: str) -> Mapping[str, Any]:
    """The answers of a file, by the names of their recordings."""
    path = pathlib.Path(__file__).with_name('answers') / f'{name}.yaml'
    found: Mapping[str, Any] = yaml.safe_load(path.read_text())
    return found


def name_of(archive: pathlib.Path) -> str:
    return archive.name.removesuffix('.tar.xz')


@dataclasses.dataclass(frozen=True)
class Recording:
    """A recorded host."""

    devices: libvirt_devices.HostDevices
    node_devices: libvirt_devices.NodeDevices
    libvirt: 'Libvirt'
    sysfs: sysfs_tree.Sysfs


@functools.cache
def unpacked(archive: pathlib.Path) -> Recording:
    """A recorded host, unpacked until this process ends."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix='recorded-'))
    atexit.register(shutil.rmtree, directory)
    with tarfile.open(archive) as tar:
        tar.extractall(directory, filter=_inside)
    sysfs = sysfs_tree.Sysfs(
        directory / 'sys', _refuse_to_write, directory / 'proc'
    )
    host = Libvirt((directory / 'libvirt/nodedev.xml').read_bytes())
    node_devices = libvirt_devices.NodeDevices(host)
    with fixtures.MonkeyPatch(
        'nova_accel.host.sysfs_tree.of', lambda _host: sysfs
    ):
        devices = _isolated(node_devices.look())
    # The host does not change, and most of the time goes into reading it.
    node_devices.look = lambda: devices  # type: ignore[method-assign]
    return Recording(devices, node_devices, host, sysfs)


class Libvirt:
    """In the place of Nova's ``Host``: recorded node devices, no guests."""

    def __init__(self, xml: bytes) -> None:
        self._devices = {
            str(device.findtext('name')): device
            for device in etree.fromstring(xml)
        }

    def get_hostname(self) -> str:
        return 'host1'

    def list_guests(self, only_running: bool = True) -> list[Any]:
        return []

    def list_pci_devices(self) -> list[str]:
        return list(self._of('pci'))

    def list_mediated_devices(self) -> list[str]:
        return list(self._of('mdev'))

    def device_lookup_by_name(self, name: str) -> 'NodeDevice':
        """:raises libvirtError: there is no such device."""
        if name not in self._devices:
            raise libvirt.no_device(name)
        return NodeDevice(etree.tostring(self._devices[name]).decode())

    def _of(self, kind: str) -> Iterator[str]:
        for name, device in self._devices.items():
            if device.find(f"capability[@type='{kind}']") is not None:
                yield name


@dataclasses.dataclass(frozen=True)
class NodeDevice:
    xml: str

    def XMLDesc(self, _flags: int) -> str:
        return self.xml


def _inside(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
    """Leave out the links to what was not recorded."""
    try:
        return tarfile.data_filter(member, path)
    except tarfile.FilterError:
        return None


def _isolated(
    host: libvirt_devices.HostDevices,
) -> libvirt_devices.HostDevices:
    """A host that was recorded without an IOMMU gets a group per function."""
    if any(each.iommu_group is not None for each in host.functions.values()):
        return host
    return dataclasses.replace(
        host,
        functions={
            address: dataclasses.replace(
                function, iommu_group=number, iommu_members=(address,)
            )
            for number, (address, function) in enumerate(
                host.functions.items()
            )
        },
    )


def _refuse_to_write(address: str, attribute: str, value: str) -> None:
    raise AssertionError(f'{address}: {value!r} is written to {attribute}')
