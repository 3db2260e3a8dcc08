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
import re
import threading
import time

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.host import nvidia_smi
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs

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

    def test_states_of_the_fabric(self):
        for state, status, expected in (
            ('Completed', 'Success', True),
            ('Completed', 'Insufficient Resources', True),
            ('In Progress', 'N/A', True),
            ('Not Started', 'N/A', True),
            ('Not Supported', 'N/A', False),
            ('N/A', 'N/A', False),
            ('', '', False),
        ):
            [gpu] = nvidia_smi.parsed(
                '<gpu id="0000:01:00.0"><fabric>'
                f'<state> {state}\n</state><status>{status}</status>'
                '</fabric></gpu>',
                '',
            )
            self.assertIs(expected, gpu.has_fabric, state)

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

    def test_no_gpu(self):
        for text in ('', 'No devices were found', '<gpu>', '<gpu id='):
            self.assertEqual((), nvidia_smi.parsed(text, LINKS))

    def test_what_is_no_xml_costs_no_gpu(self):
        expected = nvidia_smi.parsed(XML, LINKS)
        for junk in (
            '\ufffd',
            '\0\x1b[2J\udcff',
            'a<b & "c" \'d\'',
            '<process>&#0;&#xd800;</proces>',
            '</processes></gpus><!-- ]]> <![CDATA[',
            '<?xml version="1.0"?>',
        ):
            name = f'<name>{junk}</name>'
            first, *others = XML.partition('</gpu>')
            texts = [first + name + ''.join(others)]
            if '</' not in junk:
                # All that the GPU says comes after the name.
                texts.append(re.sub('(<gpu id=.*?>)', rf'\1{name}', XML))
            for text in texts:
                self.assertEqual(
                    expected, nvidia_smi.parsed(text, LINKS), repr(junk)
                )

    def test_a_gpu_whose_end_is_missing(self):
        lost = 'GPU is lost.  Reboot the system to recover this GPU\n'
        _first, *others = nvidia_smi.parsed(XML, LINKS)
        found = nvidia_smi.parsed(XML.replace('</gpu>', lost, 1), LINKS)
        self.assertEqual(
            [(gpu.address, gpu.module_id) for gpu in others],
            [(gpu.address, gpu.module_id) for gpu in found],
        )
        cut = XML[: XML.index('<gpu id="00000000:52')] + '<gpu id="0000'
        self.assertEqual(
            [address(0x1B), address(0x43)],
            [gpu.address for gpu in nvidia_smi.parsed(cut + lost, LINKS)],
        )

    def test_entities_are_not_followed(self):
        found = nvidia_smi.parsed(
            '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
            '<a><gpu id="0000:01:00.0"><gpu_module_id>&e;</gpu_module_id>'
            '</gpu></a>',
            '',
        )
        self.assertEqual((nvidia_smi.Gpu(address(1), None),), found)


class ProgramTestCase(testtools.TestCase):
    """With a program that answers as the real one does."""

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(
            fixtures.EnvironmentVariable(
                'PATH', f'{self.directory}:{os.environ["PATH"]}'
            )
        )
        self.log = self.directory / 'log'
        self.answer('', XML)
        self.answer('nvlink', LINKS)

    def answer(self, name, output, status=0):
        """Answer the arguments that begin so, the longest first."""
        (self.directory / f'answer {name}').write_bytes(
            output if isinstance(output, bytes) else output.encode()
        )
        (self.directory / f'status {name}').write_text(str(status))
        self.program(
            f'cd {self.directory}; case "$*" in\n'
            + ''.join(
                f'{key!r}*) n={key!r};;\n'
                for key in sorted(
                    (
                        path.name.removeprefix('answer ')
                        for path in self.directory.glob('answer *')
                    ),
                    key=len,
                    reverse=True,
                )
            )
            + 'esac\ncat "answer $n"; exit $(cat "status $n")'
        )

    def program(self, text):
        path = self.directory / 'nvidia-smi'
        path.write_text(f'#!/bin/sh\necho "$*" >>{self.log}\n{text}\n')
        path.chmod(0o755)

    def alone(self, bus, number):
        """Answer for one GPU, with what it says among all."""
        self.answer(
            f'-q -x -i 0000:{bus}:00.0',
            f'<log><gpu {XML.split("<gpu ")[number]}',
        )
        self.answer(f'nvlink -R -i 0000:{bus}:00.0', LINKS)


#: Of an RTX PRO 6000 Blackwell, with driver 580.
TYPES = """\
GPU 00000000:8C:00.0
    vGPU Type ID                          : 0x5ee
        Name                              : NVIDIA RTX Pro 6000 DC-2B
        Class                             : NVS
        GPU Instance Profile ID           : N/A
        Max Instances                     : 32
        Max Instances Per VM              : 1
        Max Instances Per GI              : N/A
        FB Memory                         : 2048 MiB
    vGPU Type ID                          : 0x60a
        Name                              : NVIDIA RTX Pro 6000 DC-1-2Q
        Class                             : Quadro
        GPU Instance Profile ID           : 19
        Max Instances                     : 48
        Max Instances Per VM              : 1
        Max Instances Per GI              : 1
        FB Memory                         : 2048 MiB
"""


