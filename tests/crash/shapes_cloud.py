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

from nova.tests.fixtures import libvirt as fakelibvirt

from crash import cloud
from crash import imitation
from nova_accel.model import card_slice
from nova_accel.model import naming
from nova_accel.testing import devices
from nova_accel.testing import fake_sysfs

_GPU = '0000:81:00.0'

#: Type of mediated devices -> its name.
_NAMES = {
    fakelibvirt.NVIDIA_11_VGPU_TYPE: imitation.SHAPE.partition(':')[2],
    fakelibvirt.NVIDIA_12_VGPU_TYPE: 'GRID M60-1B',
}

_LINE = {
    'vendor_id': '10de',
    'product_id': '13f2',
    'driver': 'mdev',
    'shapes': ['vgpu:*'],
}


class ShapesCloud(cloud.Cloud):
    device_spec = (json.dumps(_LINE), *devices.DEVICE_SPEC[1:])
    vgpu = naming.shape_class(imitation.SHAPE)

    def _setUp(self) -> None:
        sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        for mdev_type, name in _NAMES.items():
            folder = f'mdev_supported_types__{mdev_type}__'
            most = devices.VGPU_TYPES[mdev_type]
            sysfs.set(
                _GPU,
                **{
                    f'{folder}name': name,
                    f'{folder}description': f'max_instance={most}',
                },
            )
        super()._setUp()

    def stale_allocations(self) -> list[str]:
        """Also units without their shares of a card, and the reverse."""
        share = (
            card_slice.WHOLE_CARD
            // devices.VGPU_TYPES[fakelibvirt.NVIDIA_11_VGPU_TYPE]
        )
        return super().stale_allocations() + [
            f'{consumer} has {resources} of {rp_uuid} in Placement'
            for consumer, hosts in self.nova.allocations.items()
            for providers in hosts.values()
            for rp_uuid, allocation in providers.items()
            if (resources := allocation['resources']).get(naming.CARD_SHARE, 0)
            != share * resources.get(self.vgpu, 0)
        ]
