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

"""``discover`` and ``device-spec check`` on recorded hosts, as they print.

NOVA_ACCEL_REWRITE_GOLDEN=1 rewrites what they are to print.
"""

import io
import os
import pathlib

import fixtures
import testscenarios
import testtools
from unit.virt.publishing import previewed

from nova_accel.cmd import manage
from nova_accel.conf import CONF
from nova_accel.virt.publishing import host_preview
from recorded import recordings

_GOLDEN = pathlib.Path(__file__).with_name('answers') / 'commands'

#: Lines of each kind of mistake, for the host with an A2.
_LINES = """[nova_accel]
device_spec = {"address": "0000:08:*.*", "driver": "mdev", "mdev_type": "nvidia-746"}
device_spec = {"vendor_id": "10de", "product_id": "25b6", "driver": "nvidia_gpu"}
device_spec = {"vendor_id": "8086", "product_id": "10fb", "driver": "nic", "physical_network": "physnet1", "sriov_numvfs": 8}
device_spec = {"vendor_id": "8068", "product_id": "10fb", "driver": "pci"}
device_spec = {"address": "0000:05:00.1", "driver": "nvme"}
device_spec = {"vendor_id": "144d", "driver": "nvme"}
"""  # noqa: E501


class CommandTestCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(previewed.in_daemons)
        self.addCleanup(CONF.reset)
        self.addCleanup(CONF.clear)
        self.useFixture(fixtures.FakeLogger())
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def be(self, name: str, has_iommu: bool = True) -> None:
        """Let this host be the recorded one.

        :param has_iommu: whether one that was recorded without an IOMMU gets
            one
        """
        archive = recordings.FOLDER / f'{name}.tar.xz'
        if not archive.exists():
            self.skipTest(f'{archive} is not there')
        host = recordings.unpacked(archive)
        fakes = {
            'host.sysfs_tree.of': lambda _host: host.sysfs,
            # The processes of this machine are not those of the recorded one.
            'privileged.gpu_nodes.opened': lambda: {},
            'virt.publishing.host_preview.of_this_host': lambda: (
                host_preview.Preview(host.libvirt)  # type: ignore[arg-type]
            ),
        }
        if has_iommu:
            fakes['virt.publishing.host_preview._OneLook.look'] = (
                lambda _self: host.devices
            )
        for target, fake in fakes.items():
            self.useFixture(fixtures.MonkeyPatch(f'nova_accel.{target}', fake))
        self.useFixture(fixtures.MonkeyPatch('os.geteuid', lambda: 0))

    def run_command(self, *words: str) -> tuple[int, str]:
        """The exit status, and all that is printed."""
        path = self.directory / 'nova.conf'
        path.write_text(f'[DEFAULT]\nstate_path = {self.directory}\n')
        output = io.StringIO()
        CONF.clear()
        with (
            fixtures.MonkeyPatch('sys.stdout', output),
            fixtures.MonkeyPatch('sys.stderr', output),
        ):
            status = manage.main(['--config-file', str(path), *words])
        return status, output.getvalue()

    def assert_golden(self, name: str, text: str) -> None:
        path = _GOLDEN / f'{name}.txt'
        if os.environ.get('NOVA_ACCEL_REWRITE_GOLDEN'):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        self.assertEqual(path.read_text(), text)

    def file(self, text: str) -> str:
        path = self.directory / 'lines.conf'
        path.write_text(text)
        return str(path)


class TestDiscover(testscenarios.WithScenarios, CommandTestCase):
    name: str

    scenarios = [
        (name, {'name': name})
        for name in (
            'derived-sysfs/xe9680-8xh100',
            'sysfs/fpga-dfl-n6000-sku1',
            'sysfs/hpe-gen9-a2-16vf-3mdev',
            'sysfs/icelake-4nvme-e810',
            'sysfs/nec-aurora-8ve',
        )
    ]

    def test_what_it_prints(self) -> None:
        """Its own lines offer what it says that they do."""
        self.be(self.name)
        status, text = self.run_command('discover')
        self.assertEqual(0, status)
        self.assert_golden(f'discover-{self.name.partition("/")[2]}', text)
        status, checked = self.run_command(
            'device-spec', 'check', self.file(text)
        )
        self.assertEqual((0, False), (status, 'nothing' in checked), checked)


class TestWithoutIommu(CommandTestCase):
    def test_what_discover_prints(self) -> None:
        self.be('derived-sysfs/dgx2-16xv100', has_iommu=False)
        status, text = self.run_command('discover')
        self.assertEqual(1, status)
        self.assert_golden('discover-dgx2-without-iommu', text)

    def test_what_check_prints(self) -> None:
        self.be('derived-sysfs/dgx2-16xv100', has_iommu=False)
        status, text = self.run_command(
            'device-spec',
            'check',
            self.file(
                '[nova_accel]\n'
                'device_spec = {"vendor_id": "10de", "driver": "nvidia_gpu"}\n'
            ),
        )
        self.assertEqual(1, status)
        self.assert_golden('check-dgx2-without-iommu', text)


class TestCheck(CommandTestCase):
    def test_what_it_prints(self) -> None:
        self.be('sysfs/hpe-gen9-a2-16vf-3mdev')
        status, text = self.run_command(
            'device-spec', 'check', self.file(_LINES)
        )
        self.assertEqual(1, status)
        self.assert_golden('check-hpe-gen9-a2-16vf-3mdev', text)
