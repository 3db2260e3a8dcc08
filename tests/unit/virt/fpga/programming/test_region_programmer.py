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
import threading
import time

import fixtures

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from nova_accel.model.fpga import region_contents
from unit.virt.fpga import fpga_card
from unit.virt.fpga import programming_case

ONE, TWO = programming_case.ONE, programming_case.TWO


class TestServers(programming_case.ProgrammingTestCase):
    def test_a_server_gets_what_its_profile_asks_for(self):
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.holds(self.image)
        self.assertEqual(
            [(self.image, False, None), (self.image, True, None)], self.steps()
        )
        begun, ended = self.host.records
        self.assertEqual(begun.uuid, ended.uuid)
        self.assertEqual(
            programming_record.Asker('project', 'user', ONE), ended.asker
        )
        self.assertEqual(
            naming.derived_uuid(fpga_card.NODE, fpga_card.DEVICE.name),
            ended.device_uuid,
        )
        self.assertEqual(1, self.host.changes)
        self.assertEqual('user', self.host.bitstreams.asked[0][1])

    def test_a_bitstream_that_only_its_user_may_download(self):
        """The service's own user needs no right to projects' images."""
        self.host.bitstreams.of_users.add(self.image)
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.holds(self.image)

    def test_by_a_function(self):
        for key, value in (
            ('function_id', fpga_card.FUNCTION),
            ('function_name', 'matmul'),
        ):
            self.host.boot(
                key,
                fpga_card.an_arq(
                    'region0' if key == 'function_id' else 'region1_function0',
                    **{f'accel:{key}': value},
                ),
            )
        self.holds(self.image)
        self.holds(self.image, 'region1')

    def test_by_the_image_of_the_server(self):
        self.host.boot(
            ONE, fpga_card.an_arq(), image={'accel:bitstream_id': self.image}
        )
        self.holds(self.image)

    def test_the_second_time_nothing_is_done(self):
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.host.held_by.clear()
        self.restarted()
        self.host.boot(TWO, fpga_card.wants(self.image))
        self.assertEqual(
            (0, [], []),
            (
                self.host.card.programmed,
                self.host.bitstreams.downloads,
                self.host.records,
            ),
        )

    def test_what_it_holds_is_the_operators_by_now(self):
        image, data = self.host.bitstreams.images[self.image]
        self.host.bitstreams.images[self.image] = (
            dataclasses.replace(image, owner='project'),
            data,
        )
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.assertEqual('project', self.host.known().contents.owner)
        self.host.held_by.clear()
        self.host.bitstreams.images[self.image] = image, data
        self.host.boot(TWO, fpga_card.wants(self.image))
        self.assertIsNone(self.host.known().contents.owner)
        self.assertEqual(
            (1, 2), (self.host.card.programmed, self.host.changes)
        )

    def test_two_servers_share_what_a_region_holds(self):
        self.host.boot(ONE, fpga_card.wants(self.image, 'region1_function0'))
        self.host.boot(TWO, fpga_card.wants(self.image, 'region1_function1'))
        self.assertEqual(1, self.host.card.programmed)

    def test_what_another_server_has_is_never_programmed(self):
        self.host.boot(ONE, fpga_card.wants(self.image, 'region1_function0'))
        self.refused(
            exceptions.Conflict,
            'a server has region1_function0',
            TWO,
            fpga_card.wants(self.other, 'region1_function1'),
        )
        self.holds(self.image, 'region1')

    def test_nor_what_a_guest_has_that_is_known_by_its_address_alone(self):
        self.host.held_by['0000:81:00.1'] = TWO
        self.refused(
            exceptions.Conflict,
            'a server has',
            ONE,
            fpga_card.wants(self.image),
        )
        self.assertEqual(0, self.host.card.programmed)

    def test_two_things_of_one_region(self):
        self.refused(
            exceptions.Conflict,
            'at a time',
            ONE,
            fpga_card.wants(self.image, 'region1_function0'),
            fpga_card.wants(self.other, 'region1_function1'),
        )

    def test_a_device_without_regions(self):
        arq = fpga_card.wants(self.image)
        self.host.regions.overlaid([])
        self.refused(exceptions.DeviceError, 'no region', ONE, arq)

    def test_nothing_is_asked_and_nothing_was_programmed(self):
        self.host.boot(ONE, fpga_card.an_arq())
        self.assertEqual(0, self.host.card.programmed)

    def test_a_function_that_is_there(self):
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.host.held_by.clear()
        by_trait = fpga_card.an_arq(
            **{f'trait:{fpga_card.FUNCTION_TRAIT}': 'required'}
        )
        self.host.boot(TWO, by_trait)
        self.host.held_by.clear()
        self.host.boot(ONE, fpga_card.wants(self.other))
        self.host.held_by.clear()
        self.refused(exceptions.DeviceError, 'no more', TWO, by_trait)

    def test_a_hard_reboot_asks_nobody(self):
        arq = fpga_card.an_arq(**{'accel:function_name': 'matmul'})
        self.host.boot(ONE, arq)
        self.restarted()
        self.host.bitstreams.images = {}
        self.host.reboot(ONE, arq)
        self.assertEqual([], self.host.bitstreams.asked)

    def test_after_a_boot_of_the_host_it_is_programmed_again(self):
        plain, asking = (
            fpga_card.an_arq(),
            fpga_card.wants(self.image, 'region1_function0'),
        )
        self.host.boot(TWO, fpga_card.wants(self.other))
        self.host.held_by.clear()
        self.host.boot(ONE, plain, asking)
        self.lose_power()
        self.assertIsNone(self.host.known().contents)
        self.assertIsNone(self.host.known().fault)
        self.host.reboot(ONE, plain, asking)
        self.holds(self.other)
        self.holds(self.image, 'region1')
        # Neither was Glance asked, which may be away, or have lost them.
        self.assertEqual([], self.host.bitstreams.downloads)
        self.assertEqual([], self.host.bitstreams.asked)

    def test_what_the_cache_has_lost_meanwhile_is_fetched_again(self):
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.lose_power()
        for path in self.host.bitstreams.directory.iterdir():
            path.unlink()
        self.host.reboot(ONE, fpga_card.wants(self.image))
        self.holds(self.image)
        self.assertEqual([self.image], self.host.bitstreams.downloads)
        self.assertEqual(
            {'service'},
            {context for _wanted, context in self.host.bitstreams.asked},
        )

    def test_another_server_is_not_served_from_the_cache_alone(self):
        """It may not see the image, or not any more."""
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.host.held_by.clear()
        self.lose_power()
        self.host.bitstreams.images = {}
        self.refused(
            exceptions.BitstreamNotFound,
            '0 are',
            TWO,
            fpga_card.wants(self.image),
        )
        self.assertEqual(0, self.host.card.programmed)

    def test_a_device_that_does_not_tell_is_believed_until_the_host_boots(
        self,
    ):
        self.host.card.tells_contents = False
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.host.held_by.clear()
        self.restarted()
        self.host.boot(TWO, fpga_card.wants(self.image))
        self.assertEqual(0, self.host.card.programmed)
        self.host.held_by.clear()
        self.restarted(boot='boot2')
        self.assertIsNone(self.host.known().contents)
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.assertEqual(1, self.host.card.programmed)

    def test_a_server_that_was_never_given_it_is_not_served_anothers(self):
        # Killed between the binding and the programming.
        self.host.boot(TWO, fpga_card.wants(self.other))
        self.host.held_by.clear()
        self.host.reboot(ONE, fpga_card.wants(self.image))
        self.holds(self.image)

    def test_nor_is_the_destination_of_a_live_migration(self):
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.host.boot(ONE, fpga_card.wants(self.other))
        self.host.programmer.ready(
            [fpga_card.wants(self.image)],
            programming_record.Asker(instance_uuid=ONE),
            {},
            is_new=True,
        )
        self.holds(self.image)


