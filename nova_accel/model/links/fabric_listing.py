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

"""The answers of Fabric Manager's client, read in bounds, without trust.

The tool is NVIDIA's ``fmpm`` (https://github.com/NVIDIA/Fabric-Manager-Client,
``fmpm.cpp``). Its exit status is the low byte of the library's return value,
which is negative for a failure (``fmReturn_t`` of ``nv_fm_types.h``). Failures
are explained on the standard output.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set
import enum
import json
from typing import Any
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.model.links import fabric

#: ``FM_MAX_FABRIC_PARTITIONS`` and ``FM_MAX_NUM_GPUS`` of ``nv_fm_types.h``.
MAX_PARTITIONS = 64
MAX_GPUS = 16

#: Modules are numbered from 1 to 8, or from 9 to 16 on a second board.
_MAX_MODULE = 255

#: A GPU that is given to a guest has this address in the list.
_NO_ADDRESS = '00000000:00:00.0'


#: The last is for lists in lists without end.
_MALFORMED = (KeyError, TypeError, ValueError, RecursionError)


class Outcome(enum.Enum):
    """The meaning of an exit status for the one who asked."""

    DONE = 'done'
    #: The partition is active already, or a GPU is in another active one.
    IN_USE = 'the partition or one of its GPUs is in use'
    #: The partition is not active.
    NOT_IN_USE = 'the partition is not active'
    #: Fabric Manager starts, or waits to be told what is active.
    NOT_READY = 'Fabric Manager is not ready yet'
    #: It does not manage partitions: there is no NVSwitch, or the mode is 0.
    NOT_SUPPORTED = 'Fabric Manager does not manage partitions'
    FAILED = 'Fabric Manager refused'


_OUTCOMES = {
    0: Outcome.DONE,
    -3: Outcome.NOT_SUPPORTED,  # FM_ST_NOT_SUPPORTED
    -4: Outcome.NOT_IN_USE,  # FM_ST_UNINITIALIZED
    -7: Outcome.IN_USE,  # FM_ST_IN_USE
    -8: Outcome.NOT_READY,  # FM_ST_NOT_CONFIGURED
    -12: Outcome.IN_USE,  # FM_ST_RESOURCE_IN_USE
    -13: Outcome.NOT_IN_USE,  # FM_ST_RESOURCE_NOT_IN_USE
    -15: Outcome.NOT_READY,  # FM_ST_RESOURCE_NOT_READY
    -17: Outcome.IN_USE,  # FM_ST_PARTITION_ID_IN_USE
    -18: Outcome.NOT_IN_USE,  # FM_ST_PARTITION_ID_NOT_IN_USE
    -22: Outcome.NOT_READY,  # FM_ST_NOT_READY
    -23: Outcome.IN_USE,  # FM_ST_RESOURCE_USED_IN_THIS_PARTITION
    -24: Outcome.IN_USE,  # FM_ST_RESOURCE_USED_IN_ANOTHER_PARTITION
}


class Unusable(NamedTuple):
    """The faults that take partitions away.

    ``numbers`` are partitions that Fabric Manager calls unsupported. ``gpus``
    are uuids and addresses of GPUs that have links that are down.
    """

    numbers: Mapping[int, frozenset[int]]
    gpus: frozenset[str]


#: Nothing takes any partition away.
NOTHING = Unusable({}, frozenset())


def outcome(status: int) -> Outcome:
    """The meaning of an exit status from 0 to 255.

    A process that a signal has ended has a negative status. No return value
    is meant by it.
    """
    if status < 0:
        return Outcome.FAILED
    return _OUTCOMES.get(status - 256 if status else 0, Outcome.FAILED)


def message(output: str) -> str:
    """The tool's message, short enough for a text of a fault."""
    return reason.sanitize(' '.join(output.split())) or 'it says nothing'


def partitions(
    output: str, unusable: Unusable = NOTHING
) -> tuple[fabric.Partition, ...]:
    """The partitions that ``fmpm -l`` lists, and those that are unsupported.

    :raises DeviceError: the list is malformed, or larger than it can be.
    """
    try:
        listed = [
            _partition(value, unusable.gpus)
            for value in _listed(output, 'partitionInfo', MAX_PARTITIONS)
        ]
    except _MALFORMED as error:
        raise _malformed(output, error) from error
    numbers = [each.number for each in listed]
    sets = [each.module_ids for each in listed]
    if len(set(numbers)) < len(numbers) or len(set(sets)) < len(sets):
        raise _malformed(output, ValueError('a partition is listed twice'))
    return (
        *(
            each._replace(is_supported=False)
            if each.number in unusable.numbers
            else each
            for each in listed
        ),
        *(
            fabric.Partition(
                number, members, False, False, tuple(sorted(members))
            )
            for number, members in sorted(unusable.numbers.items())
            if number not in numbers and members not in sets
        ),
    )


def unsupported(output: str) -> Mapping[int, frozenset[int]]:
    """The partitions of ``fmpm --list-unsupported-partitions``.

    :raises DeviceError: as for :func:`partitions`.
    """
    try:
        return {
            _number(value['partitionId'], MAX_PARTITIONS - 1): frozenset(
                _number(module, _MAX_MODULE)
                for module in _sequence(value['gpuPhysicalIds'], MAX_GPUS)
            )
            for value in _listed(output, 'partitionInfo', MAX_PARTITIONS)
        }
    except _MALFORMED as error:
        raise _malformed(output, error) from error


def failed(output: str) -> frozenset[str]:
    """Uuids and addresses of ``fmpm --get-nvlink-failed-devices``.

    :raises DeviceError: as for :func:`partitions`.
    """
    try:
        return frozenset(
            name
            for value in _listed(output, 'gpuInfo', MAX_GPUS)
            if _sequence(value['portNum'], MAX_PARTITIONS)
            for name in _names(value)
        )
    except _MALFORMED as error:
        raise _malformed(output, error) from error


def _partition(value: Any, down: Set[str]) -> fabric.Partition:
    gpus = _sequence(value['gpuInfo'], MAX_GPUS)
    order = tuple(_number(gpu['physicalId'], _MAX_MODULE) for gpu in gpus)
    if not order or len(set(order)) < len(order):
        raise ValueError(f'GPUs {order} of a partition')
    # The link of a GPU alone is not used.
    is_supported = len(order) == 1 or not any(
        _is_degraded(gpu) or down & set(_names(gpu)) for gpu in gpus
    )
    return fabric.Partition(
        _number(value['partitionId'], MAX_PARTITIONS - 1),
        frozenset(order),
        _number(value['isActive'], 1) == 1,
        is_supported,
        order,
    )


def _is_degraded(gpu: Any) -> bool:
    return bool(
        _number(gpu['numNvLinksAvailable'], MAX_PARTITIONS)
        < _number(gpu['maxNumNvLinks'], MAX_PARTITIONS)
    )


def _names(device: Any) -> Iterator[str]:
    """The uuid and the address, as far as they are known."""
    for key in ('uuid', 'pciBusId'):
        name = device[key]
        if not isinstance(name, str):
            raise TypeError(key)
        if name and name != _NO_ADDRESS:
            yield name.lower()


def _listed(output: str, key: str, most: int) -> list[Any]:
    return _sequence(json.loads(output)[key], most)


def _sequence(value: Any, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f'no list of at most {most}')
    return value


def _number(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f'{str(value)[:20]!r} is no number up to {most}')
    return value


def _malformed(output: str, error: Exception) -> exceptions.DeviceError:
    return exceptions.DeviceError(
        f'the list of Fabric Manager is malformed ({error!r}): '
        f'{message(output)}'
    )
