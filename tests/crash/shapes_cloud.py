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

"""The cloud of :mod:`crash.cloud`, whose GPUs are cards of many shapes."""

import json
from typing import Any

from nova.tests.fixtures import libvirt as fakelibvirt

from crash import cloud
from crash import imitation
from nova_accel.model import naming
from nova_accel.model.cards import card_slice
from nova_accel.testing import devices
from nova_accel.testing import divided_cards
from nova_accel.testing import fake_sysfs

_VGPU, _WHOLE, _INSTANCE = imitation.SHAPES

_GPU = '0000:81:00.0'

#: Type of mediated devices -> its name.
_NAMES = {
    fakelibvirt.NVIDIA_11_VGPU_TYPE: _VGPU.partition(':')[2],
    fakelibvirt.NVIDIA_12_VGPU_TYPE: 'GRID M60-1B',
}

#: Host -> its card that can be divided. All hosts here have one sysfs.
_DIVIDED = {'host1': '0000:c1:00.0', 'host2': '0000:d1:00.0'}


def _spec(**line: Any) -> tuple[str, ...]:
    return (json.dumps(line), *devices.DEVICE_SPEC[1:])


class ShapesCloud(cloud.Cloud):
    """Its cards make mediated devices.

    :cvar share: what a unit takes of its card
    """

    device_spec = _spec(
        vendor_id='10de', product_id='13f2', driver='mdev', shapes=['vgpu:*']
    )
    vgpu = naming.shape_class(_VGPU)
    share = (
        card_slice.WHOLE_CARD
        // devices.VGPU_TYPES[fakelibvirt.NVIDIA_11_VGPU_TYPE]
    )

    def _setUp(self) -> None:
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        self._make_cards()
        super()._setUp()

    def _make_cards(self) -> None:
        for mdev_type, name in _NAMES.items():
            folder = f'mdev_supported_types__{mdev_type}__'
            most = devices.VGPU_TYPES[mdev_type]
            self.sysfs.set(
                _GPU,
                **{
                    f'{folder}name': name,
                    f'{folder}description': f'max_instance={most}',
                },
            )

    def stale_allocations(self) -> list[str]:
        """Also units without their shares of a card, and the reverse."""
        return super().stale_allocations() + [
            f'{consumer} has {resources} of {rp_uuid} in Placement'
            for consumer, hosts in self.nova.allocations.items()
            for providers in hosts.values()
            for rp_uuid, allocation in providers.items()
            if (resources := allocation['resources']).get(naming.CARD_SHARE, 0)
            != self.share * resources.get(self.vgpu, 0)
        ]


class WholeCloud(ShapesCloud):
    """Its cards are divided, or a guest's as a whole, as they are here."""

    device_spec = _spec(
        vendor_id='10de',
        product_id='2330',
        driver='nvidia_vfio',
        shapes=[_WHOLE, _INSTANCE],
    )
    vgpu = naming.shape_class(_WHOLE)
    share = card_slice.WHOLE_CARD

    def _make_cards(self) -> None:
        self._infos = {
            host: devices.pci_info(gpus=0, fpgas=2, qats=0, bus=0x82)
            for host in _DIVIDED
        }
        self._cards = self.useFixture(
            divided_cards.DividedCards(
                self.sysfs,
                {_DIVIDED[host]: info for host, info in self._infos.items()},
                8,
            )
        ).cards.values()

    def hardware(self, host: str) -> fakelibvirt.HostPCIDevicesInfo:
        return self._infos[host]

    def leftovers(self) -> list[str]:
        """Also what is left on the cards."""
        return super().leftovers() + [
            f'{card.address} has {card.vgpus}, {card.instances}, functions: '
            f'{card.are_functions}'
            for card in self._cards
            if card.vgpus or card.instances or not card.are_functions
        ]


class InstanceCloud(WholeCloud):
    """Its cards are divided into GPU instances here."""

    vgpu = naming.shape_class(_INSTANCE)
    share = card_slice.WHOLE_CARD // 2
