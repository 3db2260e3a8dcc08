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

"""Devices of a host that tests make up, as discovery would find them."""

from collections.abc import Iterable
from typing import Any

from nova_accel.model import pci_address
from nova_accel.model.devices import hardware

_QAT = {'type': 'QAT', 'product_id': '37c9', 'vendor': 'v', 'product': 'p'}

_VGPU_CARD = {
    'type': 'VGPU',
    'vendor_id': '10de',
    'product_id': '1db4',
    'vendor': 'NVIDIA',
    'product': 'V100',
    'driver': 'mdev',
}


def fpga(
    bus: int, deployables: Iterable[hardware.Deployable] = (), **facts: Any
) -> hardware.Device:
    """An FPGA of Intel at ``0000:<bus>:00.0``, unless the facts differ."""
    return hardware.Device(
        **{
            'name': f'pci_0000_{bus:02x}_00_0',
            'type': 'FPGA',
            'vendor_id': '8086',
            'product_id': '09c4',
            'vendor': 'Intel',
            'product': 'PAC',
            'address': pci_address.PciAddress(0, bus, 0, 0),
            'driver': 'fake',
            'deployables': tuple(deployables),
            **facts,
        }
    )


def qat(
    bus: int, deployables: Iterable[hardware.Deployable] = (), **facts: Any
) -> hardware.Device:
    """As :func:`fpga`, a QAT of a vendor that no catalogue has."""
    return fpga(bus, deployables, **{**_QAT, **facts})


def vgpu_card(
    bus: int, deployables: Iterable[hardware.Deployable] = (), **facts: Any
) -> hardware.Device:
    """As :func:`fpga`, a card of NVIDIA whose units are mediated devices."""
    return fpga(bus, deployables, **{**_VGPU_CARD, **facts})
