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

"""Each function of the processes of root, with arguments of an attacker.

Whoever has taken over nova-compute calls them with any arguments, and may have
put anything into the cache of bitstreams.
"""

import collections
import importlib
import math
import mmap
import os
import pathlib
import pkgutil
import struct

import fixtures
from oslo_privsep import priv_context

from nova_accel import privileged
from nova_accel.privileged import fabric_manager
from nova_accel.privileged import fpga
from nova_accel.privileged import gpu_nodes
from nova_accel.privileged import mig
from nova_accel.privileged import nvme
from nova_accel.privileged import pci_attributes
from nova_accel.privileged import qat
from nova_accel.testing import driver_conformance
from unit.drivers import fake_fpga
from unit.privileged import drive_tree
from unit.privileged import tree

#: The host's own NIC, and a bridge; no line offers them.
NIC, BRIDGE = '0000:5e:00.0', '0000:00:1c.0'

CARD, DFL, USER, MANAGEMENT = (
    f'0000:4{number}:00.{function}'
    for number, function in ((1, 0), (2, 0), (3, 1), (3, 0))
)
VIRTUAL = '0000:41:00.4'
GPU = '0000:45:00.0'

#: Of any argument.
_OTHER_TYPES = (None, True, b'0000:41:00.0', {'a': 1}, object(), -1.5)

_NUMBERS = (-1, 2**32, 2**63, 10**40, '1', 1.0, math.nan, [1], *_OTHER_TYPES)

_HOSTILE = {
    'address': (
        '0000:99:00.0',
        NIC,
        BRIDGE,
        '',
        '..',
        f'../devices/{NIC}',
        f'{CARD}/../{NIC}',
        f'{CARD}\n',
        '-h',
        'a' * 10**6,
        7,
        [CARD],
        *_OTHER_TYPES,
    ),
    'manager': ('', '..', 'fpga0/..', '../fpga0', 'a' * 10**6, *_OTHER_TYPES),
    'timeout_s': (
        *(0, -1, 10**9, math.nan, math.inf, '60', [60]),
        *_OTHER_TYPES,
    ),
    'attribute': ('remove', '../reset', '', 'a' * 10**6, *_OTHER_TYPES),
    'value': ('0', '-1', '2', '', '1\n', '9' * 10**6, 1, *_OTHER_TYPES),
    'serial': ('', 'S1', 'S' * 10**6, *_OTHER_TYPES),
    'namespace_id': (0, 0xFFFFFFFF, *_NUMBERS),
    'action': (0, 1, 5, *_NUMBERS),
    'flbas': (0x80, *_NUMBERS),
    'dps': (0x10, *_NUMBERS),
    'is_on': (2, *_NUMBERS),
    'are_there': (2, *_NUMBERS),
    'what': ('-dgi', '', '-lgi -h', 'a' * 10**6, *_OTHER_TYPES),
    'profile': _NUMBERS,
    'start': _NUMBERS,
    'instance': _NUMBERS,
    'number': (64, *_NUMBERS),
    'numbers': ([64], [1] * 65, ['1'], [[1]], '1', *_OTHER_TYPES),
    'functions': (
        ['0000:99:00.0'],
        [NIC],
        [CARD],
        ['--help'],
        [VIRTUAL] * 2,
        [VIRTUAL] * 17,
        [7],
        VIRTUAL,
        *_OTHER_TYPES,
    ),
}

#: What an error calls an argument, if not by its name.
_CALLED = {
    'shell': 'bitstream',
    'number': 'partition',
    'numbers': ('numbers', 'partition'),
    'functions': ('functions', 'address'),
}

_DRIVE = {'address': drive_tree.ADDRESS, 'serial': drive_tree.SERIAL}

_TOOL = """#!/bin/sh
echo "$0 $*" >>{log}
PATH={path} head -c 4096 /dev/zero
"""


