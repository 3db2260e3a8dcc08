#!/usr/bin/env python3
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

"""A simulated ``fmpm``, with the state of a Fabric Manager in a file.

Its options, output and exit statuses are those of NVIDIA's tool
(https://github.com/NVIDIA/Fabric-Manager-Client, ``fmpm.cpp``). The daemon
behind it follows the Fabric Manager User Guide
(https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide): "Fabric
Manager SDK", "GPU Partitions", "Resiliency" and "Partition Life Cycle Errors".
No such hardware was seen.

The file named by the first argument is the daemon. ``fabric_manager.py``
beside this one writes and changes it. This program imports nothing of
nova_accel, so that it starts quickly.
"""

import fcntl
import json
import sys
from typing import Any

# fmReturn_t of nv_fm_types.h
SUCCESS = 0
BADPARAM = -1
GENERIC_ERROR = -2
NOT_SUPPORTED = -3
UNINITIALIZED = -4
IN_USE = -7
NOT_CONFIGURED = -8
CONNECTION_NOT_VALID = -9
NVLINK_ERROR = -10

_NO_ADDRESS = '00000000:00:00.0'

_Daemon = dict[str, Any]
#: The library's return value, and a text or a list that is printed.
_Answer = tuple[int, Any]


def answer(path: str, arguments: list[str]) -> tuple[int, str]:
    """Do what the arguments say to the daemon in the file.

    :returns: what the library returns, and what the tool says
    """
    with open(path, 'r+', encoding='utf-8') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        daemon = json.load(file)
        daemon['calls'].append(arguments)
        status, value = _done(daemon, arguments)
        file.seek(0)
        json.dump(daemon, file)
        file.truncate()
    if isinstance(value, str):
        return status, f'{value}\n' if value else ''
    # The format of jsoncpp's StyledWriter, which sorts the keys.
    return status, json.dumps(
        value, indent=3, sort_keys=True, separators=(',', ' : ')
    )


def _done(daemon: _Daemon, arguments: list[str]) -> _Answer:
    operation, value, endpoint = _parsed(arguments)
    if operation is None:
        return BADPARAM, 'Invalid argument.\n'
    if not daemon['is_running'] or endpoint != daemon['endpoint']:
        return (
            CONNECTION_NOT_VALID,
            'Failed to connect to Fabric Manager instance.',
        )
    what, do = _OPERATIONS[operation]
    status, said = _refusal(daemon, operation), ''
    if status == SUCCESS:
        status, said = do(daemon, value)
    if status != SUCCESS:
        return status, f'Failed to {what}. fmReturn: {status}'
    return status, said


def _parsed(arguments: list[str]) -> tuple[str | None, str, str]:
    """The operation, its value, and where the daemon is asked for."""
    operation, value, endpoint = None, '', '127.0.0.1'
    left = iter(arguments)
    for argument in left:
        if argument in ('--hostname', '--unix-domain-socket'):
            endpoint = next(left, '')
        elif argument in ('-a', '-d', '--set-activated-list'):
            operation, value = argument, next(left, '')
        elif argument in _OPERATIONS:
            operation = argument
        else:
            return None, '', ''
    return operation, value, endpoint


def _refusal(daemon: _Daemon, operation: str) -> int:
    """The answer to every call as long as the daemon is not ready."""
    if daemon['mode'] == 0:
        return NOT_SUPPORTED
    if daemon['not_ready_for'] > 0:
        daemon['not_ready_for'] -= 1
        return NOT_CONFIGURED
    if daemon['waits_for_list'] and operation != '--set-activated-list':
        return NOT_CONFIGURED
    if operation in daemon['refused']:
        return int(daemon['refused'][operation])
    return SUCCESS


def _list(daemon: _Daemon, _value: str) -> _Answer:
    partitions = [
        {
            'gpuInfo': [
                _gpu(daemon, module, len(modules)) for module in modules
            ],
            'isActive': int(number in _active(daemon)),
            'numGpus': len(modules),
            'partitionId': number,
        }
        for number, modules in _supported(daemon).items()
    ]
    return SUCCESS, {
        'maxNumPartitions': len(daemon['partitions']),
        'numPartitions': len(partitions),
        'partitionInfo': partitions,
        'version': 16974860,
    }


