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

import fixtures

from nova_accel import exceptions
from nova_accel.model import finding
from nova_accel.testing import fabric_manager as simulated
from nova_accel.testing import fmpm
from unit.virt.fabric import board


class TestGuests(board.BoardTestCase):
    def test_active_while_the_guest_runs(self):
        self.boot(board.I1, 1, 3)
        self.assertEqual([3], self.active)
        self.assertEqual({3: (board.I1, 'active')}, self.journaled)
        self.boot(board.I2, 2)
        self.assertEqual([3, 8], self.active)
        self.stop(board.I1)
        self.assertEqual([8], self.active)
        self.assertEqual({8: (board.I2, 'active')}, self.journaled)
        self.boot(board.I1, 1, 3)
        self.assertEqual([3, 8], self.active)

    def test_each_size(self):
        for number, modules in simulated.H100.items():
            self.boot('i', *modules)
            self.assertEqual([number], self.active)
            self.stop('i')
            self.assertEqual([], self.active)

    def test_a_reboot_asks_for_nothing_twice(self):
        self.boot(board.I1, 1, 3)
        before = len(self.daemon.calls)
        with self.fabric.during(board.I1):
            self.need.running.discard(board.I1)
            with self.fabric.during(board.I1):
                """Nova destroys the guest in a call of its own."""
            self.assertEqual([3], self.active)
            self.ready(board.I1, 1, 3)
            self.need.running.add(board.I1)
        self.assertEqual([3], self.active)
        self.assertEqual({'-l'}, {c[0] for c in self.daemon.calls[before:]})

    def test_a_guest_without_gpus(self):
        self.boot(board.I1)
        self.stop(board.I1)
        self.fabric.let_go('handle of something else')
        self.assertEqual([], self.daemon.calls)

    def test_a_boot_that_fails(self):
        def fail():
            with self.fabric.during(board.I1):
                self.ready(board.I1, 1, 3)
                raise ValueError

        self.assertRaises(ValueError, fail)
        self.assertEqual([], self.active)
        self.assertEqual({}, self.journaled)

    def test_what_is_given_back_is_not_active(self):
        self.boot(board.I1, 1, 3)
        with self.fabric.during(board.I1):
            self.need.running.discard(board.I1)
            self.fabric.let_go(board.handle_uuid(3))
            self.assertEqual([], self.active)
            # Another guest may get it at once.
            self.boot(board.I2, 1, 2, 3, 4)
        self.assertEqual([1], self.active)

    def test_other_gpus_after_a_resize(self):
        self.boot(board.I1, 1)
        self.stop(board.I1)
        self.boot(board.I1, 5, 7)
        self.assertEqual([5], self.active)
        self.stop(board.I1)
        self.boot(board.I1, 1)
        self.assertEqual([7], self.active)

    def test_a_guest_that_will_arrive(self):
        self.need.arriving.add(board.I1)
        self.ready(board.I1, 1, 3)
        self.fabric.repair()
        self.assertEqual([3], self.active)
        self.need.arriving.discard(board.I1)
        self.fabric.repair()
        self.assertEqual([], self.active)


