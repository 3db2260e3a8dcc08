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
from oslo_concurrency import processutils
import testtools

from nova_accel import exceptions
from nova_accel.drivers import nvme_erasure
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs
from unit.drivers import fake_nvme

ADDRESS, OTHER = map(
    pci_address.PciAddress.parse, ('0000:3d:00.0', '0000:3e:00.0')
)


class ControllerTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        self.sleeps = []
        self.useFixture(
            fixtures.MonkeyPatch('tenacity.nap.time.sleep', self.sleeps.append)
        )

    def drive(self, **abilities):
        return self.useFixture(
            fake_nvme.FakeNvme(self.sysfs, ADDRESS, **abilities)
        )

    def controller(self, serial=None):
        return nvme_erasure.NvmeController(
            self.sysfs.sysfs, ADDRESS, serial, bound_within_s=0
        )

    def assert_refused(self, text, method, *arguments):
        error = self.assertRaises(exceptions.DeviceError, method, *arguments)
        self.assertIn(str(ADDRESS), str(error))
        self.assertIn(text, str(error))


class TestController(ControllerTestCase):
    def test_not_bound(self):
        self.assert_refused('driver nvme', self.controller)

    def test_nvme_cli_is_not_installed(self):
        self.drive()

        def identify(_address, _serial):
            raise FileNotFoundError(2, 'No such file', 'nvme')

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.nvme.identify', identify
            )
        )
        self.assert_refused('No such file', self.controller)

    def test_another_drive(self):
        drive = self.drive()
        self.assert_refused('not S1', self.controller, 'S1')
        self.controller(fake_nvme.SERIAL).format()
        self.assertEqual(set(), drive.data)

    def test_another_drive_after_a_step(self):
        """Each looks again: the kernel gives its name to the next."""
        for method, arguments in (('format', ()), ('sanitize', (False,))):
            drive = self.drive(sanicap=fake_nvme.BLOCKS)
            controller = self.controller()
            drive.serial = 'S2'
            self.assert_refused(
                'there is S2', getattr(controller, method), *arguments
            )
            self.assertEqual([], drive.calls)


class TestSanitize(ControllerTestCase):
    def test_the_best_that_it_can(self):
        for sanicap, action in (
            (fake_nvme.OVERWRITE, 3),
            (fake_nvme.OVERWRITE | fake_nvme.CRYPTO, 4),
            (fake_nvme.CRYPTO | fake_nvme.BLOCKS, 2),
        ):
            drive = self.drive(sanicap=sanicap)
            self.controller().sanitize(False)
            self.assertEqual([('sanitize', action)], drive.calls)
        self.assertNotEqual([], self.sleeps)

    def test_one_that_is_at_it_is_waited_for(self):
        drive = self.drive(sanicap=fake_nvme.BLOCKS)
        drive.statuses = [2, 2, 4]
        self.controller().sanitize(False)
        self.assertEqual([], drive.calls)

    def test_it_fails(self):
        drive = self.drive(sanicap=fake_nvme.BLOCKS)
        drive.statuses = [1, 3]
        self.assert_refused('status', self.controller().sanitize, False)

    def test_it_never_ends(self):
        drive = self.drive(sanicap=fake_nvme.BLOCKS)
        drive.statuses = [2]
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.drivers.nvme_erasure.SANITIZE_TIMEOUT_S', 0
            )
        )
        self.assert_refused('still', self.controller().sanitize, False)

    def test_one_that_does_not_move_is_given_up(self):
        """It would keep others from being cleaned for hours."""
        for progress, estimate, least, most in (
            ([0], 0xFFFFFFFF, 600, 700),
            ([0], 0, 600, 700),
            ([0x8000, 0x7FFF, 0x8000, 0], 5, 600, 700),
            ([0], 1500, 1500, 1600),
            ([0], 0xFFFFFFFE, 3600, 3700),
        ):
            drive = self.drive(sanicap=fake_nvme.BLOCKS)
            drive.statuses, drive.action = [2], 2
            drive.progress = progress
            drive.estimates = (0, estimate, 0)
            del self.sleeps[:]
            done = f'{100 * progress[0] // 0x10000} % are done'
            self.assert_refused(done, self.controller().sanitize, False)
            self.assertTrue(least <= sum(self.sleeps) < most, self.sleeps)
            self.assertEqual([], drive.calls)

    def test_one_that_moves_slowly_is_waited_for(self):
        drive = self.drive(sanicap=fake_nvme.OVERWRITE)
        drive.progress = [step for step in range(100) for _ in range(9)]
        drive.statuses = [2] * len(drive.progress) + [1]
        self.controller().sanitize(False)
        self.assertGreater(sum(self.sleeps), 10 * 3600)

    def test_the_block_formats_are_other_ones_then(self):
        drive = self.drive(sanicap=fake_nvme.BLOCKS)
        drive.formats = {1: (1, 0), 2: (0, 0)}
        drive.formats_after_sanitize = {1: (0, 0)}
        self.assert_refused('namespace 1', self.controller().sanitize, False)

    def test_it_would_erase_what_others_have(self):
        for abilities in (
            {'sanicap': 0},
            {'sanicap': fake_nvme.BLOCKS, 'cmic': fake_nvme.SHARED},
            {'sanicap': fake_nvme.BLOCKS, 'cmic': fake_nvme.VIRTUAL},
        ):
            drive = self.drive(**abilities)
            controller = self.controller()
            self.assertFalse(controller.can_be_sanitized())
            self.assert_refused('sanitized', controller.sanitize, False)
            self.assertEqual([], drive.calls)


