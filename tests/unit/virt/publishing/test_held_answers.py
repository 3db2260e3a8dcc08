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

import dataclasses
import json
import pathlib

import fixtures
import testtools

from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable
from nova_accel.virt.publishing import held_answers
from rig import sample_devices
from unit.model.cards import slices

CARD = pci_address.PciAddress(0, 0x81, 0, 0)
HANDLE = attach_handle.AttachHandle(
    'ce489693-98f0-4f33-946d-560708be108a',
    CARD,
    further_functions=(pci_address.PciAddress(0, 0x81, 0, 1),),
    vgpu_type='558',
    is_managed=False,
    identity='8086:0b30 class 1200',
    slice=slices.WHOLE,
    cleaning=('command', '/bin/wipe'),
    live_migratable=False,
    vgpu_params='enable_uvm=1',
)
DEVICE = sample_devices.fpga(
    0x81,
    [
        hardware.Deployable(
            'card',
            'FPGA',
            frozenset({'CUSTOM_A', 'CUSTOM_B'}),
            (HANDLE, attach_handle.AttachHandle(HANDLE.uuid, CARD, 'i915')),
            is_cleaned=True,
            region='region0',
            fault='full',
        )
    ],
    product_id='0b30',
    product='PAC N3000',
    driver='fpga_dfl',
    numa_node=1,
    pooled=True,
    pooled_by_numa_node=True,
    pooled_by_links=True,
    operator_traits=frozenset({'CUSTOM_A'}),
    fault='hot',
    attributes={'iommu_group': '7'},
    regions=(programmable.Region('region0', 'type', 'shell', 'loaded'),),
    shell=programmable.Region('shell', is_shell=True),
    subsystem='nqn model serial',
)
ANSWER = held_answers.HeldAnswer(DEVICE, '{"driver": "fpga_dfl"}')


class TestHeldAnswers(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'answers.json'
        )

    def reopened(self):
        return held_answers.HeldAnswers(self.path)

    def test_all_of_it_after_a_restart(self):
        self.assertEqual((), self.reopened().read())
        self.reopened().write((ANSWER,))
        (found,) = self.reopened().read()
        self.assertEqual(ANSWER, found)
        ((handle, _other),) = (
            each.handles for each in found.device.deployables
        )
        # These are not compared.
        for field in dataclasses.fields(HANDLE):
            self.assertEqual(
                getattr(HANDLE, field.name), getattr(handle, field.name)
            )

    def test_no_field_of_a_driver_is_forgotten(self):
        """The core adds the others after each look."""
        for value, added in (
            (DEVICE, {'link_sets', 'module_id'}),
            (DEVICE.deployables[0], {'bitstream_id'}),
            (HANDLE, {'mdev_type', 'physical_network'}),
        ):
            self.assertEqual(
                added,
                {
                    field.name
                    for field in dataclasses.fields(value)
                    if getattr(value, field.name) in (field.default, {})
                },
            )

    def test_a_damaged_file(self):
        self.reopened().write((ANSWER,))
        (good,) = json.loads(self.path.read_text())
        for name, wrong in (
            ('address', '../81'),
            ('vendor_id', 'x'),
            ('deployables', [{}]),
            ('operator_traits', ['no trait']),
            ('regions', None),
            ('attributes', []),
        ):
            bad = {**good, 'device': {**good['device'], name: wrong}}
            self.path.write_text(json.dumps([bad]))
            memory = self.reopened()
            self.assertEqual((), memory.read())
            ((_nobody, why),) = memory.damaged()
            self.assertIn(f'device.{name}', why)
