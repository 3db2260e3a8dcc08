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

"""What is read of recorded texts of vendors' tools and drivers."""

import lzma
import pathlib
import shutil

import fixtures
import testtools

from nova_accel.host import nvidia_smi
from nova_accel.host import sysfs_tree
from nova_accel.host import vfio_vgpu
from nova_accel.model import pci_address
from recorded import recordings

_VF = pci_address.PciAddress.parse('0000:3d:00.4')


def _told(gpus: tuple[nvidia_smi.Gpu, ...]) -> dict[str, object]:
    return {str(gpu.address): [gpu.module_id, gpu.has_fabric] for gpu in gpus}


class TestNvidiaSmi(testtools.TestCase):
    def test_gpus(self) -> None:
        """Address -> module id, and whether it is on a board of NVSwitches."""
        found = {
            name: _told(nvidia_smi.parsed(text, ''))
            for name, text in recordings.texts('nvidia-smi-q-x').items()
        }
        self.assertEqual(recordings.answers('texts')['nvidia-smi-q-x'], found)

    def test_links(self) -> None:
        """The peers of a GPU, whose own XML was not recorded."""
        texts = recordings.texts('nvidia-smi-nvlink-R')
        answers = recordings.answers('texts')['nvidia-smi-nvlink-R']
        self.assertEqual(set(answers), set(texts))
        for name, answer in answers.items():
            xml = (
                '<nvidia_smi_log><gpu id="00000000:01:00.0">'
                f'<uuid>{answer["uuid"]}</uuid></gpu></nvidia_smi_log>'
            )
            [gpu] = nvidia_smi.parsed(xml, texts[name])
            self.assertEqual(answer['peers'], sorted(map(str, gpu.peers)))
            self.assertTrue(gpu.has_fabric)


class TestVfioVgpu(testtools.TestCase):
    def test_types_of_a_function(self) -> None:
        recorded = recordings.FOLDER / 'vfio-vgpu'
        answers = recordings.answers('texts')['vfio-vgpu']
        self.assertEqual(
            set(answers), {path.name for path in recorded.iterdir()}
        )
        for name, answer in answers.items():
            root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
            shutil.copytree(
                recorded / name, root / 'bus/pci/devices' / str(_VF) / 'nvidia'
            )
            vgpus = vfio_vgpu.VfioVgpu(sysfs_tree.Sysfs(root))
            types = vgpus.types(_VF)
            self.assertEqual(answer['types'], len(types))
            self.assertEqual(
                answer['some'],
                {each: types.get(each) for each in answer['some']},
            )
            self.assertEqual(answer['current'], vgpus.current(_VF))


class TestSources(testtools.TestCase):
    def test_all_can_be_read(self) -> None:
        """The texts that hosts were derived from are whole."""
        for path in recordings.FOLDER.glob('*/*.xz'):
            self.assertTrue(lzma.decompress(path.read_bytes()), path)
