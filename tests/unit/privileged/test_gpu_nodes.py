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
import testtools

from nova_accel import privileged
from nova_accel.privileged import gpu_nodes


class TestOpened(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.proc = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.gpu_nodes.PROC', self.proc
            )
        )
        self.addCleanup(privileged.processes_pctxt.set_client_mode, True)
        privileged.processes_pctxt.set_client_mode(False)
        (self.proc / 'self').mkdir()
        (self.proc / 'uptime').write_text('1')

    def process(self, number, command, *files):
        directory = self.proc / str(number)
        (directory / 'fd').mkdir(parents=True)
        (directory / 'comm').write_text(f'{command}\n')
        for descriptor, file in enumerate(files):
            (directory / 'fd' / str(descriptor)).symlink_to(file)

    def test_nodes(self):
        self.process(1, 'init', '/dev/null', '/dev/nvidiactl')
        self.process(
            8,
            'python3',
            '/dev/null',
            '/dev/nvidia3',
            '/dev/nvidia3',
            'socket:[4711]',
            '/dev/dri/renderD128',
            '/dev/nvidia-uvm',
            '/srv/dev/nvidia7',
        )
        self.process(9, 'x', '/dev/nvidia3', '/dev/accel/accel0')
        opened = gpu_nodes.opened()
        self.assertEqual(
            {
                'nvidia3': {(8, 'python3'), (9, 'x')},
                'dri/renderD128': {(8, 'python3')},
                'accel/accel0': {(9, 'x')},
            },
            {node: set(processes) for node, processes in opened.items()},
        )
        self.assertEqual(2, len(opened['nvidia3']))

    def test_the_nodes_of_each_vendor(self):
        nodes = (
            'nvidia-caps/nvidia-cap12',
            'dri/card0',
            'accel/accel_controlD1',
            'hl0',
            'hl_controlD0',
            'davinci7',
            'mei0',
            'infiniband/uverbs0',
            'infiniband/umad1',
            'infiniband/issm1',
        )
        self.process(
            8, 'x', *(f'/dev/{node}' for node in (*nodes, 'shm/mei0', 'kfd'))
        )
        self.assertEqual(set(nodes), gpu_nodes.opened().keys())

    def test_processes_that_end(self):
        self.process(8, 'python3', '/dev/nvidia3')
        (self.proc / '8/comm').unlink()
        (self.proc / '9').mkdir()
        self.assertEqual({'nvidia3': [(8, '')]}, gpu_nodes.opened())