class TestInTime(programming_case.ProgrammingTestCase):
    def setUp(self):
        super().setUp()
        self.restarted(timeout_s=1)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.virt.fpga.programming.programming_job._GRACE_S', 5
            )
        )
        self.host.card.may_end = threading.Event()
        self.asker = programming_record.Asker(instance_uuid=ONE)
        self.arqs = [fpga_card.wants(self.image)]

    def test_a_device_that_takes_too_long(self):
        self.refused(exceptions.DeviceError, 'too long', ONE, *self.arqs)
        self.is_bad('too long')

    def test_a_driver_that_does_not_end(self):
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.virt.fpga.programming.programming_job._GRACE_S', 0
            )
        )
        self.host.card.faults = [None]
        wait = self.host.card.may_end.wait
        self.host.card.may_end.wait = lambda timeout_s: wait(5)
        self.refused(exceptions.DeviceError, 'in time', ONE, *self.arqs)
        self.host.card.may_end.set()

    def test_a_card_is_awaited_no_longer(self):
        wait = self.host.card.may_end.wait
        self.host.card.may_end.wait = lambda timeout_s: wait(3)
        self.host.programmer.start(self.arqs, self.asker, {}, None)
        while not self.host.card.programmed:
            time.sleep(0.01)
        self.refused(
            exceptions.DeviceError,
            'no time left',
            TWO,
            fpga_card.wants(self.image, 'region1_function0'),
        )
        # It has not been touched.
        self.assertIsNone(self.host.known('region1').fault)

    def test_what_was_begun_goes_on_meanwhile(self):
        self.restarted(timeout_s=30)
        self.host.card.may_end = threading.Event()
        self.host.programmer.start(self.arqs, self.asker, {}, None)
        self.host.card.may_end.set()
        self.host.programmer.ready(self.arqs, self.asker, {})
        self.holds(self.image)
        self.assertEqual({}, self.host.programmer._begun)

    def test_a_server_that_is_given_up(self):
        self.restarted(timeout_s=30)
        self.host.card.may_end = threading.Event()
        self.host.programmer.start(
            [
                *self.arqs,
                fpga_card.wants(self.other, 'region1_function0'),
            ],
            self.asker,
            {},
            None,
        )
        self.host.history.is_begun.wait(10)
        threading.Timer(0.1, self.host.card.may_end.set).start()
        self.host.programmer.abandon(TWO)
        self.assertFalse(self.host.card.may_end.is_set())
        self.host.programmer.abandon(ONE)
        # Of one card one is programmed at a time, here the one or the other.
        self.assertEqual(1, self.host.card.programmed)
        self.assertTrue(self.host.card.may_end.is_set())


