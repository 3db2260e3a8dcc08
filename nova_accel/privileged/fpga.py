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

"""Program FPGAs, through the kernel and with vendors' tools, as root.

Each function takes only a card that this host offers to guests, and a file of
its cache of bitstreams. The file is copied for root first, so that no one can
change it after it was checked.
"""

from collections.abc import Iterator
import contextlib
import mmap
import os
import pathlib
import re
import shutil
import tempfile
import uuid

from nova_accel import privileged
from nova_accel.model.fpga import bitstream_format
from nova_accel.privileged import arguments
from nova_accel.privileged import bitstream_file
from nova_accel.privileged import offered
from nova_accel.privileged import pci_function
from nova_accel.privileged import vendor_tool

#: The mount point of sysfs; callers cannot choose it.
SYSFS = pathlib.Path('/sys')

#: The kernel's directory of firmware, unless its parameter names another, see
#: Documentation/driver-api/firmware/fw_search_path.rst.
FIRMWARE = pathlib.Path('/lib/firmware')

#: The directory of the cards' locks.
RUN = pathlib.Path('/run')

#: The directory of the tools in AMD's packages.
_XRT = '/opt/xilinx/xrt/bin'

# The type in bits 63:60 of a feature's header.
_OF_ACCELERATOR = 1

_MANAGER = re.compile(r'fpga[0-9]{1,6}')

_LONGEST_S = 24 * 3600


