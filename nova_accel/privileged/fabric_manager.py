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

"""Ask Fabric Manager for partitions of NVSwitches, as root.

Each function runs one program to its end, one at a time on this host. It
returns the exit status, and what the program has written. It is bounded: a
list of 64 partitions of 16 GPUs has less than 400 KiB.
"""

from collections.abc import Sequence
import pathlib
import sys
from typing import TypeVar

from oslo_config import cfg

from nova_accel import fabric_options
from nova_accel import privileged
from nova_accel.privileged import arguments
from nova_accel.privileged import fabric_library
from nova_accel.privileged import offered
from nova_accel.privileged import pci_function
from nova_accel.privileged import vendor_tool

_T = TypeVar('_T')

#: The mount point of sysfs; callers cannot choose it.
SYSFS = pathlib.Path('/sys')

#: A directory of root that a reboot empties; callers cannot choose it.
RUN = pathlib.Path('/run')

#: ``FM_MAX_FABRIC_PARTITIONS`` and ``FM_MAX_NUM_GPUS`` of ``nv_fm_types.h``.
_PARTITIONS = range(64)
_MAX_GPUS = 16

_LONGEST_S = 600


@privileged.fabric_pctxt.entrypoint
def partitions(timeout_s: float) -> tuple[int, str]:
    """List all partitions.

    As for all functions here:

    :param timeout_s: the seconds that the program may take
    :raises ValueError: an argument is malformed, or the output has no end.
    :raises OSError: the program cannot be started, or does not end.
    """
    return _ask(timeout_s, '-l')


@privileged.fabric_pctxt.entrypoint
def unsupported(timeout_s: float) -> tuple[int, str]:
    """List the partitions that a fault has taken away."""
    return _ask(timeout_s, '--list-unsupported-partitions')


@privileged.fabric_pctxt.entrypoint
def failed(timeout_s: float) -> tuple[int, str]:
    """List the GPUs and switches with links that are down."""
    return _ask(timeout_s, '--get-nvlink-failed-devices')


@privileged.fabric_pctxt.entrypoint
def activate(
    number: int, functions: Sequence[str], timeout_s: float
) -> tuple[int, str]:
    """Activate a partition.

    :param functions: the address of a virtual function of each GPU, in the
        partition's order; empty for whole GPUs
    """
    named = [
        _function(each) for each in _several('functions', functions, _MAX_GPUS)
    ]
    if not named:
        return _ask(timeout_s, '-a', _partition(number))
    if len(set(named)) < len(named):
        raise ValueError(f'functions: {", ".join(named)} has one twice')
    options = cfg.CONF[fabric_options.GROUP]
    return _run(
        timeout_s,
        sys.executable,
        '-I',
        fabric_library.__file__,
        options.fabric_manager_library,
        _endpoint(),
        _partition(number),
        *named,
    )


@privileged.fabric_pctxt.entrypoint
def deactivate(number: int, timeout_s: float) -> tuple[int, str]:
    """Deactivate a partition."""
    return _ask(timeout_s, '-d', _partition(number))


@privileged.fabric_pctxt.entrypoint
def restore(numbers: Sequence[int], timeout_s: float) -> tuple[int, str]:
    """Say which partitions are active, to a Fabric Manager that waits."""
    # The tool goes on forever if it reads a number twice.
    several = {
        int(_partition(each))
        for each in _several('numbers', numbers, len(_PARTITIONS))
    }
    listed = ','.join(map(str, sorted(several)))
    return _ask(timeout_s, '--set-activated-list', listed)


def _ask(timeout_s: float, *arguments: str) -> tuple[int, str]:
    endpoint = _endpoint()
    return _run(
        timeout_s,
        cfg.CONF[fabric_options.GROUP].fabric_manager_command,
        *(
            ('--unix-domain-socket', endpoint)
            if endpoint.startswith('/')
            else ('--hostname', endpoint)
        ),
        *arguments,
    )


def _endpoint() -> str:
    endpoint: str | None = cfg.CONF[fabric_options.GROUP].fabric_manager
    if not endpoint:
        raise ValueError('[nova_accel] fabric_manager is not set')
    return endpoint


def _partition(number: int) -> str:
    return str(
        arguments.integer('partition', number, _PARTITIONS[0], _PARTITIONS[-1])
    )


def _several(name: str, values: Sequence[_T], most: int) -> Sequence[_T]:
    if not isinstance(values, list | tuple) or len(values) > most:
        raise ValueError(f'{name} is no list of {most} at most')
    return values


def _function(text: str) -> str:
    """The address of a virtual function that this host offers."""
    name = pci_function.address(text)
    offered.check(SYSFS, name)
    if not (SYSFS / 'bus/pci/devices' / name / 'physfn').is_symlink():
        raise ValueError(f'functions: {name} is no virtual function')
    return name


def _run(timeout_s: float, *command: str) -> tuple[int, str]:
    answer = vendor_tool.run(
        command,
        arguments.seconds('timeout_s', timeout_s, _LONGEST_S),
        lock=RUN / 'nova_accel-fabric.lock',
    )
    # A list is on the standard output alone, a failure on either.
    errors = answer.errors if answer.status else b''
    return answer.status, answer.text + errors.decode(errors='replace')