class TestEveryFunction(drive_tree.DriveTestCase):
    def setUp(self):
        super().setUp()
        self.run_directory = self.root / 'run'
        self.run_directory.mkdir()
        for name, value in (
            ('fpga.SYSFS', self.root),
            ('fpga.RUN', self.run_directory),
            ('fpga.FIRMWARE', self.root / 'firmware'),
            ('fabric_manager.SYSFS', self.root),
            ('fabric_manager.RUN', self.run_directory),
            ('mig.SYSFS', self.root),
            ('mig.RUN', self.run_directory),
            ('pci_attributes.ROOT', self.root),
            ('qat.SYSFS', self.root),
            ('qat.DEBUGFS', self.root / 'debug'),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(f'nova_accel.privileged.{name}', value)
            )
        self.have_tools()
        self.have_functions()
        self.have_cache()
        for context in _contexts():
            self.addCleanup(context.set_client_mode, True)
            context.set_client_mode(False)

    def have_tools(self):
        """Whatever is started writes into the log."""
        self.log = self.root / 'log'
        tools = self.root / 'bin'
        tools.mkdir()
        for name in (
            *('flock', 'timeout', 'tee', 'nvme', 'fmpm', 'fpgasupdate'),
            *('xrt-smi', 'xbutil', 'xbmgmt', 'nvidia-smi'),
        ):
            (tools / name).write_text(
                _TOOL.format(log=self.log, path=os.defpath)
            )
            (tools / name).chmod(0o755)
        self.useFixture(fixtures.EnvironmentVariable('PATH', str(tools)))
        tree.configure(
            self,
            fabric_manager='127.0.0.1:6666',
            fabric_manager_command=str(tools / 'fmpm'),
        )

    def have_functions(self):
        card = self.add(CARD, 'acme-fpga')
        (card / 'fpga_manager/fpga0').mkdir(parents=True)
        (card / 'fpga_manager/fpga0/firmware').write_text('-')
        for address, driver in (
            (DFL, 'dfl-pci'),
            (USER, 'xocl'),
            (MANAGEMENT, 'xclmgmt'),
            (NIC, 'i40e'),
            (BRIDGE, 'pcieport'),
            (GPU, 'nvidia'),
        ):
            self.add(address, driver)
        header = struct.pack('<3Q', 1 << 60, 1, 2)
        bar = self.root / 'bus/pci/devices' / DFL / 'resource0'
        bar.write_bytes(header.ljust(mmap.PAGESIZE, b'-'))
        virtual = self.add(VIRTUAL, physfn=CARD)
        for function in (
            card,
            virtual,
            self.function,
            self.links / NIC,
            self.links / BRIDGE,
        ):
            for name, text in (('reset', '-'), ('sriov_numvfs', '0')):
                (function / name).write_text(text)
        tree.offer(
            self,
            {'address': drive_tree.ADDRESS, 'sriov_numvfs': 8},
            {'address': '0000:41:*.*'},
            {'address': '0000:42:*.*'},
            {'address': '0000:43:*.*', 'driver': 'xrt'},
            {'address': GPU, 'shapes': ['mig:*']},
        )

    def have_cache(self):
        cache, outside = self.root / 'cache', self.root / 'outside'
        for directory in (cache, outside):
            directory.mkdir()
        tree.configure(self, bitstream_cache_directory=str(cache))
        self.gbs, self.xclbin = (
            str(driver_conformance.cached(cache, content))
            for content in (
                fake_fpga.gbs('ce489693-98f0-5f33-946d-560708be108a'),
                fake_fpga.xclbin('ce489693-98f0-5f33-946d-560708be108a'),
            )
        )
        secret = driver_conformance.cached(outside, b'secret')
        link, pipe, directory = (cache / (64 * digit) for digit in 'abc')
        link.symlink_to(secret)
        os.mkfifo(pipe)
        directory.mkdir()
        self.files = (
            *(str(secret), f'{cache}/../outside/{secret.name}', secret.name),
            *map(str, (link, pipe, directory, cache, cache / (64 * 'd'))),
            *('/etc/shadow', '/dev/zero', '/proc/self/mem', '', 'a' * 10**6),
            7,
            *_OTHER_TYPES,
        )

    def uses(self):
        """Each function, with arguments that it takes."""
        limit = {'timeout_s': 60}
        file = {'bitstream': self.gbs, **limit}
        images = {'bitstream': self.xclbin, **limit}
        shell = {'shell': self.xclbin, **limit}
        reset = {'attribute': 'reset', 'value': '1'}
        return (
            (
                fpga.load_firmware,
                {'address': CARD, 'manager': 'fpga0', **file},
            ),
            (fpga.fpgasupdate, {'address': DFL, **file}),
            (fpga.afu_id, {'address': DFL}),
            (fpga.xbutil, {'address': USER, **images}),
            (fpga.xbmgmt, {'address': MANAGEMENT, **shell}),
            (nvme.identify, _DRIVE),
            (nvme.allocated_namespaces, _DRIVE),
            (nvme.controllers, _DRIVE),
            (nvme.sanitize_log, _DRIVE),
            (nvme.sanitize, {**_DRIVE, 'action': 2}),
            (nvme.block_format, {**_DRIVE, 'namespace_id': 1}),
            (
                nvme.format_namespace,
                {**_DRIVE, 'namespace_id': 1, 'flbas': 1, 'dps': 0},
            ),
            (nvme.is_blank, {**_DRIVE, 'namespace_id': 1}),
            (pci_attributes.write, {'address': VIRTUAL, **reset}),
            (
                pci_attributes.write,
                {
                    'address': drive_tree.ADDRESS,
                    'attribute': 'sriov_numvfs',
                    'value': '8',
                },
            ),
            (fabric_manager.partitions, limit),
            (fabric_manager.unsupported, limit),
            (fabric_manager.failed, limit),
            (
                fabric_manager.activate,
                {'number': 1, 'functions': [VIRTUAL], **limit},
            ),
            (
                fabric_manager.activate,
                {'number': 1, 'functions': [], **limit},
            ),
            (fabric_manager.deactivate, {'number': 1, **limit}),
            (fabric_manager.restore, {'numbers': [1], **limit}),
            (mig.mode, {'address': GPU, **limit}),
            (mig.set_mode, {'address': GPU, 'is_on': 1, **limit}),
            (mig.set_functions, {'address': GPU, 'are_there': 1, **limit}),
            (mig.listed, {'address': GPU, 'what': '-lgi', **limit}),
            (
                mig.create,
                {'address': GPU, 'profile': 9, 'start': 4, **limit},
            ),
            (mig.destroy, {'address': GPU, 'instance': 1, **limit}),
            (gpu_nodes.opened, {}),
            (qat.heartbeat, {'address': CARD}),
        )

    def test_none_is_forgotten(self):
        self.assertEqual(
            {function for function, _arguments in self.uses()}, _functions()
        )

    def test_what_is_allowed_is_done(self):
        """So the other test refuses nothing by a fault of its own."""
        for function, arguments in self.uses():
            function(**arguments)
        started = collections.Counter(
            pathlib.Path(line.split()[0]).name
            for line in self.log.read_text().splitlines()
        )
        self.assertEqual({'flock': 18, 'timeout': 7}, started)
        self.assertEqual(
            ('8', '1'),
            (
                (self.function / 'sriov_numvfs').read_text(),
                (self.links / VIRTUAL / 'reset').read_text(),
            ),
        )

    def test_hostile_arguments(self):
        before = self.state()
        for function, arguments in self.uses():
            for name in arguments:
                for hostile in (
                    self.files
                    if name in ('bitstream', 'shell')
                    else _HOSTILE[name]
                ):
                    self.assert_refused(function, arguments, name, hostile)
                    self.assertEqual(
                        before, self.state(), (function, name, hostile)
                    )

    def assert_refused(self, function, arguments, name, hostile):
        shown = f'{function.func.__name__} {name}={str(hostile)[:60]!r}'
        try:
            function(**{**arguments, name: hostile})
        except (ValueError, OSError) as error:
            said = f'{error}'
            called = _CALLED.get(name, name)
            self.assertTrue(
                any(
                    each in said
                    for each in (
                        [called] if isinstance(called, str) else called
                    )
                )
                or (isinstance(error, OSError) and hostile in said),
                f'{shown}: {said[:500]}',
            )
            self.assertLess(len(said), 1000, shown)
        else:
            self.fail(f'{shown} was done')

    def state(self):
        """All that a call may have written or started."""
        return {
            str(path): path.read_bytes()
            for path in self.root.rglob('*')
            if path.is_file() and not path.is_relative_to(self.root / 'bin')
        }


def _modules():
    return [
        importlib.import_module(f'{privileged.__name__}.{module.name}')
        for module in pkgutil.iter_modules(privileged.__path__)
    ]


def _contexts():
    return [
        value
        for value in vars(privileged).values()
        if isinstance(value, priv_context.PrivContext)
    ]


def _functions():
    return {
        value
        for module in _modules()
        for value in vars(module).values()
        if callable(value)
        and any(context.is_entrypoint(value) for context in _contexts())
    }
