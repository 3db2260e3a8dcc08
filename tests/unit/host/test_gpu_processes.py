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

from nova_accel.host import gpu_processes
from nova_accel.host import host_use
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs

ADDRESS = pci_address.PciAddress.parse('0001:3d:02.1')
NODES = ('nvidia3', 'dri/card1', 'dri/renderD129', 'accel/accel0')


class GpuProcessesTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        self.opened = {}
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.gpu_nodes.opened', lambda: self.opened
            )
        )

    def uses(self):
        return list(gpu_processes.GpuProcesses(self.fake.sysfs).uses(ADDRESS))


class TestNodes(GpuProcessesTestCase):
    def setUp(self):
        super().setUp()
        self.fake.set(
            ADDRESS,
            drm__card1__dev='226:1',
            **{'drm__card1-DP-1__status': 'disconnected'},
            drm__renderD129__dev='226:129',
            drm__version='1',
            accel__accel0__dev='261:0',
        )
        information = (
            self.fake.proc
            / 'driver/nvidia/gpus'
            / str(ADDRESS)
            / 'information'
        )
        information.parent.mkdir(parents=True)
        information.write_text('Model: \t\t NVIDIA A40\nDevice Minor: \t 3\n')

    def test_open(self):
        for node in NODES:
            # As it comes from a process of oslo.privsep.
            self.opened = {node: ((812, 'python3'),)}
            self.assertEqual(
                [f'process 812 (python3) has {node} open'], self.uses()
            )
        use = host_use.HostUse(self.fake.sysfs)
        self.assertIn('python3', use.reason(ADDRESS))

    def test_of_others(self):
        self.opened = {
            'nvidia0': [(812, 'python3')],
            'dri/card0': [(1, 'Xorg')],
        }
        self.assertEqual([], self.uses())

    def test_the_persistence_daemon(self):
        self.opened = {'nvidia3': [(600, 'nvidia-persiste')]}
        self.assertEqual([], self.uses())

    def test_it_cannot_be_told(self):
        """As on a host whose rootwrap does not know the process."""

        def opened():
            raise processutils.ProcessExecutionError(stderr='Unauthorized')

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.gpu_nodes.opened', opened
            )
        )
        self.assertEqual([], self.uses())


class TestWithoutNodes(GpuProcessesTestCase):
    def test_root_is_not_asked(self):
        self.fake.set(ADDRESS, driver_override='(null)')
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.gpu_nodes.opened', None
            )
        )
        self.assertEqual([], self.uses())


class TestKfd(GpuProcessesTestCase):
    def setUp(self):
        super().setUp()
        self.fake.set(ADDRESS, drm__renderD128__dev='226:128')
        self.kfd = self.fake.root / 'class/kfd/kfd'
        for node, gpu, place in (
            (0, 0, 0),
            (1, 4711, 0x3D11),
            (2, 4712, 0x3D18),
        ):
            directory = self.kfd / f'topology/nodes/{node}'
            directory.mkdir(parents=True)
            (directory / 'gpu_id').write_text(f'{gpu}\n')
            (directory / 'properties').write_text(
                f'cpu_cores_count 0\nlocation_id {place}\ndomain 1\n'
            )

    def memory(self, gpu, amount):
        process = self.kfd / 'proc/812'
        process.mkdir(parents=True, exist_ok=True)
        (process / 'pasid').write_text('32770')
        (process / f'vram_{gpu}').write_text(f'{amount}\n')

    def test_a_process_with_memory(self):
        self.memory(4711, 4096)
        self.assertEqual(['process 812 computes with it'], self.uses())

    def test_it_cannot_be_told(self):
        self.memory(4711, 4096)
        properties = self.kfd / 'topology/nodes/1/properties'
        properties.write_text('location_id many\n')
        self.assertEqual([], self.uses())
        properties.unlink()
        self.assertEqual([], self.uses())

    def test_memory_of_another(self):
        self.memory(4711, 0)
        self.memory(4712, 4096)
        self.memory(9999, 4096)
        self.assertEqual([], self.uses())
