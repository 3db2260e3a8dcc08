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

"""Divide a GPU of NVIDIA into GPU instances, as root.

Each function runs ``nvidia-smi``, one program at a time on this host. It
returns the exit status, and what the program has written, which is bounded. It
takes a card whose line of ``device_spec`` has ``shapes``, no other.
"""

import pathlib

from nova_accel import privileged
from nova_accel.privileged import arguments
from nova_accel.privileged import offered
from nova_accel.privileged import pci_function
from nova_accel.privileged import vendor_tool

#: The mount point of sysfs; callers cannot choose it.
SYSFS = pathlib.Path('/sys')

#: A directory of root that a reboot empties; callers cannot choose it.
RUN = pathlib.Path('/run')

#: The lists of :func:`listed`: profiles, their places, and GPU instances.
LISTS = ('-lgip', '-lgipp', '-lgi')

#: The program of NVIDIA that alone makes and removes virtual functions.
SRIOV_MANAGE = '/usr/lib/nvidia/sriov-manage'

# NVML_ERROR_IN_USE of nvml.h.
_IN_USE = 19

_LONGEST_S = 600
_MAX_OUTPUT = 1 << 18
_MAX_NUMBER = 1 << 16


@privileged.mig_pctxt.entrypoint
def mode(address: str, timeout_s: float) -> tuple[int, str]:
    """Tell the MIG mode that a card has, and the one that it is to get.

    As for all functions here:

    :param timeout_s: the seconds that the program may take
    :raises ValueError: an argument is malformed, the card is not offered, or
        the output has no end.
    :raises OSError: the program cannot be started, or does not end.
    """
    return _run(
        timeout_s,
        '-i',
        _card(address),
        '--query-gpu=mig.mode.current,mig.mode.pending',
        '--format=csv,noheader',
    )


@privileged.mig_pctxt.entrypoint
def set_mode(address: str, is_on: int, timeout_s: float) -> tuple[int, str]:
    """Turn the MIG mode of a card without vGPUs on or off.

    Drivers refuse that while the card has virtual functions, seen with 580
    (bigstack-oss/cubecos#905). So these go meanwhile, which takes all GPU
    instances with them.

    :param is_on: 1 or 0
    """
    card = _card(address)
    wanted = str(arguments.integer('is_on', is_on, 0, 1))
    _check_without_vgpus(card)
    told = _run(timeout_s, '-i', card, '-mig', wanted)
    if told[0] != _IN_USE or not any(_directory(card).glob('virtfn*')):
        return told
    removed = _run(timeout_s, '-d', card, program=SRIOV_MANAGE)
    if removed[0]:
        return removed
    told = _run(timeout_s, '-i', card, '-mig', wanted)
    made = _run(timeout_s, '-e', card, program=SRIOV_MANAGE)
    return told if told[0] else made


@privileged.mig_pctxt.entrypoint
def set_functions(
    address: str, are_there: int, timeout_s: float
) -> tuple[int, str]:
    """Make the virtual functions of a card without vGPUs, or remove them.

    :param are_there: 1 or 0
    """
    card = _card(address)
    option = '-e' if arguments.integer('are_there', are_there, 0, 1) else '-d'
    _check_without_vgpus(card)
    return _run(timeout_s, option, card, program=SRIOV_MANAGE)


@privileged.mig_pctxt.entrypoint
def listed(address: str, what: str, timeout_s: float) -> tuple[int, str]:
    """List what a card in MIG mode can have, or has.

    :param what: one of :data:`LISTS`
    """
    card = _card(address)
    if arguments.text('what', what) not in LISTS:
        raise ValueError(f'what {what[:20]!r} is no list')
    return _run(timeout_s, 'mig', '-i', card, what)


@privileged.mig_pctxt.entrypoint
def create(
    address: str, profile: int, start: int, timeout_s: float
) -> tuple[int, str]:
    """Create a GPU instance at a place, with one compute instance."""
    wanted = f'{_number("profile", profile)}:{_number("start", start)}'
    return _run(timeout_s, 'mig', '-i', _card(address), '-cgi', wanted, '-C')


@privileged.mig_pctxt.entrypoint
def destroy(address: str, instance: int, timeout_s: float) -> tuple[int, str]:
    """Destroy a GPU instance that no one uses, and what is in it."""
    number = _number('instance', instance)
    which = ('mig', '-i', _card(address), '-gi', number)
    # It fails if there is none. One that is left, the other command refuses.
    _run(timeout_s, *which, '-dci')
    return _run(timeout_s, *which, '-dgi')


def _card(address: str) -> str:
    """The address of a card that this host offers in shapes."""
    name = pci_function.address(address)
    line = offered.check(SYSFS, name, 'nvidia')
    if not line.shapes:
        raise ValueError(f'address {name}: its line has no "shapes"')
    if (_directory(name) / 'physfn').is_symlink():
        raise ValueError(f'address {name}: it is a virtual function')
    return name


def _directory(card: str) -> pathlib.Path:
    return SYSFS / 'bus/pci/devices' / card


def _check_without_vgpus(card: str) -> None:
    """:raises ValueError: a virtual function of the card has a vGPU."""
    directory = _directory(card)
    types = directory.glob('virtfn*/nvidia/current_vgpu_type')
    if any(path.read_text().strip() != '0' for path in types) or any(
        directory.glob('virtfn*/mdev_supported_types/*/devices/*')
    ):
        raise ValueError(f'address {card}: it has a vGPU')


def _number(name: str, value: int) -> str:
    return str(arguments.integer(name, value, 0, _MAX_NUMBER))


def _run(
    timeout_s: float, *command: str, program: str = 'nvidia-smi'
) -> tuple[int, str]:
    answer = vendor_tool.run(
        (program, *command),
        arguments.seconds('timeout_s', timeout_s, _LONGEST_S),
        most=_MAX_OUTPUT,
        lock=RUN / 'nova_accel-mig.lock',
    )
    return answer.status, answer.text + answer.errors.decode(errors='replace')
