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

import testtools

from rig.quickstart import hardware

MDEV = '9ac4ad62-6bcd-51e7-b1fa-8a2a99f58213'


def kind(*inventories: int) -> hardware.Kind:
    return hardware.Kind('k', 'FPGA', inventories, frozenset())


class TestKind(testtools.TestCase):
    def test_choices(self) -> None:
        for inventories, held, wanted, choices in (
            ((1, 1), 0, 1, 2),
            ((1, 1), 1, 1, 1),
            ((1, 1), 2, 1, 0),
            ((1, 1), 0, 2, 2),
            ((1, 1), 1, 2, 0),
            ((8,), 0, 3, 1),
            ((8,), 7, 1, 1),
            ((8,), 7, 2, 0),
            ((1, 1), 1, 0, 1),
        ):
            self.assertEqual(
                choices,
                kind(*inventories).choices(held, wanted),
                (inventories, held, wanted),
            )


class TestHardware(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.hardware = hardware.Hardware()

    def test_kind_of(self) -> None:
        gpu = (*self.hardware.vgpu.addresses, 'nvidia-11')
        for device, mdevs, name in (
            ('0000:82:00.2', {}, 'FPGA region1'),
            ('0000:83:00.1', {}, 'FPGA region0'),
            ('0000:84:01.0', {}, 'QAT'),
            (MDEV, {MDEV: gpu}, 'vGPU nvidia-11'),
        ):
            self.assertEqual(name, self.hardware.kind_of(device, mdevs))

    def test_what_is_never_handed_out_is_unknown(self) -> None:
        (gpu,) = self.hardware.vgpu.addresses
        for device, mdevs in (
            ('0000:82:00.0', {}),
            (gpu, {}),
            (MDEV, {}),
            (MDEV, {MDEV: (gpu, 'nvidia-12')}),
        ):
            self.assertEqual(
                f'unknown {device}', self.hardware.kind_of(device, mdevs)
            )

    def test_every_function_is_shown(self) -> None:
        self.assertEqual(
            sorted(self.hardware.pci_info.devices),
            sorted(
                'pci_' + address.replace(':', '_').replace('.', '_')
                for address, *_ in self.hardware.rows()
            ),
        )
