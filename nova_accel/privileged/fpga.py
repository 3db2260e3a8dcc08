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

"""Programs FPGAs, through the kernel and with their vendors' tools, as root.

What is programmed is a copy that belongs to root: what has been checked of it
cannot be changed afterwards.
"""

from collections.abc import Iterator
import contextlib
import math
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile

from oslo_concurrency import processutils

from nova_accel import privileged
from nova_accel.model import pci_address

#: Where sysfs is. Who calls has no say in it.
SYSFS = pathlib.Path('/sys')

#: Where the kernel looks for firmware, unless its parameter says otherwise,
#: see Documentation/driver-api/firmware/fw_search_path.rst.
FIRMWARE = pathlib.Path('/lib/firmware')

#: Where the locks of cards are.
RUN = pathlib.Path('/run')

#: Where AMD's packages have their tools.
_XRT = '/opt/xilinx/xrt/bin'

_MANAGER = re.compile(r'fpga[0-9]{1,6}')

_LONGEST_S = 24 * 3600

#: The status of coreutils' timeout when it is over, and when that was not
#: enough; that of flock when it has waited in vain.
TIMED_OUT = (124, 137)
BUSY = 75

# How long something that is asked to end may take, and the kernel then.
_KILL_AFTER_S = 10
_GIVE_UP_AFTER_S = 30

# Of OPAE, python/opae.admin/opae/admin/tools/fpgasupdate.py: an image of a
# region, "green bitstream", and the blocks that PACSign puts before it.
_GBS = bytes.fromhex('58656f6e46504741b747425376303031')
_BLOCK0 = bytes.fromhex('19fdeab6')
_BLOCK0_AND_1_BYTES = 1024
#: Content type "green bitstream", subtype "update".
_UPDATE_OF_A_REGION = 2

_XCLBIN = b'xclbin2\x00'