class TestRefusals(board.BoardTestCase):
    def refused(self, error, *modules, instance=board.I1):
        found = self.assertRaises(error, self.boot, instance, *modules)
        self.need.running.discard(instance)
        return str(found)

    def test_no_partition(self):
        text = self.refused(exceptions.DeviceError, 2, 3)
        self.assertIn('modules 2, 3 are no partition', text)
        self.assertEqual({}, self.journaled)

    def test_another_guest(self):
        self.boot(board.OTHER, 1)
        text = self.refused(exceptions.Conflict, 1, 3)
        self.assertIn(
            f'instance {board.OTHER} has partition 7 (module 1)', text
        )
        self.assertEqual([7], self.active)
        self.assertEqual({7: (board.OTHER, 'active')}, self.journaled)

    def test_what_a_guest_that_is_gone_has_left(self):
        self.boot(board.OTHER, 1)
        self.need.running.discard(board.OTHER)
        self.boot(board.I1, 1, 3)
        self.assertEqual([3], self.active)

    def test_somebody_else(self):
        for number in (3, 7, 1):
            self.daemon.activate(number)
            text = self.refused(exceptions.Conflict, 1, 3)
            self.assertIn(f'partition {number} (', text)
            self.assertIn(f'fmpm -d {number}', text)
            self.assertEqual([number], self.active)
            self.assertEqual({}, self.journaled)
            self.daemon.reset()

    def test_fabric_manager_refuses(self):
        self.daemon.refuse('-a')
        text = self.refused(exceptions.FabricError, 1, 3)
        self.assertIn('Failed to activate partition. fmReturn: -2', text)
        self.assertEqual({}, self.journaled)

    def test_a_link_is_down(self):
        self.daemon.break_link(3)
        for modules in ((1, 3), (1, 2, 3, 4)):
            text = self.refused(exceptions.DeviceError, *modules)
            self.assertIn('is not usable', text)
        self.boot(board.I1, 2, 4)
        # It is used alone, where it needs no link.
        self.boot('i3', 3)
        self.assertEqual([4, 9], self.active)

    def test_a_tool_that_does_nothing(self):
        with self.daemon.changed() as state:
            state['pretends'] = True
        text = self.refused(exceptions.FabricError, 1, 3)
        self.assertIn('is not active, although', text)
        self.assertEqual({}, self.journaled)

    def test_nobody_answers(self):
        self.daemon.stop()
        text = self.refused(exceptions.FabricError, 1, 3)
        self.assertIn('Failed to connect', text)

    def test_no_nvswitches(self):
        with self.daemon.changed() as state:
            state['mode'] = 0
        self.boot(board.I1, 2, 3)
        self.assertEqual({}, self.journaled)
        self.fabric.repair()

    def test_not_ready_yet(self):
        # Each time Fabric Manager is asked, and told.
        self.daemon.be_not_ready_for(6)
        self.boot(board.I1, 1, 3)
        self.assertEqual([3], self.active)

    def test_never_ready(self):
        self.start(wait_s=0.05)
        self.daemon.be_not_ready_for(1000)
        self.refused(exceptions.FabricNotReady, 1, 3)
        self.assertEqual({}, self.journaled)