class TestVgpuTypes(ProgramTestCase):
    arguments = 'vgpu -s -v -i 0000:8c:00.0'

    def test_types(self):
        self.answer(self.arguments, TYPES)
        self.assertEqual(
            (
                nvidia_smi.VgpuType('1546', 'NVIDIA RTX Pro 6000 DC-1-2Q', 48),
                nvidia_smi.VgpuType('1518', 'NVIDIA RTX Pro 6000 DC-2B', 32),
            ),
            nvidia_smi.vgpu_types(address(0x8C)),
        )

    def test_a_type_that_is_not_told_to_its_end(self):
        first, second = TYPES.split('    vGPU Type ID')[1:]
        for wrong in (
            second[:90],
            second.replace('0x60a', '0x'),
            second.replace(': 48', ': 0'),
            second.replace('Max Instances  ', 'Max'),
            second.replace(': 48', ': \u0664'),
        ):
            self.answer(
                self.arguments,
                f'GPU 0\n    vGPU Type ID{first}    vGPU Type ID{wrong}',
            )
            [found] = nvidia_smi.vgpu_types(address(0x8C))
            self.assertEqual('1518', found.number, wrong)

    def test_no_types(self):
        for text, status in (
            ('', 0),
            ('No supported devices in vGPU mode\n', 0),
            (TYPES, 255),
        ):
            self.answer(self.arguments, text, status=status)
            self.assertRaises(
                exceptions.DeviceError,
                nvidia_smi.vgpu_types,
                address(0x8C),
            )


class TestGpus(ProgramTestCase):
    def test_the_ecc_mode_of_a_card(self):
        arguments = '-q -x -i 0000:1b:00.0'
        for told in ('Enabled', 'Disabled', 'N/A'):
            self.answer(
                arguments,
                '<log><gpu id="00000000:1B:00.0"><ecc_mode><current_ecc>'
                f'{told}</current_ecc></ecc_mode></gpu></log>',
            )
            self.assertEqual(
                {address(0x1B): told}, nvidia_smi.ecc_modes([address(0x1B)])
            )
        for output in (
            '',
            '<log><gpu id="00000000:1B:00.0"><ecc_mode/></gpu></log>',
            '<log><gpu id="00000000:43:00.0"><ecc_mode><current_ecc>Enabled'
            '</current_ecc></ecc_mode></gpu></log>',
        ):
            self.answer(arguments, output, status=15)
            error = self.assertRaises(
                exceptions.DeviceError, nvidia_smi.ecc_modes, [address(0x1B)]
            )
            self.assertIn('does not tell the ECC mode', str(error))

    def test_the_ecc_modes_of_several_cards(self):
        """Nova waits for a live migration, so it is one call."""
        cards = [address(0x1B), address(0x43), address(0x52)]
        mode = '<ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode></gpu>'
        self.answer('-q -x', XML.replace('</gpu>', mode))
        self.assertEqual(
            dict.fromkeys(cards, 'Enabled'), nvidia_smi.ecc_modes(cards)
        )
        self.assertEqual(['-q -x'], self.log.read_text().splitlines())
        self.answer('-q -x', XML.replace('</gpu>', mode, 1))
        error = self.assertRaises(
            exceptions.DeviceError, nvidia_smi.ecc_modes, cards
        )
        self.assertIn('0000:43:00.0', str(error))

    def test_both_commands(self):
        self.assertEqual(nvidia_smi.parsed(XML, LINKS), nvidia_smi.gpus())
        self.assertEqual(
            ['-q -x', 'nvlink -R'], self.log.read_text().splitlines()
        )

    def test_the_name_of_a_process(self):
        self.answer(
            '',
            XML.encode().replace(
                b'</gpu>',
                b'<process_name>\xff\x01\x1b[0m</process_name></gpu>',
            ),
        )
        self.assertEqual(nvidia_smi.parsed(XML, LINKS), nvidia_smi.gpus())

    def test_one_is_lost(self):
        """The tool says nothing of the others, or a part of it."""
        lost = (
            'Unable to determine the device handle for GPU0000:1B:00.0: '
            'GPU is lost.  Reboot the system to recover this GPU\n'
        )
        self.alone('43', 2)
        self.alone('52', 3)
        everything = nvidia_smi.parsed(XML, LINKS)[1:]
        for output in (
            lost,
            XML.replace('</gpu>', lost, 1),
            XML.partition('<gpu id="00000000:52')[0].replace('</gpu>', lost, 1)
            + lost,
        ):
            for status in (15, 255):
                self.answer('', output, status)
                self.answer('nvlink -R -i 0000:1b', lost, status)
                self.answer('-q -x -i 0000:1b', lost, status)
                found = nvidia_smi.gpus(map(address, (0x1B, 0x43, 0x52)))
                self.assertEqual(
                    [(gpu.address, gpu.module_id) for gpu in everything],
                    [(gpu.address, gpu.module_id) for gpu in found],
                )

    def test_links_that_are_not_told_are_not_down(self):
        self.answer('nvlink', 'GPU is lost', 15)
        self.alone('43', 2)
        found = nvidia_smi.gpus([address(0x43), address(0x52)])
        # The other end is a GPU, though it is not told: no NVSwitch.
        self.assertEqual(
            (
                nvidia_smi.Gpu(
                    address(0x43), None, frozenset({address(0x52)}), False
                ),
            ),
            found,
        )

    def test_failures(self):
        for program, text in (
            ('echo no driver; exit 9', 'exit status 9, no driver'),
            ('exit 0', 'exit status 0'),
            ('printf "\\033[2J" >&2; exit 1', r'\x1b'),
            ('exec sleep 60', 'exit status 124'),
            ('exec cat /dev/zero', 'bytes of output'),
        ):
            self.program(program)
            self.useFixture(
                fixtures.MonkeyPatch(
                    'nova_accel.host.nvidia_smi.TIMEOUT_S',
                    1 if 'sleep' in program else 20,
                )
            )
            error = self.assertRaises(exceptions.DeviceError, nvidia_smi.gpus)
            self.assertIn(text, str(error))