@contextlib.contextmanager
def _naming_files() -> Iterator[None]:
    """Have a fault say of which file it is; privsep would lose its name."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise
        raise OSError(
            error.errno, f'{error.strerror}: {error.filename}') from error


@privileged.fpga_pctxt.entrypoint
@_naming_files()
def load_firmware(address: str, manager: str, bitstream: str,
                  timeout_s: float) -> None:
    """Have the kernel's FPGA manager program a file.

    As all of them:

    :param address: ``0000:81:00.0``, of the card
    :param manager: ``fpga0``, which is below it
    :param bitstream: the path of the file
    :param timeout_s: longer than this it must not take
    :raises ValueError: an argument is not what it has to be.
    :raises ProcessExecutionError: it failed, or took too long.
    :raises OSError: there is no such card, file or tool, or it could not even
        be killed.
    """
    name = _address(address)
    if _MANAGER.fullmatch(manager) is None:
        raise ValueError(f'{manager!r} is no FPGA manager')
    attribute = _attribute(name, f'fpga_manager/{manager}/firmware')
    # One name for each: the kernel remembers all that it was asked for.
    firmware = _firmware_path() / f'nova_accel-{name}-{manager}.bin'
    # A host without firmware has no directory for it.
    firmware.parent.mkdir(exist_ok=True)
    # A process that was killed may have left it.
    firmware.unlink(missing_ok=True)
    try:
        _copy(bitstream, firmware)
        # In one piece, as the kernel wants it.
        _run(name, timeout_s, 'tee', str(attribute), text=firmware.name)
    finally:
        firmware.unlink(missing_ok=True)


@privileged.fpga_pctxt.entrypoint
@_naming_files()
def fpgasupdate(address: str, bitstream: str, timeout_s: float) -> None:
    """Program the region of a card with OPAE, as :func:`load_firmware`.

    The tool would write the card's static part and its controller, too.

    :raises ValueError: the file is no image of a region.
    """
    name = _address(address)
    with _private_copy(bitstream, 'bitstream.gbs') as copy:
        if not is_image_of_a_region(copy):
            raise ValueError('the file is no image of a region (GBS)')
        _run(name, timeout_s, 'fpgasupdate', '--yes', str(copy), name)


@privileged.fpga_pctxt.entrypoint
@_naming_files()
def xbutil(address: str, bitstream: str, timeout_s: float) -> None:
    """Program a card with the Xilinx Runtime, as :func:`load_firmware`.

    :param address: that of the user's function
    :raises ValueError: the file is no xclbin.
    """
    name = _address(address)
    tool = _xrt_tool()
    with _private_copy(bitstream, 'bitstream.xclbin') as copy:
        with copy.open('rb') as file:
            if file.read(len(_XCLBIN)) != _XCLBIN:
                raise ValueError('the file is no xclbin')
        _run(name, timeout_s, tool, 'program', '--device', name,
             '--user', str(copy))


def is_image_of_a_region(path: pathlib.Path) -> bool:
    """Whether OPAE would program a region with it, and nothing else."""
    with path.open('rb') as file:
        head = file.read(_BLOCK0_AND_1_BYTES + len(_GBS))
    if head.startswith(_BLOCK0):
        return (int.from_bytes(head[8:12], 'little') == _UPDATE_OF_A_REGION
                and head[_BLOCK0_AND_1_BYTES:] == _GBS)
    return head.startswith(_GBS)


def _address(address: str) -> str:
    try:
        return str(pci_address.PciAddress.parse(address))
    except Exception as error:
        # The caller, another process, can only be told builtin ones.
        raise ValueError(str(error)) from error


def _attribute(address: str, attribute: str) -> pathlib.Path:
    """:raises OSError: it is not there."""
    # The function is a link into the tree of devices; below it is none.
    devices = (SYSFS / 'devices').resolve(strict=True)
    function = (SYSFS / 'bus/pci/devices' / address).resolve(strict=True)
    path = (function / attribute).resolve(strict=True)
    if path != function / attribute or not path.is_relative_to(devices):
        raise ValueError(f'{attribute} of {address} is not in {devices}')
    return path


def _firmware_path() -> pathlib.Path:
    parameter = SYSFS / 'module/firmware_class/parameters/path'
    text = parameter.read_text().strip() if parameter.exists() else ''
    return pathlib.Path(text) if text else FIRMWARE


def _xrt_tool() -> str:
    """``xrt-smi``, or ``xbutil``, as it was called until 2024.2.

    :raises OSError: neither is installed.
    """
    path = os.pathsep.join((os.environ.get('PATH', os.defpath), _XRT))
    for name in ('xrt-smi', 'xbutil'):
        found = shutil.which(name, path=path)
        if found is not None:
            return found
    raise FileNotFoundError('neither xrt-smi nor xbutil is installed')


@contextlib.contextmanager
def _private_copy(bitstream: str, name: str) -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory(prefix='nova_accel-') as directory:
        copy = pathlib.Path(directory, name)
        _copy(bitstream, copy)
        yield copy


def _copy(source: str, target: pathlib.Path) -> None:
    """:raises ValueError, OSError: the source is no plain file."""
    # What it is, is known when it is open: a pipe would be waited for.
    file = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
                   | os.O_CLOEXEC)
    with open(file, 'rb') as read:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError(f'{source} is no plain file')
        created = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL
                          | os.O_CLOEXEC, 0o600)
        with open(created, 'wb') as written:
            shutil.copyfileobj(read, written, 1 << 20)


def _run(address: str, timeout_s: float, *command: str,
         text: str | None = None) -> None:
    """Run a command that changes a card, one at a time for each.

    One that a killed process has left is waited for: it has the lock.

    :param text: what it reads
    """
    if not 0 < timeout_s <= _LONGEST_S:
        raise ValueError(f'{timeout_s} s is no time limit')
    seconds = math.ceil(timeout_s)
    try:
        processutils.execute(
            'flock', f'--wait={seconds}', f'--conflict-exit-code={BUSY}',
            str(RUN / f'nova_accel-{address}.lock'),
            # Unlike processutils it also ends what the command has started.
            'timeout', f'--kill-after={_KILL_AFTER_S}', str(seconds),
            *command, process_input=text,
            timeout=2 * seconds + _GIVE_UP_AFTER_S)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(
            f'{command[0]} cannot be ended: the kernel is still at it'
        ) from error