class TestNotReadyAtAStep(board.BoardTestCase):
    """Fabric Manager was there when the partitions were listed."""

    def before(self, option, happens, times=1):
        """Have something happen before calls with this option."""
        real = fmpm.answer
        self.left = times

        def answer(state, arguments):
            if option in arguments and self.left:
                self.left -= 1
                happens()
            return real(state, arguments)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.fabric_manager._run',
                lambda timeout_s, *command: self.daemon.ask(*command[3:]),
            )
        )
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.testing.fmpm.answer', answer)
        )

    def test_at_the_activation(self):
        for happens in (
            lambda: self.daemon.be_not_ready_for(4),
            self.daemon.restart,
        ):
            self.before('-a', happens)
            self.boot(board.I1, 1, 3)
            self.assertEqual(0, self.left)
            self.assertEqual([3], self.active)
            self.assertEqual({3: (board.I1, 'active')}, self.journaled)
            self.stop(board.I1)

    def test_at_the_deactivation_of_what_is_in_the_way(self):
        self.boot(board.I1, 1, 3)
        self.daemon.refuse('-d')
        self.stop(board.I1)
        self.daemon.refuse('-d', 0)
        self.before('-d', lambda: self.daemon.be_not_ready_for(4))
        self.boot(board.I2, 1)
        self.assertEqual([7], self.active)

    def test_never_ready_again(self):
        self.start(wait_s=0.05)
        self.before('-a', lambda: self.daemon.be_not_ready_for(10**6))
        self.assertRaises(
            exceptions.FabricNotReady, self.ready, board.I1, 1, 3
        )
        self.assertEqual({3: (board.I1, 'deactivating')}, self.journaled)
        self.daemon.be_not_ready_for(0)
        self.fabric.repair()
        self.assertEqual({}, self.journaled)

    def confirm(self, happens):
        """Have it happen after the last look, and look again."""
        with self.fabric.during(board.I1):
            self.ready(board.I1, 1, 3)
            happens()
            self.fabric.confirm(board.I1)
            self.need.running.add(board.I1)

    def test_lost_before_the_guest_runs(self):
        for happens in (
            lambda: None,
            self.daemon.reset,
            self.daemon.restart,
            lambda: self.daemon.be_not_ready_for(4),
            lambda: (self.daemon.reset(), self.daemon.be_not_ready_for(4)),
        ):
            self.confirm(happens)
            self.assertEqual([3], self.active)
            self.assertEqual({3: (board.I1, 'active')}, self.journaled)
            self.stop(board.I1)
            self.assertEqual([], self.active)

    def test_lost_each_time(self):
        lists = []

        def forget_before_each_look():
            # An activation lists the partitions twice.
            if len(lists) % 3 == 0:
                self.daemon.reset()
            lists.append('-l')

        error = self.assertRaises(
            exceptions.FabricError,
            self.confirm,
            lambda: self.before('-l', forget_before_each_look, times=10**6),
        )
        self.assertIn('3 times before its guest ran', str(error))
        self.assertEqual([], self.active)

    def test_what_cannot_be_activated_again(self):
        for happens, text in (
            (self.daemon.stop, 'Failed to connect'),
            (lambda: self.daemon.break_link(3), 'is not usable'),
            (lambda: self.daemon.activate(1), 'deactivate it with'),
        ):
            error = self.assertRaises(
                exceptions.AcceleratorError,
                self.confirm,
                lambda happens=happens: (self.daemon.reset(), happens()),
            )
            self.assertIn(text, str(error))
            self.assertIn('does not start', self.log.output)
            with self.daemon.changed() as state:
                state.update(is_running=True, links_down={}, active={})
            self.fabric.repair()
            self.assertEqual({}, self.journaled)

    def test_one_look_if_nothing_is_lost(self):
        self.boot(board.I1, 1, 3)
        before = len(self.daemon.calls)
        self.fabric.confirm(board.I1)
        self.assertEqual([['-l']], self.daemon.calls[before:])

    def test_without_a_partition_nobody_is_asked(self):
        self.assertFalse(self.fabric.has(board.I2))
        self.fabric.confirm(board.I2)
        self.assertEqual([], self.daemon.calls)
        self.boot(board.I1, 1, 3)
        self.assertTrue(self.fabric.has(board.I1))


class TestVgpus(board.BoardTestCase):
    board = simulated.B200

    def setUp(self):
        super().setUp()
        self.need.functions = True
        self.activated = []
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.fabric_manager.activate', self.activate
            )
        )

    def activate(self, number, functions, timeout_s):
        self.activated.append((number, tuple(functions)))
        self.daemon.activate(number)
        return fmpm.SUCCESS, ''

    def test_functions_in_the_order_of_the_partition(self):
        with self.daemon.changed() as state:
            state['partitions']['4'] = [2, 1]
        self.boot(board.I1, 1, 2)
        self.assertEqual(
            [(4, ('0000:02:00.4', '0000:01:00.4'))], self.activated
        )

    def test_another_function_of_the_same_gpu(self):
        self.boot(board.I1, 3)
        self.need.functions = False
        self.boot(board.I1, 3)
        self.assertEqual([(10, ('0000:03:00.4',)), (10, ())], self.activated)


