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

"""The step of the quickstart with a card that is carved for each server.

A third host has a card that is whole for one server, or makes sixteen vGPUs.
As in the other steps, all expectations come from the simulated hardware.
"""

import json

from nova.tests.fixtures import libvirt as fakelibvirt

from nova_accel.model import card_slice
from nova_accel.model import naming
from nova_accel.testing import devices
from rig.loopback import cloud as cloud_module
from rig.quickstart import report as quickstart_report
from rig.quickstart import server as quickstart_server

HOST = 'shapes1'

_CARD = '0000:81:00.0'
_SMALL, _WHOLE = 'vgpu:GRID M60-0B', 'vgpu:GRID M60-8Q'

# Type of mediated devices -> its shape, and how many the card makes of it.
_TYPES = {
    fakelibvirt.NVIDIA_11_VGPU_TYPE: (_SMALL, 16),
    fakelibvirt.NVIDIA_12_VGPU_TYPE: (_WHOLE, 1),
}


class Shapes:
    """The host, and two servers, of which the second needs all of the card."""

    def __init__(
        self, cloud: cloud_module.Cloud, report: quickstart_report.Report
    ) -> None:
        self._cloud = cloud
        self._report = report

    def run(self) -> None:
        """Take all steps; differences are in the report.

        :raises Exception: a step could not be taken at all.
        """
        self._show_card()
        small = self._server('one-small', _SMALL)
        whole = self._server('whole-card', _WHOLE)
        self._report.step('The card is carved for a server')
        small.boot(self._flavor('one-small', _SMALL))
        self._show_devices(_SMALL)
        self._report.step('It is not whole as long as the server has a part')
        flavor = self._flavor('whole-card', _WHOLE)
        fault = whole.fail(flavor)
        self._report.check(
            'the fault names the shape and the reason',
            [],
            [
                name
                for name in (
                    naming.shape_class(_WHOLE),
                    'excluded by others of their cards',
                )
                if name not in fault
            ],
        )
        whole.delete()
        self._report.step('It is whole for the next server')
        small.delete()
        whole.boot(flavor)
        self._show_devices(_WHOLE)
        whole.delete()
        self._report.check(
            'ARQs, attach handles, mediated devices, journal entries and '
            'usages that are left',
            [],
            self._cloud.leftovers(),
        )

    def _show_card(self) -> None:
        self._report.step(
            f'Host {HOST}: a card that takes the shape that a server asks for'
        )
        for mdev_type, (shape, units) in _TYPES.items():
            folder = f'mdev_supported_types__{mdev_type}__'
            self._cloud.sysfs.set(
                _CARD,
                **{
                    f'{folder}name': shape.partition(':')[2],
                    f'{folder}description': f'max_instance={units}',
                },
            )
        line = {'address': _CARD, 'driver': 'mdev', 'shapes': ['vgpu:*']}
        self._cloud.flags(host=HOST)
        self._cloud.start_accelerated_compute(
            HOST,
            devices.pci_info(gpus=1, fpgas=0, qats=0),
            [json.dumps(line)],
        )
        [provider] = self._cloud.accelerator_providers(HOST)
        self._report.rows(
            'resource provider',
            ('class', 'units'),
            sorted(provider['inventory'].items()),
        )
        self._report.check(
            'its inventory',
            {
                naming.CARD_SHARE: card_slice.WHOLE_CARD,
                **{
                    naming.shape_class(shape): units
                    for shape, units in _TYPES.values()
                },
            },
            provider['inventory'],
        )

    def _server(self, name: str, shape: str) -> quickstart_server.Server:
        self._cloud.create_profile(name, [{'accel:shape': shape}])
        return quickstart_server.Server(
            self._cloud, self._report, quickstart_server.Wish(name, ())
        )

    def _flavor(self, profile: str, shape: str) -> str:
        self._report.rows(
            'device profiles',
            ('name', 'group', 'asks for'),
            [(profile, 0, [f'accel:shape={shape}'])],
        )
        return self._cloud.create_accel_flavor(
            profile, name=profile, disk=1, ephemeral=0, memory_mb=512, vcpu=1
        )

    def _show_devices(self, shape: str) -> None:
        self._report.check(
            'the mediated devices of the card',
            [shape],
            [
                _TYPES[mdev_type][0]
                for _card, mdev_type in self._cloud.mdevs(HOST).values()
            ],
        )