@contextlib.contextmanager
def _naming_files() -> Iterator[None]:
    """Put the file's name into an error's text; privsep would lose it."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise
        raise OSError(
            error.errno, f'{error.strerror}: {error.filename}'
        ) from error


@privileged.fpga_pctxt.entrypoint
@_naming_files()
def load_firmware(
    address: str, manager: str, bitstream: str, timeout_s: float
) -> None:
    """Have the kernel's FPGA manager program a file.

    As for all functions here:

    :param address: the card's PCI address, ``0000:81:00.0``
    :param manager: the name of the card's FPGA manager, ``fpga0``
    :param bitstream: the path of the file in the cache
    :param timeout_s: the most seconds that it may take
    :raises ValueError: an argument is wrong.
    :raises ProcessExecutionError: it failed, or took too long.
    :raises OSError: there is no such card, file or tool, or the tool could not
        even be killed.
    """
    name = _card(address, bitstream, timeout_s)
    if _MANAGER.fullmatch(arguments.text('manager', manager)) is None:
        raise ValueError(f'manager {manager[:50]!r} is no FPGA manager')
    attribute = pci_function.attribute(
        SYSFS, name, f'fpga_manager/{manager}/firmware'
    )
    # One fixed name for each manager, because the kernel remembers every name
    # that it was asked for.
    firmware = _firmware_path() / f'nova_accel-{name}-{manager}.bin'
    # A host without firmware has no directory for it.
    # The daemon of privsep has no umask.
    firmware.parent.mkdir(mode=0o755, exist_ok=True)
    # A killed process may have left the file.
    firmware.unlink(missing_ok=True)
    bitstream_file.copy(bitstream, firmware)
    # While the file is open, no other file gets its inode.
    with firmware.open('rb') as own:
        try:
            # The kernel wants the name in a single write.
            _run(name, timeout_s, 'tee', str(attribute), text=firmware.name)
        finally:
            # By now the file may belong to another process. It does if
            # nova-compute was killed, and the next one programs the card
            # again.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(firmware.stat(), os.fstat(own.fileno())):
                    firmware.unlink()


@privileged.fpga_pctxt.entrypoint
@_naming_files()
def fpgasupdate(address: str, bitstream: str, timeout_s: float) -> None:
    """Program a card's region with OPAE, like :func:`load_firmware`.

    The file is checked because the tool could also write the card's static
    part and its controller.

    :raises ValueError: the file is no image of a region.
    """
    name = _card(address, bitstream, timeout_s, 'dfl-pci')
    with _private_copy(bitstream, 'bitstream.gbs') as copy:
        if not bitstream_format.is_gbs(head(copy)):
            raise ValueError('the file is no image of a region (GBS)')
        _run(name, timeout_s, 'fpgasupdate', '--yes', str(copy), name)


@privileged.fpga_pctxt.entrypoint
@_naming_files()
def xbutil(address: str, bitstream: str, timeout_s: float) -> None:
    """Program a card with the Xilinx Runtime, like :func:`load_firmware`.

    :param address: the PCI address of the user's function
    :raises ValueError: the file is no xclbin.
    """
    name = _card(address, bitstream, timeout_s, 'xocl')
    tool = _xrt_tool('xrt-smi', 'xbutil')
    with _private_copy(bitstream, 'bitstream.xclbin') as copy:
        _check_xclbin(copy)
        _run(
            name,
            timeout_s,
            tool,
            'program',
            '--device',
            name,
            '--user',
            str(copy),
        )


@privileged.fpga_pctxt.entrypoint
@_naming_files()
def xbmgmt(address: str, shell: str, timeout_s: float) -> None:
    """Load a shell with the Xilinx Runtime, like :func:`load_firmware`.

    Nothing is written into the card's flash.

    :param address: the PCI address of the management function
    :raises ValueError: the file is no xsabin, which begins like an xclbin.
    """
    name = _card(address, shell, timeout_s, 'xclmgmt')
    tool = _xrt_tool('xbmgmt')
    # The tool recognizes the file by its suffix.
    with _private_copy(shell, 'partition.xsabin') as copy:
        _check_xclbin(copy)
        _run(
            name,
            timeout_s,
            tool,
            'program',
            '--device',
            name,
            '--shell',
            str(copy),
        )


@privileged.fpga_pctxt.entrypoint
@_naming_files()
def afu_id(address: str) -> str:
    """The id of the accelerator that a function's BAR 0 begins with.

    The form is that of the kernel's ``Documentation/fpga/dfl.rst``: a header
    of type 1, then the low and the high half of the id, 64 bits each.

    :param address: the function that guests get; no guest may have it
    :returns: a uuid with hyphens
    :raises ValueError: an argument is wrong, a guest may have the function,
        or there is no such header.
    :raises OSError: there is no such function, or the kernel refuses.
    """
    name = pci_function.address(address)
    offered.check(SYSFS, name)
    driver = SYSFS / 'bus/pci/devices' / name / 'driver'
    if driver.is_symlink() and 'vfio' in driver.readlink().name:
        raise ValueError(f'address {name}: a guest may have it')
    path = pci_function.attribute(SYSFS, name, 'resource0')
    with (
        path.open('rb') as file,
        mmap.mmap(
            file.fileno(), mmap.PAGESIZE, access=mmap.ACCESS_READ
        ) as memory,
        memoryview(memory) as bytes_,
        bytes_.cast('Q') as words,
    ):
        header, low, high = words[0], words[1], words[2]
    if header >> 60 != _OF_ACCELERATOR:
        raise ValueError(f'BAR 0 of {name} has no header of an accelerator')
    return str(uuid.UUID(int=high << 64 | low))


def _card(
    address: str, bitstream: str, timeout_s: float, driver: str | None = None
) -> str:
    """The address in the form of sysfs, when all arguments are checked."""
    arguments.text('bitstream', bitstream)
    arguments.seconds('timeout_s', timeout_s, _LONGEST_S)
    name = pci_function.address(address)
    offered.check(SYSFS, name, driver)
    return name


def _check_xclbin(path: pathlib.Path) -> None:
    if not bitstream_format.is_xclbin(head(path)):
        raise ValueError('the file is no xclbin')


def head(path: pathlib.Path) -> bytes:
    """A file's first bytes, for :mod:`nova_accel.model.fpga.bitstream_format`.

    :raises OSError: it cannot be read.
    """
    with path.open('rb') as file:
        return file.read(bitstream_format.HEAD_BYTES)


def _firmware_path() -> pathlib.Path:
    parameter = SYSFS / 'module/firmware_class/parameters/path'
    text = parameter.read_text().strip() if parameter.exists() else ''
    return pathlib.Path(text) if text else FIRMWARE


def _xrt_tool(*names: str) -> str:
    """The path of the first installed tool.

    ``xrt-smi`` was called ``xbutil`` until 2024.2.

    :raises OSError: none is installed.
    """
    path = os.pathsep.join((os.environ.get('PATH', os.defpath), _XRT))
    for name in names:
        found = shutil.which(name, path=path)
        if found is not None:
            return found
    raise FileNotFoundError(f'{" or ".join(names)} is not installed')


@contextlib.contextmanager
def _private_copy(bitstream: str, name: str) -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory(prefix='nova_accel-') as directory:
        copy = pathlib.Path(directory, name)
        bitstream_file.copy(bitstream, copy)
        yield copy


def _run(
    address: str, timeout_s: float, *command: str, text: str = ''
) -> None:
    """Run a command that changes a card, one at a time for each card.

    :param text: the command's input
    """
    vendor_tool.run(
        command,
        arguments.seconds('timeout_s', timeout_s, _LONGEST_S),
        most=None,
        lock=RUN / f'nova_accel-{address}.lock',
        text=text,
    ).check(command)