class TestFailures(board.BoardTestCase):
    def test_what_is_not_deactivated_is_tried_again(self):
        for fault in (
            self.daemon.stop,
            lambda: self.daemon.be_not_ready_for(8),
            lambda: self.daemon.refuse('-d'),
        ):
            self.boot(board.I1, 1, 3)
            fault()
            self.stop(board.I1)
            self.assertEqual([3], self.active)
            self.assertEqual({3: (board.I1, 'deactivating')}, self.journaled)
            self.assertIn('is not deactivated yet', self.log.output)
            with self.daemon.changed() as state:
                state.update(is_running=True, not_ready_for=0, refused={})
            self.fabric.repair()
            self.assertEqual([], self.active)
            self.assertEqual({}, self.journaled)

    def found(self):
        """Of each finding: the instance, and whether it is repaired."""
        found = self.findings.all()
        self.assertLessEqual(
            {each.kind for each in found}, {finding.Kind.PARTITION}
        )
        return sorted(
            (each.instance_uuid or '', each.is_repaired) for each in found
        )

    def test_what_is_not_deactivated_is_found_until_it_is(self):
        self.boot(board.I1, 1, 3)
        self.daemon.refuse('-d')
        self.stop(board.I1)
        self.fabric.repair()
        self.assertEqual([(board.I1, False)], self.found())
        self.daemon.refuse('-d', 0)
        self.fabric.repair()
        self.assertEqual([], self.found())

    def test_what_fabric_manager_has_forgotten_is_found(self):
        self.boot(board.I1, 1, 3)
        self.daemon.reset()
        self.daemon.refuse('-a')
        self.fabric.repair()
        self.assertEqual([(board.I1, False)], self.found())
        self.daemon.refuse('-a', 0)
        self.fabric.repair()
        self.assertEqual([(board.I1, True)], self.found())
        for _round in range(2):
            self.findings.end_round()
        self.assertEqual([], self.found())

    def test_a_partition_of_somebody_else_is_found_until_it_is_gone(self):
        self.daemon.activate(5)
        for _time in range(2):
            self.fabric.repair()
            self.assertEqual([('', False)], self.found())
        self.daemon.ask('-d', '5')
        self.fabric.repair()
        self.assertEqual([], self.found())

    def test_no_gpu_of_it_goes_to_another_guest_meanwhile(self):
        self.boot(board.I1, 1, 3)
        self.daemon.refuse('-d')
        self.stop(board.I1)
        self.assertRaises(exceptions.FabricError, self.boot, board.I2, 1)
        self.need.running.discard(board.I2)
        self.daemon.refuse('-d', 0)
        self.boot(board.I2, 1)
        self.assertEqual([7], self.active)

    def test_libvirt_does_not_say(self):
        self.boot(board.I1, 1, 3)
        self.need.broken = exceptions.DeviceError('libvirtd is away')
        self.stop(board.I1)
        self.fabric.repair()
        self.assertEqual([3], self.active)
        self.assertIn('stays active: libvirtd is away', self.log.output)

    def test_a_bug_does_not_fail_what_nova_does(self):
        self.boot(board.I1, 1, 3)
        self.need.broken = ZeroDivisionError()
        self.stop(board.I1)
        self.assertEqual([3], self.active)
        self.assertIn('ZeroDivisionError', self.log.output)


