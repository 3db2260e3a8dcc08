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

import json

import fixtures

from nova_accel import exceptions
from nova_accel.testing import pci_functions
from unit.cmd import base
from unit.virt.publishing import previewed

_function = pci_functions.function

GPU = _function('0000:19:00.0', '10de', '2331')
DRIVE = _function('0000:5e:00.0', '144d', 'a824', class_code='010802')
GPU_LINE = '{"vendor_id": "10de", "driver": "nvidia_gpu"}'
NO_LINE = '{"vendor_id": "8068", "driver": "pci"}'


class DeviceSpecTestCase(base.ManageTestCase):
    """Commands on a host with a GPU and a drive that is its display."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(
            previewed.Previewed(
                [GPU, DRIVE], {str(DRIVE.address): {'boot_vga': '1'}}
            )
        )
        self.euid = 0
        self.useFixture(fixtures.MonkeyPatch('os.geteuid', lambda: self.euid))

    def write(self, *lines: str, name: str = 'lines.conf') -> str:
        path = self.directory / name
        path.write_text(
            '[nova_accel]\n'
            + ''.join(f'device_spec = {line}\n' for line in lines)
        )
        return str(path)


class TestCheck(DeviceSpecTestCase):
    def check(self, *arguments: str, configured: str | None = None) -> int:
        return self.run_command(
            'device-spec', 'check', *arguments, configuration=configured
        )

    def listed(self, *arguments: str) -> list[dict[str, object]]:
        self.check(*arguments, '-f', 'json')
        found: list[dict[str, object]] = json.loads(self.output.getvalue())
        return found

    def test_lines_of_the_configuration(self) -> None:
        self.assertEqual(
            0,
            self.check(configured=f'[nova_accel]\ndevice_spec = {GPU_LINE}\n'),
        )
        self.assertIn('0000:19:00.0', self.output.getvalue())
        self.assertIn(
            'CUSTOM_GPU_NVIDIA_H100_PCIE_80GB', self.output.getvalue()
        )
        self.assertEqual('', self.errors.getvalue())

    def test_lines_of_a_file(self) -> None:
        """Those of the configuration are not checked, nor even read."""
        self.assertEqual(
            0,
            self.check(
                self.write(GPU_LINE),
                configured='[nova_accel]\ndevice_spec = no JSON\n',
            ),
        )

    def test_all_facts_for_programs(self) -> None:
        offered, nothing = self.listed(self.write(GPU_LINE, NO_LINE))
        self.assertEqual(
            {
                'Line': 1,
                'Outcome': 'offered',
                'Address': '0000:19:00.0',
                'Device': '10de:2331',
                'Product': 'NVIDIA H100 PCIe 80GB',
                'Driver': 'nvidia_gpu',
                'Units': '1 x function',
                'Resource class': 'PGPU',
                'Traits': 'CUSTOM_GPU_NVIDIA_H100_PCIE_80GB',
                'Why': '',
            },
            offered,
        )
        self.assertEqual(
            (2, 'matches nothing', None),
            (nothing['Line'], nothing['Outcome'], nothing['Driver']),
        )

    def test_a_line_that_offers_nothing(self) -> None:
        self.assertEqual(1, self.check(self.write(GPU_LINE, NO_LINE)))
        self.assertIn(
            'Line 2: matches nothing: no device has "vendor_id": "8068"',
            self.output.getvalue(),
        )
        self.assertEqual(
            f'Line 2 offers nothing: {NO_LINE}\n', self.errors.getvalue()
        )

    def test_what_the_host_uses(self) -> None:
        line = '{"vendor_id": "144d", "driver": "nvme"}'
        self.assertEqual(1, self.check(self.write(line)))
        self.assertIn(
            'Line 1: 0000:5e:00.0 faulty: the host itself uses 0000:5e:00.0',
            self.output.getvalue(),
        )

    def test_nova_compute_would_not_start(self) -> None:
        line = '{"vendor_id": "10de", "drivr": "pci"}'
        self.assertEqual(2, self.check(self.write(line)))
        self.assertEqual('', self.output.getvalue())
        self.assertTrue(
            self.errors.getvalue().startswith(
                f'[nova_accel] device_spec = {line}: '
            )
        )
        self.assertIn('(did you mean "driver"?)', self.errors.getvalue())

    def test_no_line(self) -> None:
        self.assertEqual(1, self.check())
        self.assertEqual('', self.output.getvalue())
        self.assertIn(
            'The configuration has no line of [nova_accel] device_spec: '
            '"nova-accel-manage discover" writes lines',
            self.errors.getvalue(),
        )

    def test_no_file(self) -> None:
        self.assertEqual(2, self.check('/no/such/file'))
        self.assertIn(
            '/no/such/file cannot be read: there is no such file',
            self.errors.getvalue(),
        )

    def test_a_file_of_another_form(self) -> None:
        path = self.directory / 'lines.conf'
        path.write_text(f'{GPU_LINE}\n')
        self.assertEqual(2, self.check(str(path)))
        self.assertIn(
            'It must have the form of nova.conf: [nova_accel], and below it '
            'device_spec = {...}',
            self.errors.getvalue(),
        )

    def test_another_user_sees_less(self) -> None:
        self.euid = 42
        self.assertEqual(0, self.check(self.write(GPU_LINE)))
        self.assertIn('Run it as root', self.errors.getvalue())

    def test_no_libvirt(self) -> None:
        def refuse() -> None:
            raise exceptions.DeviceError('libvirt does not answer')

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.virt.publishing.host_preview.of_this_host', refuse
            )
        )
        for command in (
            ('device-spec', 'check', self.write(GPU_LINE)),
            ('discover',),
        ):
            self.assertEqual(2, self.run_command(*command))
        self.assertEqual(
            'libvirt does not answer\n' * 2, self.errors.getvalue()
        )


class TestDiscover(DeviceSpecTestCase):
    def test_lines_in_the_form_of_nova_conf(self) -> None:
        self.assertEqual(0, self.run_command('discover'))
        self.assertEqual(
            [
                '[nova_accel]',
                '',
                '# NVIDIA H100 PCIe 80GB (10de:2331): 0000:19:00.0',
                '# Offered: 1 x PGPU',
                '# Other drivers for it: pci',
                'device_spec = {"vendor_id": "10de", "product_id": "2331", '
                '"driver": "nvidia_gpu"}',
                '',
                '# Samsung PM173X (144d:a824): 0000:5e:00.0',
                '# Offered: nothing',
                '# 0000:5e:00.0 faulty: the host itself uses 0000:5e:00.0: it '
                'is the display that the host has booted with; to free it, '
                'have the firmware boot with another display, or bind it to '
                'vfio-pci before its driver, with the kernel parameter '
                'vfio-pci.ids',
                '# each drive is erased before its first guest gets it',
                '# device_spec = {"vendor_id": "144d", "product_id": "a824", '
                '"driver": "nvme"}',
            ],
            self.output.getvalue().splitlines(),
        )

    def test_the_other_command_takes_it(self) -> None:
        self.assertEqual(0, self.run_command('discover'))
        path = self.directory / 'discovered.conf'
        path.write_text(self.output.getvalue())
        self.assertEqual(
            0, self.run_command('device-spec', 'check', str(path))
        )

    def test_for_programs(self) -> None:
        self.run_command('discover', '-f', 'json')
        gpu, drive = json.loads(self.output.getvalue())
        self.assertEqual(
            {
                'Device': '10de:2331',
                'Product': 'NVIDIA H100 PCIe 80GB',
                'Type': 'GPU',
                'Addresses': '0000:19:00.0',
                'Offered': '1 x PGPU',
                'Driver': 'nvidia_gpu',
                'Other drivers': 'pci',
                'Line': (
                    'device_spec = {"vendor_id": "10de", "product_id": '
                    '"2331", "driver": "nvidia_gpu"}'
                ),
                'Why': '',
            },
            gpu,
        )
        self.assertEqual('', drive['Offered'])
        self.assertIn('the host itself uses', drive['Why'])

    def test_a_host_without_accelerators(self) -> None:
        self.useFixture(previewed.Previewed([]))
        self.assertEqual(1, self.run_command('discover'))
        self.assertIn('# This host has no device', self.output.getvalue())