class TestFormat(ControllerTestCase):
    def test_all_namespaces(self):
        drive = self.drive(cmic=fake_nvme.SHARED)
        self.controller().format()
        self.assertEqual([('format', 2), ('format', 1)], drive.calls)
        self.assertEqual(set(), drive.data)

    def test_each_keeps_its_block_format(self):
        """nvme-cli would give them the format 0 without metadata."""
        formats = {1: (0x31, 0x9), 2: (0, 0)}
        drive = self.drive()
        drive.formats = dict(formats)
        self.controller().format()
        self.assertEqual(formats, drive.formats)

    def test_the_block_format_is_another_one_then(self):
        drive = self.drive()
        drive.formats = {1: (1, 0), 2: (0, 0)}
        drive.forgets_formats = True
        self.assert_refused('namespace 1', self.controller().format)

    def test_one_format_for_all_that_have_different_ones(self):
        drive = self.drive(fna=fake_nvme.FORMATS_ALL)
        drive.formats = {1: (1, 0), 2: (0, 0)}
        self.assert_refused(
            'different block formats', self.controller().format
        )
        self.assertEqual([], drive.calls)
        drive.formats[2] = (1, 0)
        self.controller().format()
        self.assertEqual({1: (1, 0), 2: (1, 0)}, drive.formats)

    def test_they_are_sanitized(self):
        drive = self.drive(fna=fake_nvme.FORMATS_ALL, sanicap=fake_nvme.BLOCKS)
        drive.formats = {1: (1, 0), 2: (0, 0)}
        self.controller().sanitize(False)
        self.assertEqual({1: (1, 0), 2: (0, 0)}, drive.formats)

    def test_it_cannot(self):
        self.drive(oacs=0)
        self.assert_refused('cannot format', self.controller().format)

    def test_it_would_erase_what_others_have(self):
        for fna in (fake_nvme.FORMATS_ALL, fake_nvme.ERASES_ALL):
            drive = self.drive(fna=fna, cmic=fake_nvme.VIRTUAL)
            self.assert_refused('other', self.controller().format)
            self.assertEqual([], drive.calls)
            self.drive(fna=fna)
            self.controller().format()

    def test_without_a_namespace(self):
        """It may be detached, with what is in it."""
        drive = self.drive()
        directory = drive.sysfs.root / 'bus/pci/devices' / str(ADDRESS)
        for name in ('nvme3n1', 'nvme3c3n2'):
            (directory / 'nvme/nvme3' / name).rename(
                directory / f'{name}-gone'
            )
        self.assert_refused('no namespace', self.controller().format)

    def test_a_detached_namespace(self):
        drive = self.drive(oacs=fake_nvme.FORMAT | fake_nvme.MANAGES)
        drive.allocated = [1, 2, 7]
        self.assert_refused('[7] are detached', self.controller().format)
        self.assertEqual([], drive.calls)
        drive.allocated = [1, 2]
        self.controller().format()
        self.assertEqual(set(), drive.data)

    def test_others_namespaces_that_may_be_detached(self):
        drive = self.drive(
            oacs=fake_nvme.FORMAT | fake_nvme.MANAGES, cmic=fake_nvme.SHARED
        )
        self.assert_refused('detached', self.controller().format)
        self.assertEqual([], drive.calls)

    def test_the_only_controller_of_what_others_could_be_in(self):
        """As QEMU's: only the subsystem's list says who is in it."""
        abilities = {
            'oacs': fake_nvme.FORMAT | fake_nvme.MANAGES,
            'cmic': fake_nvme.SHARED,
            'fna': fake_nvme.ERASES_ALL,
            'sanicap': fake_nvme.BLOCKS,
        }
        drive = self.drive(**abilities)
        drive.controllers_listed = [fake_nvme.NUMBER]
        self.assertTrue(self.controller().can_be_sanitized())
        drive.allocated = [1, 2, 7]
        self.assert_refused('[7] are detached', self.controller().format)
        drive.allocated = [1, 2]
        self.controller().format()
        self.assertEqual(set(), drive.data)
        for listed in (None, [], [3], [3, fake_nvme.NUMBER]):
            drive = self.drive(**abilities)
            drive.controllers_listed = listed
            self.assertFalse(self.controller().can_be_sanitized())
            self.assert_refused('other', self.controller().format)
            self.assertEqual([], drive.calls)

    def test_both_controllers_of_what_is_one_unit(self):
        abilities = {
            'oacs': fake_nvme.FORMAT | fake_nvme.MANAGES,
            'cmic': fake_nvme.SHARED,
            'fna': fake_nvme.ERASES_ALL,
            'sanicap': fake_nvme.BLOCKS,
        }
        for erase in ('format', 'sanitize'):
            drive = self.two(**abilities)
            controller = self.both()
            self.assertTrue(controller.can_be_sanitized())
            if erase == 'format':
                controller.format()
                self.assertEqual(set(), drive.data)
            else:
                controller.sanitize(False)
                self.assertEqual([('sanitize', 2)], drive.calls)
            self.assertEqual({str(ADDRESS), str(OTHER)}, drive.asked)

    def test_a_third_controller_that_is_elsewhere(self):
        for listed in ([3, 7, 8], [7], [3], None, []):
            drive = self.two(
                cmic=fake_nvme.SHARED,
                sanicap=fake_nvme.BLOCKS,
                fna=fake_nvme.ERASES_ALL,
            )
            drive.controllers_listed = listed
            controller = self.both()
            self.assertFalse(controller.can_be_sanitized(), listed)
            self.assert_refused('no line offers', controller.sanitize, False)
            self.assert_refused('other', controller.format)
            self.assertEqual([], drive.calls)

    def test_two_that_have_the_same_id(self):
        drive = self.two(cmic=fake_nvme.SHARED, sanicap=fake_nvme.BLOCKS)
        drive.others[str(OTHER)] = fake_nvme.NUMBER
        drive.controllers_listed = [fake_nvme.NUMBER]
        self.assertFalse(self.both().can_be_sanitized())

    def test_the_other_one_is_not_ours_to_ask(self):
        drive = self.two(cmic=fake_nvme.SHARED, sanicap=fake_nvme.BLOCKS)
        drive.others.clear()
        self.refuse_other(drive)
        self.assertFalse(self.both().can_be_sanitized())
        # All that this controller has can be formatted as ever.
        self.both().format()
        self.assertEqual(set(), drive.data)

    def test_the_other_one_sees_data(self):
        drive = self.two(cmic=fake_nvme.SHARED)
        is_blank = drive.is_blank
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.nvme.is_blank',
                lambda address, serial, id_: (
                    address != str(OTHER) and is_blank(address, serial, id_)
                ),
            )
        )
        error = self.assertRaises(exceptions.DeviceError, self.both().format)
        self.assertIn(f'namespace 1 of {OTHER} has data', str(error))

    def test_the_other_one_is_gone_afterwards(self):
        for method, arguments in (('format', ()), ('sanitize', (False,))):
            drive = self.two(cmic=fake_nvme.SHARED, sanicap=fake_nvme.BLOCKS)
            controller = self.both()
            name = 'format_namespace' if method == 'format' else 'sanitize'
            erase = getattr(drive, name)

            def erase_and_go(*told, drive=drive, erase=erase):
                erase(*told)
                self.refuse_other(drive)

            with fixtures.MonkeyPatch(
                f'nova_accel.privileged.nvme.{name}', erase_and_go
            ):
                error = self.assertRaises(
                    exceptions.DeviceError,
                    getattr(controller, method),
                    *arguments,
                )
            self.assertIn(str(OTHER), str(error))

    def two(self, **abilities):
        drive = self.drive(**abilities)
        drive.connect(str(OTHER))
        return drive

    def both(self):
        return nvme_erasure.NvmeController(
            self.sysfs.sysfs, ADDRESS, bound_within_s=0, others=[OTHER]
        )

    def refuse_other(self, drive):
        check = type(drive).check

        def refuse(address, serial):
            if address == str(OTHER):
                raise ValueError(f'address {address}: no line offers it')
            check(drive, address, serial)

        drive.check = refuse

    def test_a_virtual_function_is_never_the_only_one(self):
        drive = self.drive(
            oacs=fake_nvme.FORMAT | fake_nvme.MANAGES,
            cmic=fake_nvme.VIRTUAL | fake_nvme.SHARED,
        )
        drive.controllers_listed = [fake_nvme.NUMBER]
        self.assert_refused('other', self.controller().format)

    def test_something_is_left(self):
        drive = self.drive()
        drive.keeps = {2}
        self.assert_refused('namespace 2', self.controller().format)

    def test_it_refuses(self):
        drive = self.drive()
        drive.data = {2}
        self.assert_refused('no such', self.controller().format)
        self.assertEqual([('format', 2)], drive.calls)


class TestErrors(testtools.TestCase):
    def test_what_a_privileged_process_raises_comes_back_whole(self):
        """oslo.privsep makes it again from its arguments."""
        error = processutils.ProcessExecutionError(
            stderr='refused', exit_code=1, cmd='nvme'
        )
        again = processutils.ProcessExecutionError(*error.args)
        self.assertEqual(('refused', 1), (again.stderr, again.exit_code))
