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

"""A program that activates a partition of vGPUs by Fabric Manager's library.

``fmpm`` cannot name virtual functions. Its arguments are the library, where
Fabric Manager listens, the number of the partition, and the address of one
virtual function for each GPU, in the partition's order. Like with ``fmpm``,
the exit status is the library's return value, and a failure is explained on
the standard output. The program imports nothing of nova_accel.

The structures are those of ``nv_fm_types.h``, which the Fabric Manager User
Guide documents in "Fabric Manager SDK". Their first field is their size, with
their version in the highest byte. The library refuses others.
"""

import ctypes
import re
import sys

_ADDRESS = re.compile(
    r'([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])', re.ASCII
)

_TIMEOUT_MS = 5000

#: ``FM_ST_VERSION_MISMATCH``
_MISMATCH = -6

_UNIX, _INET = 2, 1


class _Connection(ctypes.Structure):
    """``fmConnectParams_v1``"""

    _fields_ = [
        ('version', ctypes.c_uint),
        ('address', ctypes.c_char * 256),
        ('timeout_ms', ctypes.c_uint),
        ('is_unix_socket', ctypes.c_uint),
    ]


class _TypedConnection(ctypes.Structure):
    """``fmConnectParams_v2``"""

    _fields_ = [*_Connection._fields_, ('address_type', ctypes.c_uint)]


class _Function(ctypes.Structure):
    """``fmPciDevice_t``"""

    _fields_ = [
        (name, ctypes.c_uint)
        for name in ('domain', 'bus', 'device', 'function')
    ]


def main(library: str, endpoint: str, number: str, *functions: str) -> int:
    """Activate the partition, and return what the library returns."""
    fabric = ctypes.CDLL(library)
    status = int(fabric.fmLibInit())
    if status:
        return _said('fmLibInit', status)
    try:
        return _activate(fabric, endpoint, int(number), functions)
    finally:
        fabric.fmLibShutdown()


def _activate(
    fabric: ctypes.CDLL, endpoint: str, number: int, functions: tuple[str, ...]
) -> int:
    handle = ctypes.c_void_p()
    status = _connect(fabric, endpoint, handle)
    if status:
        return _said('fmConnect', status)
    try:
        named = (_Function * len(functions))(*map(_function, functions))
        status = int(
            fabric.fmActivateFabricPartitionWithVFs(
                handle,
                ctypes.c_uint(number),
                named,
                ctypes.c_uint(len(functions)),
            )
        )
    finally:
        fabric.fmDisconnect(handle)
    return _said('fmActivateFabricPartitionWithVFs', status)


def _connect(
    fabric: ctypes.CDLL, endpoint: str, handle: ctypes.c_void_p
) -> int:
    """Connect with the newest parameters that the library knows."""
    is_unix = endpoint.startswith('/')
    status = _MISMATCH
    for version, kind in ((2, _TypedConnection), (1, _Connection)):
        parameters = kind()
        parameters.version = ctypes.sizeof(kind) | version << 24
        parameters.address = endpoint.encode()
        parameters.timeout_ms = _TIMEOUT_MS
        parameters.is_unix_socket = is_unix
        if version > 1:
            parameters.address_type = _UNIX if is_unix else _INET
        status = int(
            fabric.fmConnect(ctypes.byref(parameters), ctypes.byref(handle))
        )
        if status != _MISMATCH:
            break
    return status


def _function(address: str) -> _Function:
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise ValueError(f'{address} is no address')
    return _Function(*(int(part, 16) for part in match.groups()))


def _said(call: str, status: int) -> int:
    if status:
        print(f'{call} returned {status}')
    return status


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
