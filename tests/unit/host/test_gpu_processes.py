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
NODES = (
    'nvidia3',
    'nvidia-caps/nvidia-cap12',
    'nvidia-caps/nvidia-cap13',
    'dri/card1',
    'dri/renderD129',
    'accel/accel0',
    'accel/accel_controlD0',
    'hl2',
    'davinci5',
    'infiniband/uverbs4',
    'infiniband/umad6',
    'infiniband/issm6',
    'mei1',
)


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

    def uses(self, address=ADDRESS):
        """What was seen, without the cures."""
        return [
            text.partition('; to free it, ')[0]
            for text in gpu_processes.GpuProcesses(self.fake.sysfs).uses(
                address
            )
        ]


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
            accel__accel_controlD0__dev='261:1',
            habanalabs__hl2__dev='1:1',
            davinci__davinci5__dev='1:2',
            infiniband_verbs__uverbs4__dev='231:196',
            infiniband_mad__umad6__dev='231:6',
            infiniband_mad__issm6__dev='231:70',
            **{'xe.mei-gscfi.768__mei__mei1__dev': '511:1'},
        )
        for path, minor in (('gi1/access', 12), ('gi1/ci0/access', 13)):
            access = self.fake.proc / 'driver/nvidia/capabilities/gpu3/mig'
            (access / path).parent.mkdir(parents=True, exist_ok=True)
            (access / path).write_text(f'DeviceFileMinor: {minor}\n')
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
            'infiniband/uverbs0': [(2, 'nvlsm')],
            'mei0': [(3, 'lms')],
        }
        self.assertEqual([], self.uses())

    def test_the_persistence_daemon(self):
        self.opened = {'nvidia3': [(600, 'nvidia-persiste')]}
        self.assertEqual(
            ['process 600 (nvidia-persiste) has nvidia3 open'], self.uses()
        )

    def test_the_culprit_and_the_cure(self):
        for command, node, cure in (
            (
                'nvidia-persiste',
                'nvidia3',
                'disable --now nvidia-persistenced',
            ),
            ('nv-hostengine', 'nvidia3', 'disable --now nvidia-dcgm'),
            ('nvlsm', 'infiniband/umad6', 'remove the function from device_s'),
            ('Xorg', 'dri/card1', 'set-default multi-user.target'),
            ('mine\n\udcff', 'hl2', 'end the process'),
        ):
            self.opened = {node: [(600, command)]}
            reason = host_use.HostUse(self.fake.sysfs).reason(ADDRESS)
            self.assertIn(cure, reason)
            self.assertIn(f'process 600 ({command[:4]}', reason)
            self.assertTrue(reason.isprintable(), reason)

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
        """Of one GPU, which costs no other."""
        self.memory(4711, 4096)
        properties = self.kfd / 'topology/nodes/0/properties'
        for spoil in (
            lambda: properties.write_text('location_id many\n'),
            lambda: properties.write_bytes(b'\xff\0'),
            properties.unlink,
            properties.mkdir,
        ):
            spoil()
            self.assertEqual(['process 812 computes with it'], self.uses())

    def test_memory_of_another(self):
        self.memory(4711, 0)
        self.memory(4712, 4096)
        self.memory(9999, 4096)
        self.assertEqual([], self.uses())


class TestPartitions(GpuProcessesTestCase):
    """Two GPUs of four partitions, and one at another domain."""

    FIRST, SECOND, THIRD = map(
        pci_address.PciAddress.parse,
        ('0000:0a:00.0', '0000:0b:00.0', '0001:0a:00.0'),
    )

    def setUp(self):
        super().setUp()
        self.kfd = self.fake.root / 'class/kfd/kfd'
        for number, gpu in enumerate((self.FIRST, self.SECOND, self.THIRD)):
            self.fake.set(gpu, drm__renderD128__dev='226:128')
            for partition in range(4):
                node = self.kfd / f'topology/nodes/{number * 4 + partition}'
                node.mkdir(parents=True)
                (node / 'gpu_id').write_text(f'{number}00{partition}\n')
                (node / 'properties').write_text(
                    f'location_id {(gpu.bus << 8) + partition}\n'
                    f'domain {gpu.domain}\n'
                    f'drm_render_minor {130 + number * 8 + partition}\n'
                )

    def test_a_process_on_any_partition(self):
        for partition in range(4):
            process = self.kfd / f'proc/{900 + partition}'
            process.mkdir(parents=True)
            (process / f'vram_100{partition}').write_text('4096\n')
            self.assertEqual([], self.uses(self.FIRST))
            self.assertEqual([], self.uses(self.THIRD))
            self.assertIn(
                f'process {900 + partition} computes with it',
                self.uses(self.SECOND),
            )

    def test_a_render_node_of_any_partition(self):
        for partition in range(4):
            node = f'dri/renderD{138 + partition}'
            self.opened = {node: [(7, 'python3')]}
            self.assertEqual([], self.uses(self.FIRST))
            self.assertEqual([], self.uses(self.THIRD))
            self.assertEqual(
                [f'process 7 (python3) has {node} open'],
                self.uses(self.SECOND),
            )