def _gpu(daemon: _Daemon, module: int, size: int) -> dict[str, Any]:
    links = daemon['links'] if size > 1 else 0
    down = daemon['links_down'].get(str(module), 0) if size > 1 else 0
    return {
        'maxNumNvLinks': links,
        'numNvLinksAvailable': links - down,
        'nvlinkLineRateMBps': 26562,
        'pciBusId': _NO_ADDRESS,
        'physicalId': module,
        'uuid': _uuid(daemon, module),
    }


def _list_unsupported(daemon: _Daemon, _value: str) -> _Answer:
    partitions = [
        {
            'gpuPhysicalIds': daemon['partitions'][str(number)],
            'numGpus': len(daemon['partitions'][str(number)]),
            'partitionId': number,
        }
        for number in daemon['unsupported']
    ]
    return SUCCESS, {
        'numPartitions': len(partitions),
        'partitionInfo': partitions,
        'version': 16781320,
    }


def _failed_devices(daemon: _Daemon, _value: str) -> _Answer:
    # Not while Fabric Manager runs with FABRIC_MODE_RESTART=1.
    if daemon['was_restarted']:
        return NOT_SUPPORTED, ''
    return SUCCESS, {
        'gpuInfo': [
            {
                'numPorts': count,
                'pciBusId': _NO_ADDRESS,
                'portNum': list(range(count)),
                'uuid': _uuid(daemon, int(module)),
            }
            for module, count in daemon['links_down'].items()
        ],
        'numGpus': len(daemon['links_down']),
        'numSwitches': 0,
        'switchInfo': [],
        'version': 16796592,
    }


def _activate(daemon: _Daemon, value: str) -> _Answer:
    number = int(value)
    modules = _supported(daemon).get(number)
    if modules is None:
        return BADPARAM, ''
    if number in _active(daemon) or any(
        set(modules) & set(daemon['partitions'][active])
        for active in daemon['active']
    ):
        return IN_USE, ''
    if len(modules) > 1 and any(
        daemon['links_down'].get(str(module)) for module in modules
    ):
        return NVLINK_ERROR, ''
    if not daemon['pretends']:
        daemon['active'][str(number)] = []
    return SUCCESS, ''


def _deactivate(daemon: _Daemon, value: str) -> _Answer:
    if str(int(value)) not in daemon['partitions']:
        return BADPARAM, ''
    if int(value) not in _active(daemon):
        return UNINITIALIZED, ''
    if not daemon['pretends']:
        del daemon['active'][str(int(value))]
    return SUCCESS, ''


def _set_activated(daemon: _Daemon, value: str) -> _Answer:
    if not daemon['waits_for_list']:
        return NOT_SUPPORTED, ''
    numbers = value.split(',') if value else []
    if not all(number in daemon['partitions'] for number in numbers):
        return BADPARAM, ''
    # A defect until April 2026: the tool does not count what it reads.
    told = [] if daemon['has_old_tool'] else numbers
    # Fabric Manager takes the routes of all others away.
    daemon['active'] = {number: [] for number in told}
    daemon['waits_for_list'] = False
    return SUCCESS, ''


def _uuid(daemon: _Daemon, module: int) -> str:
    # A GPU that vfio-pci has is not known to any driver of NVIDIA's.
    return f'GPU-{module}' if daemon['knows_gpus'] else ''


def _supported(daemon: _Daemon) -> dict[int, list[int]]:
    return {
        int(number): modules
        for number, modules in daemon['partitions'].items()
        if int(number) not in daemon['unsupported']
    }


def _active(daemon: _Daemon) -> set[int]:
    return {int(number) for number in daemon['active']}


_OPERATIONS = {
    '-l': ('get partition list', _list),
    '-a': ('activate partition', _activate),
    '-d': ('deactivate partition', _deactivate),
    '--set-activated-list': ('set activated partitions', _set_activated),
    '--get-nvlink-failed-devices': ('NVLink failed devices', _failed_devices),
    '--list-unsupported-partitions': (
        'list unsupported partitions',
        _list_unsupported,
    ),
}

if __name__ == '__main__':
    _status, _said = answer(sys.argv[1], sys.argv[2:])
    sys.stdout.write(_said)
    sys.exit(_status)