class TestRepair(board.BoardTestCase):
    def test_a_guest_that_has_died(self):
        self.boot(board.I1, 1, 3)
        self.boot(board.I2, 2)
        self.need.running.discard(board.I1)
        self.fabric.repair()
        self.assertEqual([8], self.active)

    def test_a_guest_that_nova_works_on(self):
        self.boot(board.I1, 1, 3)
        with self.fabric.during(board.I1):
            self.need.running.discard(board.I1)
            self.fabric.repair()
            self.assertEqual([3], self.active)
        self.assertEqual([], self.active)

    def test_fabric_manager_was_restarted(self):
        self.boot(board.I1, 1, 3)
        self.boot(board.I2, 2)
        self.daemon.restart()
        before = len(self.daemon.calls)
        self.fabric.repair()
        self.assertEqual([3, 8], self.active)
        self.assertEqual(
            [['-l'], ['--set-activated-list', '3,8'], ['-l']],
            self.daemon.calls[before:],
        )
        self.assertIn('told that the partitions [3, 8]', self.log.output)

    def test_fabric_manager_was_restarted_without_guests(self):
        self.daemon.restart()
        self.assertEqual(15, len(self.fabric.partitions()))
        self.assertIn(['--set-activated-list', ''], self.daemon.calls)

    def test_a_boot_after_a_restart_of_fabric_manager(self):
        self.boot(board.I1, 1, 3)
        self.daemon.restart()
        self.boot(board.I2, 2)
        self.assertEqual([3, 8], self.active)

    def test_fabric_manager_has_forgotten(self):
        self.boot(board.I1, 1, 3)
        self.daemon.reset()
        self.fabric.repair()
        self.assertEqual([3], self.active)
        self.assertIn('not active any more', self.log.output)
        self.assertIn(f'instance {board.I1}', self.log.output)

    def test_a_tool_of_before_april_2026(self):
        with self.daemon.changed() as state:
            state['has_old_tool'] = True
        self.boot(board.I1, 1, 3)
        self.daemon.restart()
        self.fabric.repair()
        self.assertEqual([3], self.active)
        self.assertIn('older than April 2026', self.log.output)

    def test_one_guest_that_cannot_be_helped(self):
        self.boot(board.I1, 1, 3)
        self.boot(board.I2, 2)
        self.daemon.reset()
        self.daemon.break_link(3)
        self.fabric.repair()
        self.assertEqual([8], self.active)
        self.assertIn(
            f'GPUs of instance {board.I1} are not joined', self.log.output
        )

    def test_what_somebody_else_has_activated(self):
        self.daemon.activate(5)
        self.fabric.repair()
        self.fabric.repair()
        self.assertEqual([5], self.active)
        self.assertEqual(1, self.log.output.count('no guest gets its GPUs'))

    def test_nobody_answers(self):
        self.daemon.stop()
        self.assertRaises(exceptions.FabricError, self.fabric.repair)


class TestStart(board.BoardTestCase):
    def test_restart_of_nova_compute(self):
        self.boot(board.I1, 1, 3)
        self.start()
        self.fabric.repair()
        self.assertEqual([3], self.active)
        self.assertEqual({3: (board.I1, 'active')}, self.journaled)

    def test_host_reboot(self):
        self.boot(board.I1, 1, 3)
        self.need.running.clear()
        for has_kept in (False, True):
            if not has_kept:
                self.daemon.reset()
            self.start('boot2')
            self.fabric.repair()
            self.assertEqual([], self.active)
            self.assertEqual({}, self.journaled)
            self.boot(board.I1, 1, 3)
            self.need.running.clear()

    def test_a_full_disk(self):
        self.boot(board.I1, 1, 3)
        self.need.running.clear()

        def refuse(path, text):
            raise exceptions.DiskError('No space left on device')

        with fixtures.MonkeyPatch(
            'nova_accel.state.durable_file.write', refuse
        ):
            self.start('boot2')
            self.fabric.repair()
        self.assertIn('still said to be active', self.log.output)
        self.fabric.repair()
        self.assertEqual([], self.active)

    def test_a_service_vm_that_waits_after_a_reboot_of_the_host(self):
        self.boot(board.I1, 1, 3)
        self.need.running.clear()
        self.daemon.restart()
        self.start('boot2')
        self.fabric.repair()
        self.assertEqual([], self.active)
        self.assertIn(['--set-activated-list', ''], self.daemon.calls)

    def test_guests_that_nova_starts_after_a_reboot(self):
        self.boot(board.I1, 1, 3)
        self.need.running.clear()
        self.daemon.reset()
        self.start('boot2')
        self.boot(board.I1, 1, 3)
        self.assertEqual([3], self.active)
        self.assertEqual({3: (board.I1, 'active')}, self.journaled)