class TestWhoeverAsks(programming_case.ProgrammingTestCase):
    def program(
        self, asker=programming_case.STRANGER, wanted=None, name='region0'
    ):
        return self.host.programmer.program(
            naming.derived_uuid(
                fpga_card.NODE, fpga_card.DEVICE.name, 'deployable', name
            ),
            wanted or fpga_bitstream.WantedBitstream(self.image),
            asker,
            'user',
        )

    def test_an_idle_region(self):
        contents = self.program()
        self.assertEqual(self.image, contents.bitstream_id)
        self.assertEqual(contents, self.program())
        self.assertEqual(1, self.host.card.programmed)
        self.holds(self.image)

    def test_no_such_deployable(self):
        error = self.assertRaises(
            exceptions.NotFound, self.program, name='region7'
        )
        self.assertNotIsInstance(error, exceptions.BitstreamNotFound)
        self.assertRaises(
            exceptions.BitstreamNotFound,
            self.program,
            wanted=fpga_bitstream.WantedBitstream(fpga_card.NODE),
        )

    def test_one_that_a_server_has(self):
        self.host.boot(ONE, fpga_card.wants(self.other))
        self.assertRaises(exceptions.Conflict, self.program)
        owner = programming_record.Asker('project', 'user', ONE)
        error = self.assertRaises(exceptions.Conflict, self.program, owner)
        self.assertIn('stop the server first', str(error))
        self.holds(self.other)
        self.host.card.programs_under_guest = True
        self.assertRaises(exceptions.Conflict, self.program)
        self.program(owner)
        self.holds(self.image)
        # Its owner's last word.
        self.host.reboot(ONE, fpga_card.wants(self.other))
        self.holds(self.image)

    def test_that_of_a_server_that_is_stopped(self):
        owner = programming_record.Asker('project', 'user', ONE)
        self.host.boot(ONE, fpga_card.wants(self.other))
        self.host.servers[ONE] = programming_record.Holder('project', True)
        self.assertRaises(exceptions.Conflict, self.program)
        self.program(owner)
        self.holds(self.image)
        # It is started again, and after a boot of the host.
        self.host.reboot(ONE, fpga_card.wants(self.other))
        self.holds(self.image)
        self.lose_power()
        self.host.reboot(ONE, fpga_card.wants(self.other))
        self.holds(self.image)

    def test_a_server_that_is_started_meanwhile(self):
        """Nova has noted that when the host has noted what it does."""
        owner = programming_record.Asker('project', 'user', ONE)
        self.host.boot(ONE, fpga_card.wants(self.other))
        self.host.servers[ONE] = programming_record.Holder('project', True)
        write = self.host.journal.write

        def start(entry):
            write(entry)
            self.host.servers[ONE] = programming_record.Holder(
                'project', False
            )

        self.host.journal.write = start
        self.assertRaises(exceptions.Conflict, self.program, owner)
        self.holds(self.other)
        self.assertEqual(1, self.host.card.programmed)

    def test_one_that_is_started_later_waits(self):
        owner = programming_record.Asker('project', 'user', ONE)
        self.host.boot(ONE, fpga_card.an_arq())
        self.host.servers[ONE] = programming_record.Holder('project', True)
        found = []
        program = self.host.card.program

        def touched(*args):
            starts = threading.Thread(
                target=lambda: (
                    self.host.reboot(ONE, fpga_card.an_arq()),
                    found.append(self.host.card.really_loaded()),
                )
            )
            starts.start()
            self.addCleanup(starts.join)
            starts.join(0.2)
            self.assertEqual([], found)
            program(*args)

        self.host.card.program = touched
        self.program(owner)
        self.doCleanups()
        self.assertEqual([self.host.bitstreams.sha256(self.image)], found)

    def test_a_failure(self):
        self.host.card.faults = [exceptions.DeviceError('CRC error')]
        self.assertRaises(exceptions.DeviceError, self.program)
        self.is_bad('CRC error')
        self.program()
        self.holds(self.image)


