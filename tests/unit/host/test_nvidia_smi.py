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

from unittest import mock

from oslo_concurrency import processutils
import testtools

from nova_accel import exceptions
from nova_accel.host import nvidia_smi
from nova_accel.model import pci_address

XML = '''<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <gpu id="00000000:1B:00.0">
    <uuid>GPU-1</uuid>
    <gpu_module_id>2</gpu_module_id>
    <fabric><state>N/A</state></fabric>
  </gpu>
  <gpu id="00000000:43:00.0">
    <uuid>GPU-2</uuid>
    <platformInfo><module_id>N/A</module_id></platformInfo>
  </gpu>
  <gpu id="00000000:52:00.0">
    <uuid>GPU-3</uuid>
    <platformInfo><module_id>7</module_id></platformInfo>
    <fabric><state>Completed</state></fabric>
  </gpu>
</nvidia_smi_log>
'''

LINKS = '''GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)
\t Link 0: Remote Device 00000000:C5:00.0: Link 3
\t Link 1: <inactive>
GPU 1: NVIDIA H100 PCIe (UUID: GPU-2)
         Link 0: Remote Device 00000000:52:00.0: Link 0
         Link 1: Remote Device 00000000:52:00.0: Link 1
GPU 2: NVIDIA H200 (UUID: GPU-3)
'''


def address(bus):
    return pci_address.PciAddress(0, bus, 0, 0)


class TestParsed(testtools.TestCase):
    def test_gpus(self):
        self.assertEqual(
            (
                # Only what its links end at tells that it is on a board.
                nvidia_smi.Gpu(
                    address(0x1B), 2, frozenset({address(0xC5)}), True
                ),
                nvidia_smi.Gpu(
                    address(0x43), None, frozenset({address(0x52)}), False
                ),
                nvidia_smi.Gpu(address(0x52), 7, frozenset(), True),
            ),
            nvidia_smi.parsed(XML, LINKS),
        )

    def test_no_links(self):
        first, *_others = nvidia_smi.parsed(XML, '')
        self.assertEqual((2, frozenset(), False), first[1:])

    def test_what_is_malformed_is_left_out(self):
        found = nvidia_smi.parsed(
            '<nvidia_smi_log><gpu id="x"/><gpu/>'
            '<gpu id="0000:01:00.0"><uuid>GPU-1</uuid>'
            '<gpu_module_id>999</gpu_module_id></gpu></nvidia_smi_log>',
            'Link 0\nGPU 0: x (UUID: GPU-1)\n'
            '  Link 0: Remote Device ::.: Link 0\n',
        )
        self.assertEqual((nvidia_smi.Gpu(address(1), None),), found)

    def test_no_xml(self):
        for text in ('', 'No devices were found', '<gpu>'):
            self.assertRaises(
                exceptions.DeviceError, nvidia_smi.parsed, text, LINKS
            )

    def test_entities_are_not_followed(self):
        found = nvidia_smi.parsed(
            '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
            '<a><gpu id="0000:01:00.0"><gpu_module_id>&e;</gpu_module_id>'
            '</gpu></a>',
            '',
        )
        self.assertEqual((nvidia_smi.Gpu(address(1), None),), found)


class TestGpus(testtools.TestCase):
    def gpus(self, **execute):
        with mock.patch.object(
            processutils, 'execute', autospec=True, **execute
        ) as self.execute:
            return nvidia_smi.gpus()

    def test_both_commands(self):
        self.assertEqual(
            nvidia_smi.parsed(XML, LINKS),
            self.gpus(side_effect=[(XML, ''), (LINKS, '')]),
        )
        self.assertEqual(
            [
                ('nvidia-smi', '-q', '-x'),
                ('nvidia-smi', 'nvlink', '-R'),
            ],
            [call.args[3:] for call in self.execute.mock_calls],
        )

    def test_failures(self):
        for failure, text in (
            (
                processutils.ProcessExecutionError(
                    stdout='no driver', exit_code=9
                ),
                'exit status 9, no driver',
            ),
            (FileNotFoundError(2, 'No such file'), 'No such file'),
            ([('x' * (nvidia_smi.MAX_ANSWER + 1), '')], 'characters'),
        ):
            error = self.assertRaises(
                exceptions.DeviceError, self.gpus, side_effect=failure
            )
            self.assertIn(text, str(error))
