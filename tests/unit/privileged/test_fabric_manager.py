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

import os
import pathlib
import threading
import time

import fixtures
from nova import conf as nova_conf

from nova_accel import conf
from nova_accel import privileged
from nova_accel.privileged import fabric_manager
from nova_accel.privileged import vendor_tool
from unit.privileged import tree

CONF = nova_conf.CONF


VIRTUAL = '0000:3d:00.4'


class TestFabricManager(tree.TreeTestCase):
    def setUp(self):
        super().setUp()
        self.assertIs(CONF, conf.CONF)
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, value in (('RUN', self.directory), ('SYSFS', self.root)):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.privileged.fabric_manager.{name}', value
                )
            )
        self.add(VIRTUAL, physfn=tree.ADDRESS)
        self.addCleanup(privileged.fabric_pctxt.set_client_mode, True)
        privileged.fabric_pctxt.set_client_mode(False)
        self.configure(fabric_manager='10.0.0.1:7777')
        self.tool('echo "$@"')

    def configure(self, **options):
        tree.configure(self, **options)

    def tool(self, text):
        path = self.directory / 'fmpm'
        path.write_text(f'#!/bin/sh\n{text}\n')
        path.chmod(0o755)
        self.configure(fabric_manager_command=str(path))

    def test_arguments(self):
        for call, expected in (
            (lambda: fabric_manager.partitions(5), '-l'),
            (
                lambda: fabric_manager.unsupported(5),
                '--list-unsupported-partitions',
            ),
            (
                lambda: fabric_manager.failed(5),
                '--get-nvlink-failed-devices',
            ),
            (lambda: fabric_manager.activate(3, [], 5), '-a 3'),
            (lambda: fabric_manager.deactivate(63, 5), '-d 63'),
            (
                lambda: fabric_manager.restore([8, 3, 8], 5),
                '--set-activated-list 3,8',
            ),
            (lambda: fabric_manager.restore([], 5), '--set-activated-list '),
        ):
            self.assertEqual(
                (0, f'--hostname 10.0.0.1:7777 {expected}\n'), call()
            )

    def test_a_socket(self):
        self.configure(fabric_manager='/run/fm/socket')
        self.assertEqual(
            (0, '--unix-domain-socket /run/fm/socket -l\n'),
            fabric_manager.partitions(5),
        )

    def test_only_what_is_configured(self):
        for value in ('a b', '-x', '--hostname', 'fm:x', '/a b', 'a;b', ''):
            self.assertRaises(
                ValueError,
                CONF.set_override,
                'fabric_manager',
                value,
                'nova_accel',
            )
        self.configure(fabric_manager=None)
        self.assertRaises(ValueError, fabric_manager.partitions, 5)

    def test_malformed_arguments(self):
        for call, *arguments in (
            (fabric_manager.activate, 64, []),
            (fabric_manager.activate, -1, []),
            (fabric_manager.activate, '3; reboot', []),
            (fabric_manager.activate, 3, ['--help']),
            (fabric_manager.activate, 3, [VIRTUAL] * 17),
            (fabric_manager.activate, 3, [VIRTUAL] * 2),
            (fabric_manager.activate, 3, [tree.ADDRESS]),
            (fabric_manager.activate, 3, ['0000:3d:00.5']),
            (fabric_manager.deactivate, None),
            (fabric_manager.restore, [64]),
        ):
            self.assertRaises(ValueError, call, *arguments, 5)
        for seconds in (0, -1, 601):
            self.assertRaises(ValueError, fabric_manager.partitions, seconds)

    def test_status_and_all_output(self):
        self.tool('echo said; echo wrong >&2; exit 249')
        self.assertEqual((249, 'said\nwrong\n'), fabric_manager.partitions(5))

    def test_no_tool(self):
        self.configure(fabric_manager_command='/nowhere/fmpm')
        status, output = fabric_manager.partitions(5)
        self.assertEqual(127, status)
        self.assertIn('/nowhere/fmpm', output)

    def test_output_without_end(self):
        self.tool('exec yes')
        began = time.monotonic()
        self.assertRaises(ValueError, fabric_manager.partitions, 30)
        self.assertLess(time.monotonic() - began, 20)

    def test_a_tool_without_end(self):
        self.tool('sleep 60')
        self.assertIn(fabric_manager.partitions(1)[0], vendor_tool.TIMED_OUT)

    def test_one_after_the_other(self):
        self.tool('sleep 2; echo "$@"')
        thread = threading.Thread(target=fabric_manager.partitions, args=(5,))
        thread.start()
        while not (self.directory / 'nova_accel-fabric.lock').exists():
            time.sleep(0.01)
        time.sleep(0.3)
        self.assertEqual(vendor_tool.BUSY, fabric_manager.partitions(1)[0])
        thread.join()

    def test_no_link_is_followed_to_the_lock(self):
        os.symlink('/etc/passwd', self.directory / 'nova_accel-fabric.lock')
        self.assertRaises(OSError, fabric_manager.partitions, 5)

    def test_functions_need_the_library(self):
        self.configure(fabric_manager_library='/nowhere/libnvfm.so.1')
        status, output = fabric_manager.activate(3, [VIRTUAL], 5)
        self.assertEqual(1, status)
        self.assertIn('/nowhere/libnvfm.so.1', output)
