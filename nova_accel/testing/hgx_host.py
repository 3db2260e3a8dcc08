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

"""A simulated server with eight GPUs that NVSwitches join.

It is made like servers with NVIDIA's HGX H200 board. It has two NUMA nodes with
two root complexes each. Below each of these is a PCIe switch with two GPUs and
the network card that belongs to them. The four NVSwitches are at a root port
of their own. Addresses and module ids are invented. As on real boards, the
order of the module ids is not the order of the addresses.
"""

import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import json
from typing import Any

from nova.tests.fixtures import libvirt as fakelibvirt

from nova_accel.host import pci_function
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs
from nova_accel.testing import pci_functions

#: The vendor and the product of each kind of function, from pci.ids.
GPU = '10de', '2335'
NIC = '15b3', '1021'
NVSWITCH = '10de', '22a3'
_ROOT_PORT = '8086', '352a'
_SWITCH = '1000', 'c030'

_CLASSES = {
    GPU: '030200',
    NIC: '020700',
    NVSWITCH: '068000',
    _ROOT_PORT: '060400',
    _SWITCH: '060400',
}
_NUMA_NODES = {0x15: 0, 0x59: 0, 0x97: 1, 0xD7: 1}
_NVSWITCH_PORT = 0x97, 0x05, 0xB0

#: Module ids by which each pair of an HGX H100 board, 1 and 3, 2 and 4, 5 and
#: 7, 6 and 8, has one PCIe switch.
PAIRS_ON_SWITCHES = (4, 2, 3, 1, 8, 6, 7, 5)
#: Module ids by which these pairs are of several switches.
PAIRS_ACROSS_SWITCHES = (2, 1, 4, 3, 5, 6, 7, 8)


@dataclasses.dataclass(frozen=True)
class Place:
    """A function, and where it is.

    ``root`` is its root complex, as sysfs names it. ``bridges`` are those
    above it, from the root port down.
    """

    function: pci_function.PciFunction
    root: str
    bridges: tuple[pci_address.PciAddress, ...] = ()


class HgxHost:
    """The functions of the server.

    :param module_ids: of the GPUs, in the order of their addresses
    :ivar places: of all functions, each one after the bridges above it
    :ivar module_ids: address of a GPU -> its module id
    """

    def __init__(
        self, module_ids: tuple[int, ...] = PAIRS_ON_SWITCHES
    ) -> None:
        self.places = tuple(_places())
        self.module_ids: Mapping[pci_address.PciAddress, int] = dict(
            zip(self.gpus, module_ids, strict=True)
        )

    @property
    def gpus(self) -> tuple[pci_address.PciAddress, ...]:
        """The addresses of the GPUs, sorted."""
        return self._of_kind(GPU)

    @property
    def nics(self) -> tuple[pci_address.PciAddress, ...]:
        """The addresses of the network cards, sorted."""
        return self._of_kind(NIC)

    def place(self, address: pci_address.PciAddress) -> Place:
        """Where a function is.

        :raises KeyError: there is no such function.
        """
        return {place.function.address: place for place in self.places}[
            address
        ]

    def install(
        self,
        info: fakelibvirt.HostPCIDevicesInfo,
        sysfs: fake_sysfs.FakeSysfs,
    ) -> None:
        """Make all functions node devices of libvirt, and parts of sysfs."""
        for place in self.places:
            function = place.function
            pci_functions.add(info, function)
            sysfs.place(function.address, place.root, place.bridges)
            sysfs.set(
                function.address,
                vendor=f'0x{function.vendor_id}',
                device=f'0x{function.product_id}',
                numa_node=str(function.numa_node),
                **{'class': f'0x{function.class_code}'},
            )

    def _of_kind(
        self, kind: tuple[str, str]
    ) -> tuple[pci_address.PciAddress, ...]:
        return tuple(
            sorted(
                place.function.address
                for place in self.places
                if (place.function.vendor_id, place.function.product_id)
                == kind
            )
        )


def device_spec(**gpus: Any) -> tuple[str, str]:
    """Lines of ``[nova_accel] device_spec``: the GPUs, and the network cards.

    :param gpus: more keys of the GPUs' line
    """
    return (
        _line(GPU, driver='nvidia_gpu', **gpus),
        _line(
            NIC,
            driver='nic',
            physical_network='rail',
            **{key: gpus[key] for key in ('pool',) if key in gpus},
        ),
    )


def _line(kind: tuple[str, str], **keys: Any) -> str:
    vendor_id, product_id = kind
    return json.dumps(
        {'vendor_id': vendor_id, 'product_id': product_id, **keys}
    )


def _places() -> Iterator[Place]:
    for bus in _NUMA_NODES:
        yield from _switch(bus, 0x01, bus + 1, [GPU, GPU, NIC])
    bus, slot, upstream = _NVSWITCH_PORT
    yield from _switch(bus, slot, upstream, [NVSWITCH] * 4)


def _switch(
    root: int, slot: int, upstream: int, kinds: list[tuple[str, str]]
) -> Iterator[Place]:
    """A root port with a switch that has a port for each of the kinds.

    :param root: the bus of the root complex
    :param slot: that of the root port, on this bus
    :param upstream: the bus of the switch's upstream port; those of its
        downstream ports and of the functions below them follow
    """
    node = _NUMA_NODES[root]
    above: tuple[pci_address.PciAddress, ...] = ()
    for kind, bus, device in (
        (_ROOT_PORT, root, slot),
        (_SWITCH, upstream, 0),
    ):
        port = _place(kind, root, bus, device, node, above)
        above = (*above, port.function.address)
        yield port
    for number, kind in enumerate(kinds):
        port = _place(_SWITCH, root, upstream + 1, number, node, above)
        yield port
        yield _place(
            kind,
            root,
            upstream + 2 + number,
            0,
            node,
            (*above, port.function.address),
        )


def _place(
    kind: tuple[str, str],
    root: int,
    bus: int,
    slot: int,
    node: int,
    bridges: tuple[pci_address.PciAddress, ...],
) -> Place:
    class_code = _CLASSES[kind]
    return Place(
        pci_functions.function(
            f'0000:{bus:02x}:{slot:02x}.0',
            *kind,
            class_code=class_code,
            is_bridge=class_code == '060400',
            numa_node=node,
            upstream=bridges[-1] if bridges else None,
            driver=None if class_code == '060400' else 'vfio-pci',
        ),
        f'pci0000:{root:02x}',
        bridges,
    )
