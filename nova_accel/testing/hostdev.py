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

"""The devices that ``<hostdev>`` elements of a domain stand for."""

from lxml import etree

from nova_accel.model import pci_address


def identity(element: etree._Element) -> str:
    """The PCI address (``0000:81:00.1``) or the mediated device's uuid."""
    address = element.find('source/address')
    if element.get('type') == 'mdev':
        return str(address.get('uuid'))
    return str(
        pci_address.PciAddress(
            *(
                int(address.get(part), 16)
                for part in ('domain', 'bus', 'slot', 'function')
            )
        )
    )


def text(element: etree._Element) -> str:
    """The element on one line."""
    return ''.join(
        line.strip()
        for line in etree.tostring(element, encoding='unicode').splitlines()
    )
