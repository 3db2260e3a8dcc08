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
import pathlib

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.virt.fpga.regions import region_target
from unit.virt.fpga import fpga_card


class TestTarget(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.card = fpga_card.CardDriver(
            self.useFixture(fixtures.TempDir()).path
        )

    def target(self, index=0, device=fpga_card.DEVICE, **properties):
        return region_target.Target(
            device,
            dataclasses.replace(device.regions[index], **properties),
            self.card,
        )

    def shell(self):
        return region_target.Target(
            fpga_card.DEVICE, fpga_card.DEVICE.shell, self.card
        )

    def test_what_is_handed_out_of_it(self):
        for target, names in (
            (self.target(), ['region0']),
            (self.target(1), ['region1_function0', 'region1_function1']),
            (
                self.shell(),
                ['region0', 'region1_function0', 'region1_function1'],
            ),
        ):
            self.assertEqual(
                names, [found.name for found in target.deployables]
            )

    def test_whether_it_tells_what_it_holds(self):
        self.assertTrue(self.target().tells_contents)
        self.card.tells_contents = False
        self.assertFalse(self.target().tells_contents)
        self.assertTrue(self.target(contents_attribute='id').tells_contents)
        self.assertTrue(self.shell().tells_contents)

    def test_what_the_operator_cleans_it_with(self):
        self.assertIsNone(self.target().blank)
        self.assertEqual(
            'image', self.target(device=self.cleaned('program', 'image')).blank
        )
        self.assertIsNone(self.target(device=self.cleaned('reset')).blank)

    def cleaned(self, *cleaning):
        return dataclasses.replace(
            fpga_card.DEVICE,
            deployables=tuple(
                dataclasses.replace(
                    deployable,
                    handles=tuple(
                        dataclasses.replace(handle, cleaning=cleaning)
                        for handle in deployable.handles
                    ),
                )
                for deployable in fpga_card.DEVICE.deployables
            ),
        )

    def test_what_it_says(self):
        for target in (self.target(), self.shell()):
            self.assertRaises(exceptions.DeviceError, target.loaded)
            self.assertIsNone(target.loaded_if_any())
            file = pathlib.Path(self.card.directory) / 'bitstream'
            file.write_text('bits')
            target.program(file, 30)
            self.assertEqual(
                self.card.really_loaded(target.region.name), target.loaded()
            )
            self.assertEqual(target.loaded(), target.loaded_if_any())

    def test_its_name(self):
        self.assertEqual('region0 of 0000:81:00.0', str(self.target()))
