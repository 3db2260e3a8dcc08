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

"""Cards of NVIDIA that can be divided, as libvirt, sysfs and tools show them.

Their virtual functions come and go, which libvirt notices.
"""

import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Mapping
import dataclasses

from nova.tests.fixtures import libvirt as fakelibvirt

from nova_accel.testing import fake_sysfs
from nova_accel.testing import nvidia_cards
from nova_accel.testing import nvidia_smi
from nova_accel.testing import pci_functions

_H100 = '2330'


class DividedCards(nvidia_smi.NvidiaSmi):
    """H100 cards on simulated hosts, which share a sysfs.

    :param places: address of a card -> the PCI functions of its host
    :param count: how many virtual functions each card has
    """

    def __init__(
        self,
        sysfs: fake_sysfs.FakeSysfs,
        places: Mapping[str, fakelibvirt.HostPCIDevicesInfo],
        count: int,
    ) -> None:
        self._places = places
        self._functions = {
            address: pci_functions.virtual_functions(
                pci_functions.function(
                    address, '10de', _H100, max_virtual_functions=count
                ),
                count,
                _H100,
            )
            for address in places
        }
        super().__init__(
            sysfs,
            [
                nvidia_cards.Card(
                    address, [str(part.address) for part in parts]
                )
                for address, (_card, *parts) in self._functions.items()
            ],
        )

    def _setUp(self) -> None:
        for functions in self._functions.values():
            for each in functions:
                self.sysfs.identify(each.address, '10de', _H100)
        super()._setUp()

    def _show(self, card: nvidia_cards.Card) -> None:
        super()._show(card)
        info = self._places[card.address]
        function, *parts = self._functions[card.address]
        if card.are_functions:
            pci_functions.add(info, function, *parts)
            return
        pci_functions.add(
            info, dataclasses.replace(function, virtual_functions=())
        )
        for each in parts:
            info.devices.pop(each.name, None)
