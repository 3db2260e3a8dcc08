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
import time

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.fpga import programming_record
from nova_accel.virt.fpga.regions import region_target
from unit.virt.fpga import fpga_card

ONE, TWO = 'instance-1', 'instance-2'


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
            self.assertEqual(
                target.program(file, time.monotonic() + 30),
                self.card.really_loaded(target.region.name),
            )
            self.assertEqual(target.loaded(), target.loaded_if_any())

    def test_its_name(self):
        self.assertEqual('region0 of 0000:81:00.0', str(self.target()))


class TestUsers(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.host = fpga_card.Host(self.useFixture(fixtures.TempDir()).path)
        self.users = region_target.Users(
            self.host, self.host.guests, lambda uuid: self.servers[uuid]
        )
        self.servers = {
            ONE: programming_record.Holder('project', is_stopped=False)
        }

    def target_of(self, name, is_shell=False):
        return region_target.of_deployable(
            self.host.regions.targets(is_shell),
            fpga_card.NODE,
            naming.derived_uuid(
                fpga_card.NODE, fpga_card.DEVICE.name, 'deployable', name
            ),
        )

    def refused(
        self, name='region0', instance=None, is_stopped=False, is_shell=False
    ):
        error = self.assertRaises(
            exceptions.Conflict,
            self.users.check_free,
            self.target_of(name, is_shell),
            programming_record.Asker('project', 'user', instance),
            is_stopped,
        )
        # The owner of a server reads of neither the card nor its other users.
        address = str(fpga_card.ADDRESS)
        self.assertIn(address, str(error))
        for secret in (address, 'another', 'project', 'region0'):
            self.assertNotIn(secret, error.public)
        return str(error)

    def test_regions_of_deployables(self):
        for name, region in (
            ('region0', 'region0'),
            ('region1_function1', 'region1'),
        ):
            self.assertEqual(region, self.target_of(name).region.name)
            self.assertTrue(self.target_of(name, True).region.is_shell)
        self.assertRaises(exceptions.NotFound, self.target_of, 'region7')

    def test_regions_of_handles(self):
        first, *_others, last = fpga_card.DEVICE.handles
        self.assertEqual('region0', self.target_with(first).region.name)
        self.assertEqual('region1', self.target_with(last).region.name)
        self.host.regions.overlaid([])
        self.assertRaises(exceptions.NotFound, self.target_with, first)

    def target_with(self, handle):
        return region_target.of_handle(self.host.regions.targets(), handle)

    def test_a_region_that_nobody_has(self):
        self.host.held_by[fpga_card.handle_uuid('region1_function0')] = ONE
        self.users.check_free(
            self.target_of('region0'), programming_record.Asker(), False
        )

    def test_one_that_another_has(self):
        for name in (fpga_card.handle_uuid('region0'), '0000:81:00.1'):
            self.host.held_by = {name: ONE}
            for instance in (None, TWO):
                self.assertIn(
                    'a server has region0',
                    self.refused(instance=instance, is_stopped=True),
                )

    def check_own(self, is_stopped):
        self.users.check_free(
            self.target_of('region0'),
            programming_record.Asker('project', 'user', ONE),
            is_stopped,
        )

    def test_ones_own(self):
        self.host.held_by[fpga_card.handle_uuid('region0')] = ONE
        self.assertIn('stop the server first', self.refused(instance=ONE))
        self.servers[ONE] = programming_record.Holder(
            'project', is_stopped=True
        )
        self.check_own(is_stopped=False)
        self.servers[ONE] = programming_record.Holder(
            'project', is_stopped=False
        )
        self.check_own(is_stopped=True)
        self.host.card.programs_under_guest = True
        self.check_own(is_stopped=False)
        self.assertIn(
            'a server has region0',
            self.refused(instance=ONE, is_stopped=True, is_shell=True),
        )

    def test_ones_own_that_somebody_has_started_by_hand(self):
        """Nova thinks that it is stopped."""
        self.host.held_by[fpga_card.handle_uuid('region0')] = ONE
        self.servers[ONE] = programming_record.Holder(
            'project', is_stopped=True
        )
        self.host.guests.live = {ONE}
        self.assertIn('stop the server first', self.refused(instance=ONE))
        self.host.guests.live = {TWO}
        self.check_own(is_stopped=False)

    def test_what_nova_says_is_anothers(self):
        """Whatever the API, or who is on the message bus, says."""
        self.host.held_by[fpga_card.handle_uuid('region0')] = ONE
        self.servers[ONE] = programming_record.Holder(
            'another', is_stopped=True
        )
        for under_guest in (False, True):
            self.host.card.programs_under_guest = under_guest
            self.assertIn('another project', self.refused(instance=ONE))
