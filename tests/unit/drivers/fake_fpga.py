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

"""The tools that program FPGAs, and the kernel's FPGA manager.

What they print is what their source has: of OPAE
``python/opae.admin/opae/admin/tools/fpgasupdate.py`` and
``tools/fpgaconf/fpgaconf.c``, of the Xilinx Runtime
``src/runtime_src/core/tools/xbutil2/SubCmdProgram.cpp`` and
``xbmgmt2/SubCmdProgram.cpp``.
"""

import json
import os
import pathlib
import uuid

import fixtures

from nova_accel import privileged
from unit.drivers import base
from unit.privileged import tree

_HEAD = """#!/bin/sh
echo "$(basename "$0") $*" >>{state}/log
fault=$(cat {state}/fault 2>/dev/null)
rm -f {state}/fault
[ "$fault" != hang ] || exec sleep 60
"""

# The kernel, which the name of a file is written to: `tee .../firmware`.
_TEE = (
    _HEAD
    + """
manager=$(dirname "$1")
file={firmware}/$(cat)
stat -c %a "$file" >{state}/mode
if [ "$fault" = fail ] || [ "$(head -c 4 "$file")" != LABF ]; then
    echo 'write init error' >"$manager/state"
    echo "tee: $1: Invalid argument" >&2
    exit 1
fi
[ "$fault" = lie ] || echo operating >"$manager/state"
sha256sum <"$file" >"$manager/../../contents"
"""
)

_FPGASUPDATE = (
    _HEAD
    + """
say() {{ printf '[2021-07-19 16:31:36,123] %s\\n' "$1"; }}
say '[WARNING ] Update starting. Please do not interrupt.'
if [ "$fault" = fail ]; then
    echo 'Error writing bitstream to FPGA: exception' >&2
    say '[ERROR   ]
Partial Reconfiguration failed'
    say '[INFO    ] Total time: 0:00:00.412345'
    exit 5
fi
type=$(grep -ao 'accelerator-type-uuid": "[^"]*' "$2" | cut -d'"' -f3 |
    tr -d -)
if [ "$fault" != lie ]; then
    for port in {sysfs}/devices/pci0000:00/*/fpga_region/*/dfl-port.*; do
        echo "$type" >"$port/afu_id"
    done
fi
say '[INFO    ]
Partial Reconfiguration OK'
say '[INFO    ] Total time: 0:00:01.712345'
"""
)

_XRT_SMI = (
    _HEAD
    + """
if [ "$fault" = fail ]; then
    echo "ERROR: Could not program device $3 : failed to load xclbin:" \\
        "Invalid argument" >&2
    exit 1
fi
[ "$fault" = lie ] || dd if="$5" bs=1 skip=416 count=16 status=none |
    od -An -tx1 | tr -d ' \\n' >{sysfs}/devices/pci0000:00/$3/xclbinuuid
echo "INFO: xrt-smi program succeeded on $3"
"""
)

# The uuid of a shell is in its metadata; here it is where that of an image is.
_XBMGMT = (
    _HEAD
    + """
case "$5" in *.xsabin) ;; *) exit 2 ;; esac
echo "Programming shell on device [$3]..."
echo "Partition file: $5"
if [ "$fault" = fail ]; then
    echo 'ERROR: uuid does not match BLP' >&2
    exit 1
fi
[ "$fault" = lie ] || {{
    echo
    dd if="$5" bs=1 skip=416 count=16 status=none |
        od -An -tx1 | tr -d ' \\n'
}} >>{sysfs}/devices/pci0000:00/$3/logic_uuids
echo 'Programmed shell successfully'
"""
)


class Tools(fixtures.Fixture):
    """Privileged functions are called in this process, and find these tools.

    :param sysfs: the directory of the host's sysfs
    :ivar tools: where they are
    :ivar firmware: where the kernel finds firmware
    """

    def __init__(self, sysfs):
        super().__init__()
        self._sysfs = sysfs

    def _setUp(self):
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.tools, self.firmware, self._state = (
            root / name for name in ('bin', 'firmware', 'state')
        )
        for directory in (self.tools, self.firmware, self._state):
            directory.mkdir()
        for name, text in (
            ('tee', _TEE),
            ('fpgasupdate', _FPGASUPDATE),
            ('xrt-smi', _XRT_SMI),
            ('xbmgmt', _XBMGMT),
        ):
            (self.tools / name).write_text(
                text.format(
                    state=self._state,
                    firmware=self.firmware,
                    sysfs=self._sysfs,
                )
            )
            (self.tools / name).chmod(0o755)
        self.useFixture(
            fixtures.EnvironmentVariable(
                'PATH', f'{self.tools}:{os.environ["PATH"]}'
            )
        )
        for name, value in (
            ('SYSFS', self._sysfs),
            ('FIRMWARE', self.firmware),
            ('RUN', self._state),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.privileged.fpga.{name}', value
                )
            )
        self.addCleanup(privileged.fpga_pctxt.set_client_mode, True)
        privileged.fpga_pctxt.set_client_mode(False)

    @property
    def log(self):
        """The calls."""
        log = self._state / 'log'
        return log.read_text().splitlines() if log.exists() else []

    @property
    def mode(self):
        """That of the file of firmware, when it was last read."""
        return (self._state / 'mode').read_text().strip()

    def fail(self, fault='fail'):
        """The next call fails: ``fail``, ``lie`` or ``hang``."""
        (self._state / 'fault').write_text(fault)


def gbs(type_uuid, signed=False):
    """An image for OPAE."""
    metadata = json.dumps(
        {
            'version': 1,
            'afu-image': {
                'interface-uuid': 'ce489693-98f0-5f33-946d-560708be108a',
                'accelerator-clusters': [
                    {
                        'name': 'nlb_mode_0',
                        'total-contexts': 1,
                        'accelerator-type-uuid': type_uuid,
                    }
                ],
            },
        }
    ).encode()
    blocks = b'\x19\xfd\xea\xb6' + bytes(4) + b'\x02' + bytes(1015)
    return (
        (blocks if signed else b'')
        + b'XeonFPGA\xb7GBSv001'
        + len(metadata).to_bytes(4, 'little')
        + metadata
        + b'\n'
        + bytes(64)
    )


def xclbin(image_uuid):
    """An image for the Xilinx Runtime."""
    return (
        b'xclbin2\x00' + bytes(408) + uuid.UUID(image_uuid).bytes + bytes(64)
    )


class FpgaTestCase(base.DriverTestCase):
    """Of a driver that programs with these tools.

    :cvar name: of the driver, in ``device_spec``
    :cvar bound: number of a function -> the kernel's driver of it
    :ivar cache: the directory of bitstreams
    """

    name = 'fpga_region'
    bound = {}

    def setUp(self):
        super().setUp()
        self.tools = self.useFixture(Tools(self.sysfs.root))
        self.cache = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        line = {'vendor_id': '*', **self.spec, 'driver': self.name}
        tree.configure(
            self,
            device_spec=[json.dumps(line)],
            bitstream_cache_directory=str(self.cache),
        )
        for function in self.node_devices.look().functions.values():
            address = str(function.address)
            if (self.sysfs.root / 'bus/pci/devices' / address).exists():
                self.sysfs.identify(
                    address, function.vendor_id, function.product_id
                )
                if address[-1] in self.bound:
                    self.sysfs.bind(address, self.bound[address[-1]])

    def break_programming(self):
        self.tools.fail()
