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

import pathlib

import fixtures

from nova_accel import privileged
from nova_accel.privileged import mig
from nova_accel.privileged import vendor_tool
from unit.privileged import tree

VIRTUAL = '0000:3d:00.4'
OTHER = '0000:3e:00.0'


class TestMig(tree.TreeTestCase):
    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, value in (('RUN', self.directory), ('SYSFS', self.root)):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.privileged.mig.{name}', value
                )
            )
        path = self.function / 'driver'
        path.symlink_to('../../../bus/pci/drivers/nvidia')
        virtual = self.add(VIRTUAL, 'nvidia', tree.ADDRESS)
        (self.function / 'virtfn0').symlink_to(f'../{VIRTUAL}')
        (virtual / 'nvidia').mkdir()
        self.type = virtual / 'nvidia/current_vgpu_type'
        self.type.write_text('0\n')
        self.add(OTHER, 'nvidia')
        tree.offer(
            self,
            {'address': '0000:3d:*.*', 'shapes': ['mig:*']},
            {'address': OTHER},
        )
        self.addCleanup(privileged.mig_pctxt.set_client_mode, True)
        privileged.mig_pctxt.set_client_mode(False)
        self.useFixture(
            fixtures.EnvironmentVariable(
                'PATH', f'{self.directory}:/usr/bin:/bin'
            )
        )
        self.tool('echo "$@"')

    def tool(self, text):
        path = self.directory / 'nvidia-smi'
        path.write_text(f'#!/bin/sh\n{text}\n')
        path.chmod(0o755)

    def test_arguments(self):
        for call, expected in (
            (
                lambda: mig.mode(tree.ADDRESS, 5),
                f'-i {tree.ADDRESS} --query-gpu=mig.mode.current,'
                'mig.mode.pending --format=csv,noheader\n',
            ),
            (
                lambda: mig.set_mode(tree.ADDRESS, 1, 5),
                f'-i {tree.ADDRESS} -mig 1\n',
            ),
            (
                lambda: mig.listed(tree.ADDRESS, '-lgi', 5),
                f'mig -i {tree.ADDRESS} -lgi\n',
            ),
            (
                lambda: mig.create(tree.ADDRESS, 9, 4, 5),
                f'mig -i {tree.ADDRESS} -cgi 9:4 -C\n',
            ),
            (
                lambda: mig.destroy(tree.ADDRESS, 2, 5),
                f'mig -i {tree.ADDRESS} -gi 2 -dgi\n',
            ),
        ):
            self.assertEqual((0, expected), call())

    def test_compute_instances_go_first(self):
        self.tool(f'echo "$@" >>{self.directory}/log')
        mig.destroy(tree.ADDRESS, 2, 5)
        self.assertEqual(
            [
                f'mig -i {tree.ADDRESS} -gi 2 {each}'
                for each in ('-dci', '-dgi')
            ],
            (self.directory / 'log').read_text().splitlines(),
        )

    def test_malformed_arguments(self):
        for call, *arguments in (
            (mig.set_mode, 2),
            (mig.set_mode, True),
            (mig.set_functions, 2),
            (mig.set_functions, '-d'),
            (mig.listed, '-dgi'),
            (mig.listed, ''),
            (mig.create, '9', 0),
            (mig.create, 9, -1),
            (mig.destroy, '1; reboot'),
        ):
            self.assertRaises(ValueError, call, tree.ADDRESS, *arguments, 5)

    def test_only_cards_in_shapes(self):
        for address in (VIRTUAL, OTHER, '0000:3f:00.0', '-h'):
            self.assertRaises(ValueError, mig.mode, address, 5)

    def test_only_cards_that_the_driver_has(self):
        (self.function / 'driver').unlink()
        (self.function / 'driver').symlink_to('../../../drivers/vfio-pci')
        self.assertRaises(ValueError, mig.mode, tree.ADDRESS, 5)

    def test_the_mode_of_a_card_with_a_vgpu_stays(self):
        self.type.write_text('558\n')
        error = self.assertRaises(ValueError, mig.set_mode, tree.ADDRESS, 0, 5)
        self.assertIn('has a vGPU', str(error))

    def manage(self, text):
        path = self.directory / 'sriov-manage'
        path.write_text(f'#!/bin/sh\n{text}\n')
        path.chmod(0o755)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.mig.SRIOV_MANAGE', str(path)
            )
        )

    def test_virtual_functions(self):
        log = self.directory / 'log'
        self.manage(f'echo "$@" >>{log}')
        for are_there in (1, 0):
            self.assertEqual(
                (0, ''), mig.set_functions(tree.ADDRESS, are_there, 5)
            )
        self.assertEqual(
            [f'-e {tree.ADDRESS}', f'-d {tree.ADDRESS}'],
            log.read_text().splitlines(),
        )

    def test_virtual_functions_that_are_used(self):
        self.manage('exec false')
        self.type.write_text('558\n')
        for are_there in (0, 1):
            error = self.assertRaises(
                ValueError, mig.set_functions, tree.ADDRESS, are_there, 5
            )
            self.assertIn('has a vGPU', str(error))

    def test_virtual_functions_that_keep_the_mode(self):
        log = self.directory / 'log'
        self.tool(f'echo "$@" >>{log}; test $(wc -l <{log}) -gt 1 || exit 19')
        self.manage(f'echo "$@" >>{log}')
        self.assertEqual((0, ''), mig.set_mode(tree.ADDRESS, 1, 5))
        mode = f'-i {tree.ADDRESS} -mig 1'
        self.assertEqual(
            [mode, f'-d {tree.ADDRESS}', mode, f'-e {tree.ADDRESS}'],
            log.read_text().splitlines(),
        )

    def test_virtual_functions_that_stay(self):
        log = self.directory / 'log'
        self.tool('echo in use; exit 19')
        self.manage(f'echo "$@" >>{log}; echo no; exit 1')
        self.assertEqual((1, 'no\n'), mig.set_mode(tree.ADDRESS, 1, 5))
        self.assertEqual(f'-d {tree.ADDRESS}\n', log.read_text())
        # They come back though the mode stays.
        self.manage(f'echo "$@" >>{log}')
        self.assertEqual((19, 'in use\n'), mig.set_mode(tree.ADDRESS, 1, 5))
        self.assertEqual(
            [f'-{each} {tree.ADDRESS}' for each in 'dde'],
            log.read_text().splitlines(),
        )

    def test_other_failures_cost_no_virtual_function(self):
        self.manage('exec false')
        for status in (0, 4, 255):
            self.tool(f'echo said; exit {status}')
            self.assertEqual(
                (status, 'said\n'), mig.set_mode(tree.ADDRESS, 0, 5)
            )

    def test_status_and_all_output(self):
        self.tool('echo said; echo wrong >&2; exit 19')
        self.assertEqual(
            (19, 'said\nwrong\n'), mig.listed(tree.ADDRESS, '-lgip', 5)
        )

    def test_output_without_end(self):
        self.tool('exec yes')
        self.assertRaises(ValueError, mig.mode, tree.ADDRESS, 30)

    def test_a_tool_without_end(self):
        self.tool('sleep 60')
        self.assertIn(mig.mode(tree.ADDRESS, 1)[0], vendor_tool.TIMED_OUT)