class TestShell(programming_case.ProgrammingTestCase):
    ALLOWED = programming_record.ShellLoading.ALLOWED

    def setUp(self):
        super().setUp()
        self.shell = self.a_shell('a shell')

    def a_shell(self, shell_id):
        return self.host.bitstreams.add(shell_id, provides_shell_id=shell_id)

    def load(
        self,
        shell=None,
        name='region0',
        asker=programming_case.STRANGER,
        shell_loading=ALLOWED,
    ):
        return self.host.programmer.program(
            naming.derived_uuid(
                fpga_card.NODE, fpga_card.DEVICE.name, 'deployable', name
            ),
            fpga_bitstream.WantedBitstream(shell or self.shell),
            asker,
            'user',
            shell_loading,
        )

    def known_shell(self):
        (target,) = self.host.regions.targets(is_shell=True)
        return self.host.regions.known(target)

    def test_an_idle_card(self):
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.host.held_by.clear()
        contents = self.load()
        self.assertEqual(
            (self.shell, True), (contents.bitstream_id, contents.is_shell)
        )
        self.assertEqual('a shell', self.host.card.really_loaded('shell'))
        self.assertEqual(contents, self.known_shell().contents)
        self.assertEqual(
            self.shell, self.host.published().attributes['shell bitstream']
        )
        # What its regions held is gone, and none is bad for it.
        self.assertEqual(
            [(None, None)] * 3,
            [
                (each.bitstream_id, each.fault)
                for each in self.host.published().deployables
            ],
        )
        self.host.boot(TWO, fpga_card.wants(self.image))
        self.holds(self.image)
        self.assertEqual('shell', self.host.records[2].region)

    def test_one_that_it_has(self):
        before = self.load()
        self.assertEqual(before, self.load(name='region1_function0'))
        self.restarted()
        self.assertEqual(before, self.load())
        self.assertEqual(0, self.host.card.programmed)

    def test_who_may_not(self):
        self.assertRaises(
            exceptions.NotAllowed,
            self.load,
            shell_loading=programming_record.ShellLoading.FORBIDDEN,
        )
        self.assertRaises(
            exceptions.Conflict,
            self.load,
            shell_loading=programming_record.ShellLoading.IN_USE,
        )
        self.assertEqual(0, self.host.card.programmed)

    def test_any_guest_of_the_card_forbids_it(self):
        self.host.card.programs_under_guest = True
        self.host.boot(ONE, fpga_card.wants(self.image, 'region1_function1'))
        for asker in (
            programming_case.STRANGER,
            programming_record.Asker('project', 'user', ONE),
        ):
            error = self.assertRaises(
                exceptions.Conflict, self.load, asker=asker
            )
            self.assertIn('a server has region1_function1', str(error))
        self.holds(self.image, 'region1')

    def test_a_driver_that_cannot(self):
        self.host.regions.overlaid(
            [dataclasses.replace(fpga_card.DEVICE, shell=None)]
        )
        self.assertRaises(exceptions.NotFound, self.load)

    def fails(self, fault, why):
        self.host.card.faults = [fault]
        self.assertRaises(exceptions.DeviceError, self.load)
        # It is not tried again.
        self.assertEqual([], self.host.card.faults)
        self.is_bad_as_a_whole(why)

    def is_bad_as_a_whole(self, why):
        self.assertIn(why, self.known_shell().fault)
        self.assertIn(why, self.host.published().fault)
        self.is_bad(why)
        before = self.host.card.programmed
        for arq in (fpga_card.an_arq(), fpga_card.wants(self.image)):
            self.refused(exceptions.DeviceError, why, TWO, arq)
        self.assertEqual(before, self.host.card.programmed)
        self.load()
        self.assertIsNone(self.host.published().fault)
        self.host.boot(TWO, fpga_card.wants(self.image))
        self.holds(self.image)

    def test_a_failure(self):
        self.host.card.repeats_programming = True
        self.fails(exceptions.DeviceError('CRC error'), 'CRC error')

    def test_the_card_says_that_it_is_another(self):
        shell = self.host.bitstreams.add(
            'something', provides_shell_id='a shell'
        )
        error = self.assertRaises(exceptions.DeviceError, self.load, shell)
        self.assertIn('it is something, not a shell', str(error))
        self.is_bad_as_a_whole('not a shell')

    def test_nova_compute_dies(self):
        class Died(BaseException):
            pass

        self.host.boot(ONE, fpga_card.wants(self.image))
        self.host.held_by.clear()
        self.host.card.faults = [Died()]
        self.assertRaises(Died, self.load)
        self.restarted()
        self.host.regions.recover()
        self.is_bad_as_a_whole('died while')

    def test_the_host_is_booted(self):
        self.load()
        self.lose_power()
        self.assertEqual(region_contents.KnownContents(), self.known_shell())

    def test_a_guest_waits_for_it(self):
        self.load()
        self.host.boot(ONE, fpga_card.an_arq())
        self.assertTrue(self.host.regions.is_journaled(self.host.target()))
