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

"""Query and erase NVMe controllers with nvme-cli, as root.

Each function gets the PCI address and the serial number of a drive. It checks
before and after its work that it has reached this drive.
"""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import struct

from nova_accel import privileged
from nova_accel.privileged import arguments
from nova_accel.privileged import nvme_drive
from nova_accel.privileged import vendor_tool

# How long a command may take. nvme-cli itself gives up a format after 600 s.
_COMMAND_S = 60
_FORMAT_S = 900

_SAMPLE_BYTES = 1 << 20
_SAMPLES = 64

# One more stands for all namespaces.
_LAST_NAMESPACE = 0xFFFFFFFE

# The bits of FLBAS and DPS that a format sets.
_FLBAS, _DPS = 0x7F, 0xF

#: Erased blocks read as zeroes or ones.
_BLANK = (b'\x00', b'\xff')


@privileged.nvme_pctxt.entrypoint
def identify(address: str, serial: str) -> bytes:
    """The Identify Controller data structure of a drive, 4096 bytes.

    As for all functions here:

    :param address: ``0000:3d:00.0``
    :param serial: the drive's serial number, as sysfs has it
    :raises ValueError: another drive is there, or an argument is malformed.
    :raises ProcessExecutionError: nvme-cli, or the drive, refused.
    :raises OSError: there is no drive, or nvme-cli is not installed.
    """
    with nvme_drive.drive(address, serial) as drive:
        return _raw(drive, 'id-ctrl', size=4096)


@privileged.nvme_pctxt.entrypoint
def allocated_namespaces(address: str, serial: str) -> list[int]:
    """The ids of the subsystem's namespaces, attached or not; 1024 at most.

    It sends Identify with CNS 10h of the NVM Express Base Specification.
    """
    with nvme_drive.drive(address, serial) as drive:
        ids = struct.unpack('<1024I', _identify(drive, 0x10))
    return [id_ for id_ in ids if id_]


@privileged.nvme_pctxt.entrypoint
def controllers(address: str, serial: str) -> list[int]:
    """The ids of the subsystem's controllers, this one among them.

    It sends Identify with CNS 13h.
    """
    with nvme_drive.drive(address, serial) as drive:
        amount, *ids = struct.unpack('<2048H', _identify(drive, 0x13))
    return ids[:amount]


@privileged.nvme_pctxt.entrypoint
def sanitize_log(address: str, serial: str) -> bytes:
    """The first 512 bytes of the Sanitize Status log page."""
    with nvme_drive.drive(address, serial) as drive:
        return _raw(drive, 'sanitize-log', size=512)


@privileged.nvme_pctxt.entrypoint
def sanitize(address: str, serial: str, action: int) -> None:
    """Start to erase the subsystem of a drive.

    :param action: the command's SANACT: 2 erases blocks, 3 overwrites, 4
        deletes the key
    :raises ValueError: the host uses one of its namespaces.
    """
    arguments.integer('action', action, 2, 4)
    with _unused_drive(address, serial) as drive:
        _run(drive, 'sanitize', f'--sanact={action}')


@privileged.nvme_pctxt.entrypoint
def block_format(
    address: str, serial: str, namespace_id: int
) -> tuple[int, int]:
    """How the blocks of an attached namespace are laid out.

    :returns: the fields FLBAS and DPS of Identify Namespace: the LBA format
        with the place of the metadata, and the protection information
    """
    arguments.integer('namespace_id', namespace_id, 1, _LAST_NAMESPACE)
    with nvme_drive.drive(address, serial) as drive:
        data = _raw(
            drive, 'id-ns', f'--namespace-id={namespace_id}', size=4096
        )
    return data[26] & _FLBAS, data[29] & _DPS


@privileged.nvme_pctxt.entrypoint
def format_namespace(
    address: str, serial: str, namespace_id: int, flbas: int, dps: int
) -> None:
    """Erase the user data of a namespace of a drive.

    :param flbas: with ``dps`` its layout from now on; nvme-cli has a default
        for what it is not told, whatever layout the namespace has
    :raises ValueError: the host uses one of the drive's namespaces, since a
        drive may erase all of them, whichever is named.
    """
    arguments.integer('namespace_id', namespace_id, 1, _LAST_NAMESPACE)
    arguments.integer('flbas', flbas, 0, _FLBAS)
    arguments.integer('dps', dps, 0, _DPS)
    with _unused_drive(address, serial) as drive:
        _run(
            drive,
            'format',
            f'--namespace-id={namespace_id}',
            # Bits 6:5 are the upper bits of the format's number.
            f'--lbaf={flbas & 0xF | (flbas & 0x60) >> 1}',
            f'--ms={flbas >> 4 & 1}',
            f'--pi={dps & 0b111}',
            f'--pil={dps >> 3}',
            '--ses=1',
            '--force',
            timeout_s=_FORMAT_S,
        )


@privileged.nvme_pctxt.entrypoint
def is_blank(address: str, serial: str, namespace_id: int) -> bool:
    """Whether samples of a namespace are erased.

    The samples are the first and the last megabyte, and others at even
    distances in between.
    """
    arguments.integer('namespace_id', namespace_id, 1, _LAST_NAMESPACE)
    with nvme_drive.drive(address, serial) as drive:
        if namespace_id not in drive.namespaces:
            raise ValueError(f'{address} has no namespace {namespace_id}')
        return is_blank_file(drive.namespaces[namespace_id])


def is_blank_file(path: pathlib.Path) -> bool:
    """Like :func:`is_blank`, for any file or block device."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.lseek(file, 0, os.SEEK_END)
        if not size:
            return False
        # Drop the host's cache, which may have older data.
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        last = max(0, size - _SAMPLE_BYTES)
        samples = [
            os.pread(file, _SAMPLE_BYTES, last * number // _SAMPLES)
            for number in range(_SAMPLES + 1)
        ]
    finally:
        os.close(file)
    return any(
        all(sample == blank * len(sample) for sample in samples)
        for blank in _BLANK
    )


@contextlib.contextmanager
def _unused_drive(address: str, serial: str) -> Iterator[nvme_drive.Drive]:
    with nvme_drive.drive(address, serial) as drive, nvme_drive.unused(drive):
        yield drive


def _identify(drive: nvme_drive.Drive, structure: int) -> bytes:
    """:param structure: the command's CNS"""
    return _raw(
        drive,
        'admin-passthru',
        '--opcode=0x06',
        f'--cdw10={structure:#x}',
        '--data-len=4096',
        '--read',
        size=4096,
    )


def _raw(
    drive: nvme_drive.Drive, command: str, *options: str, size: int
) -> bytes:
    output = _run(drive, command, *options, '--raw-binary')
    if len(output) < size:
        raise ValueError(
            f'nvme {command} {drive.node} gave {len(output)} bytes, not {size}'
        )
    return output[:size]


def _run(
    drive: nvme_drive.Drive,
    command: str,
    *options: str,
    timeout_s: int | None = None,
) -> bytes:
    """The output of a command of nvme-cli."""
    called = ('nvme', command, str(drive.node), *options)
    answer = vendor_tool.run(called, timeout_s or _COMMAND_S)
    return answer.check(called).output
