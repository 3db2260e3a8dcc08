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

"""How NVIDIA's Data Center GPU Manager (DCGM) names a device.

Its exporter for Prometheus has had the label ``pci_bus_id`` since 3.3.7-3.5.0,
for example ``00000000:8D:00.0``: the domain has eight digits, and the letters
are large. That is the form of NVML's ``nvmlPciInfo_t.busId``.
"""

from nova_accel import exceptions
from nova_accel.model import pci_address


def bus_id(address: str) -> str:
    """The address of a PCI function in DCGM's form.

    :param address: as sysfs has it, ``0000:8d:00.0``
    :returns: empty if it is no address of a PCI function
    """
    try:
        found = pci_address.PciAddress.parse(address)
    except exceptions.InvalidName:
        return ''
    return (
        f'{found.domain:08X}:{found.bus:02X}:{found.slot:02X}.{found.function}'
    )
