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

"""Asks and erases NVMe controllers with nvme-cli, as root."""

import os
import re
import struct

from oslo_concurrency import processutils

from nova_accel import privileged

_CONTROLLER = re.compile(r'nvme[0-9]{1,6}')
_NAMESPACE = re.compile(r'nvme[0-9]{1,6}n[0-9]{1,6}')

_SAMPLE_BYTES = 1 << 20
_SAMPLES = 64

#: What erased blocks read as: zeroes, or ones.
_BLANK = (b'\x00', b'\xff')


@privileged.nvme_pctxt.entrypoint
def identify(controller: str) -> bytes:
    """The Identify Controller data structure of ``nvme0``, 4096 bytes.

    As all of them:

    :raises ValueError: an argument is not of the form that it has.
    :raises ProcessExecutionError: nvme-cli, or the drive, refused.
    :raises OSError: nvme-cli is not installed.
    """
    return _raw('id-ctrl', _device(controller), size=4096)


@privileged.nvme_pctxt.entrypoint
def allocated_namespaces(controller: str) -> list[int]:
    """The ids of the subsystem's namespaces, attached or not; 1024 at most.

    Identify with CNS 10h, of the NVM Express Base Specification.
    """
    ids = struct.unpack('<1024I', _raw(
        'admin-passthru', _device(controller), '--opcode=0x06',
        '--cdw10=0x10', '--data-len=4096', '--read', size=4096))
    return [id_ for id_ in ids if id_]


@privileged.nvme_pctxt.entrypoint
def sanitize_log(controller: str) -> bytes:
    """The Sanitize Status log page, from its begin; 512 bytes."""
    return _raw('sanitize-log', _device(controller), size=512)


@privileged.nvme_pctxt.entrypoint
def sanitize(controller: str, action: int) -> None:
    """Begin to erase the subsystem of ``nvme0``.

    :param action: the command's SANACT: 2 erases blocks, 3 overwrites, 4
        forgets the key
    """
    if action not in (2, 3, 4):
        raise ValueError(f'{action} does not erase')
    processutils.execute(
        'nvme', 'sanitize', _device(controller), f'--sanact={action}')


@privileged.nvme_pctxt.entrypoint
def format_namespace(controller: str, namespace_id: int) -> None:
    """Erase the user data of a namespace of ``nvme0``."""
    if not 0 < namespace_id < 0xffffffff:
        raise ValueError(f'{namespace_id} is no namespace')
    processutils.execute(
        'nvme', 'format', _device(controller),
        f'--namespace-id={namespace_id}', '--ses=1', '--force')


@privileged.nvme_pctxt.entrypoint
def is_blank(namespace: str) -> bool:
    """Whether the samples of ``nvme0n1`` have nothing in them.

    They are its first and its last megabyte, and those in between at even
    distances.
    """
    return is_blank_file(_device(namespace, _NAMESPACE))


def is_blank_file(path: str) -> bool:
    """As :func:`is_blank`, of any file or block device."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.lseek(file, 0, os.SEEK_END)
        if not size:
            return False
        # What the host has read before is not what is there now.
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        last = max(0, size - _SAMPLE_BYTES)
        samples = [os.pread(file, _SAMPLE_BYTES, last * number // _SAMPLES)
                   for number in range(_SAMPLES + 1)]
    finally:
        os.close(file)
    return any(all(sample == blank * len(sample) for sample in samples)
               for blank in _BLANK)


def _device(name: str, form: re.Pattern[str] = _CONTROLLER) -> str:
    if form.fullmatch(name) is None:
        raise ValueError(f'{name!r} is no NVMe device')
    return f'/dev/{name}'


def _raw(command: str, device: str, *options: str, size: int) -> bytes:
    output, _errors = processutils.execute(
        'nvme', command, device, *options, '--raw-binary', binary=True)
    if len(output) < size:
        raise ValueError(
            f'nvme {command} {device} gave {len(output)} bytes, not {size}')
    return bytes(output)
