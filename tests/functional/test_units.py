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

import json

from functional import base
from nova_accel.testing import devices
from nova_accel.testing import hostdev
from nova_accel.testing import pci_functions

GPU = '0000:81:00.0', '0000:81:00.1'
CARD = '0000:3d:00.0'
DEVICE_SPEC = (
    json.dumps(
        {'address': GPU[0], 'driver': 'pci', 'type': 'GPU', 'unit': 'slot'}
    ),
    json.dumps(
        {'address': CARD, 'driver': 'pci', 'type': 'QAT', 'sriov_numvfs': 2}
    ),
)


class TestUnits(base.AcceleratorTestCase):
    """What is handed over together, and what has to be made first."""

    hosts = ()

    def setUp(self):
        super().setUp()
        self.info = devices.pci_info(gpus=0, fpgas=0, qats=0)
        pci_functions.add(
            self.info,
            *(
                pci_functions.function(
                    address,
                    '10de',
                    '2235',
                    iommu_group=1,
                    with_functions=[
                        other for other in GPU if other != address
                    ],
                )
                for address in GPU
            ),
            pci_functions.function(
                CARD, '8086', '37c8', max_virtual_functions=16
            ),
        )
        pci_functions.sriov(self.info, self.sysfs, {CARD: '37c9'})
        self.start_accelerated_compute(
            'host1', pci_info=self.info, device_spec=DEVICE_SPEC
        )

    def functions(self, server):
        return [hostdev.identity(element) for element in self.hostdevs(server)]

    def test_functions_of_a_slot(self):
        server = self.boot_with({'resources:PGPU': '1'})
        self.assertEqual(list(GPU), self.functions(server))
        self.delete(server)

    def test_virtual_functions_are_there_before_servers(self):
        server = self.boot_with({'resources:CUSTOM_QAT': '2'})
        self.assertEqual(
            ['0000:3d:00.1', '0000:3d:00.2'], sorted(self.functions(server))
        )
        self.delete(server)