class TestKeptAway(ProgramTestCase):
    """The tool has all GPUs open while it runs."""

    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        self.fake.identify(address(0x1B), '10de', '2330')
        self.fake.identify(address(0x3D), '8086', '37c9')
        for name, value in (
            ('_turns', nvidia_smi._Turns()),
            ('_GIVES_WAY_S', 0.1),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.host.nvidia_smi.{name}', value
                )
            )

    def kept_away(self, bus=0x1B):
        return nvidia_smi.kept_away(self.fake.sysfs, [address(bus)])

    def test_no_call_begins_during_a_start(self):
        with self.kept_away(), self.kept_away():
            error = self.assertRaises(exceptions.DeviceError, nvidia_smi.gpus)
        self.assertIn('while a guest is started', str(error))
        self.assertFalse(self.log.exists())
        self.assertEqual(3, len(nvidia_smi.gpus()))

    def test_a_call_waits_for_a_start(self):
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.host.nvidia_smi._GIVES_WAY_S', 20)
        )
        away = self.kept_away()
        away.__enter__()
        timer = threading.Timer(0.3, lambda: away.__exit__(None, None, None))
        timer.start()
        self.addCleanup(timer.join)
        self.assertEqual(3, len(nvidia_smi.gpus()))
        self.assertTrue(timer.finished.is_set())

    def test_others_do_not_care(self):
        with self.kept_away(0x3D), self.kept_away(0x77):
            self.assertEqual(3, len(nvidia_smi.gpus()))

    def run_slowly(self):
        """A call in a thread, that has begun when this returns."""
        begun, ended = self.directory / 'begun', self.directory / 'ended'
        self.program(f'touch {begun}; sleep 1; touch {ended}; exit 1')
        thread = threading.Thread(
            target=lambda: self.assertRaises(
                exceptions.DeviceError, nvidia_smi.gpus
            )
        )
        thread.start()
        self.addCleanup(thread.join)
        while not begun.exists():
            time.sleep(0.01)
        return ended

    def test_a_start_waits_for_a_call(self):
        ended = self.run_slowly()
        with self.kept_away():
            self.assertTrue(ended.exists())

    def test_a_call_without_end_is_killed_first(self):
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.host.nvidia_smi.TIMEOUT_S', 1)
        )
        thread = threading.Thread(
            target=lambda: self.assertRaises(
                exceptions.DeviceError, nvidia_smi.gpus
            )
        )
        self.program(f'echo $$ >{self.directory}/pid; exec sleep 60')
        thread.start()
        self.addCleanup(thread.join)
        pid = self.directory / 'pid'
        while not pid.exists() or not pid.read_text():
            time.sleep(0.01)
        with self.kept_away():
            process = pathlib.Path('/proc', pid.read_text().strip(), 'stat')
            self.assertTrue(
                not process.exists() or ') Z ' in process.read_text()
            )

    def test_a_wait_has_an_end(self):
        ended = self.run_slowly()
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.host.nvidia_smi._WAIT_S', 0.1)
        )
        error = self.assertRaises(
            exceptions.DeviceError, self.kept_away().__enter__
        )
        self.assertFalse(ended.exists())
        self.assertIn('restart nova-compute', str(error))

    def test_one_that_cannot_be_killed(self):
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.host.nvidia_smi._WAIT_S', 0.1)
        )
        with fixtures.MonkeyPatch(
            'nova_accel.privileged.vendor_tool.run', _stuck
        ):
            self.assertRaises(exceptions.DeviceError, nvidia_smi.gpus)
        self.assertRaises(exceptions.DeviceError, self.kept_away().__enter__)
        with self.kept_away(0x3D):
            pass


def _stuck(*_arguments, **_options):
    raise TimeoutError('the kernel is still working')
