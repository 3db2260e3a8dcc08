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


"""Which test shows what: the manual's table of server operations.

A test says with :func:`shows` which row it fills; in which columns follows
from its class's ``flavor_key`` and from the devices of its server. Each such
test ends with a look at what Placement has allocated. A unit test
finds cells that no test shows; ``tools/operations_to_rst.py`` writes the
table.
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import importlib
import inspect
import pkgutil
from typing import NamedTuple
import unittest

from nova.compute import api

import functional
from functional import base
from nova_accel.model.profiles import device_profile

FLAVORS = {
    'NATIVE': device_profile.FLAVOR_KEY,
    'COMPAT': device_profile.CYBORG_FLAVOR_KEY,
}
DEVICES = ('PCI', 'mdev')

_RESIZES = (
    'on the same host, confirmed',
    'on the same host, reverted',
    'to another host, confirmed',
    'to another host, reverted',
)

#: Operation -> its cases; '' is that it works.
OPERATIONS: Mapping[str, Sequence[str]] = {
    'boot': ('', 'no device is free', 'every host fails'),
    'reschedule': ('a device refuses', 'the guest does not start'),
    'multi-create': ('', 'too few devices are free'),
    'delete': ('', 'a device is stuck', 'the API is away'),
    'local delete': ('', 'the API is away'),
    'soft delete, restore': ('', 'reclaimed instead', 'a device refuses'),
    'soft reboot': ('',),
    'hard reboot': ('', 'a device refuses'),
    'stop, start': ('', 'a device refuses'),
    'pause, unpause': ('',),
    'lock, unlock': ('',),
    'suspend': (
        '',
        'a device is not detached',
        'the guest does not let go',
        'the guest is not saved',
        'the guest dies',
        'devices do not come back either',
    ),
    'resume': (
        '',
        'a device refuses',
        'a device is not attached',
        'it is not suspended again',
        'the journal is lost',
    ),
    'rescue': ('', 'a device refuses'),
    'unrescue': ('', 'a device refuses'),
    'shelve': ('', 'the snapshot fails'),
    'shelve offload': ('', 'a device is stuck'),
    'unshelve': (
        'on the same host',
        'on another host',
        'the guest does not start',
        'a device refuses',
    ),
    'rebuild': (
        'with the same image',
        'with a new image',
        'the guest does not start',
        'a device refuses',
    ),
    'evacuate': ('', 'the destination fails', 'a device refuses'),
    'return of the source of an evacuation': (
        '',
        'the API is away',
        'a device is stuck',
        'too early',
        'the server is deleted',
    ),
    'resize to accelerators': _RESIZES,
    'resize between profiles': _RESIZES,
    'resize to a plain flavor': _RESIZES,
    'resize from vGPUs of Nova to ours': _RESIZES[2:],
    'resize from our vGPUs to those of Nova': _RESIZES[2:],
    'resize': (
        'deleted before it is confirmed',
        'the source refuses',
        'the source fails',
        'a device refuses on the destination',
        'the destination acquires nothing',
        'the destination fails, deleted',
        'the confirmation fails',
        'a device is stuck when it is confirmed',
        'a device is stuck when it is reverted',
        'a device refuses when it is reverted',
        'the revert fails on the source',
    ),
    'cold migration': (
        'confirmed',
        'reverted',
        'the source fails',
        'a device refuses on the destination',
        'the API is away on the source',
        'the API is away on the destination',
    ),
    'resize to another cell': (
        'confirmed',
        'reverted',
        'the destination fails',
        'a device refuses on the destination',
    ),
    'live migration': (
        '',
        'the guest does not arrive',
        'the destination makes no device',
        'a device is stuck on the source',
        'refused by the driver of a device',
    ),
    'live snapshot': ('', 'the disk is not copied'),
    'cold snapshot': (
        '',
        'a device is not detached',
        'a device is not attached',
    ),
    'set password': ('',),
    'crash dump': ('',),
    'attach, detach an interface': ('',),
    'attach, detach a volume': ('',),
    'reboot of the host': ('', 'a device refuses'),
}

_RESIZE = tuple(
    operation for operation in OPERATIONS if operation.startswith('resize')
)

#: Operation -> the method of Nova's compute API that refuses servers with
#: Cyborg's key.
FORBIDDEN: Mapping[str, str] = {
    'suspend': 'suspend',
    'resume': 'suspend',
    'cold migration': 'resize',
    'live migration': 'live_migrate',
    **dict.fromkeys(_RESIZE, 'resize'),
}

#: What there is for devices of one kind alone.
_ONE_KIND = {
    ('live migration', 'the destination makes no device'): ('mdev',),
    ('live migration', 'a device is stuck on the source'): ('mdev',),
    ('live migration', 'refused by the driver of a device'): ('PCI',),
    **{
        (operation, case): ('mdev',)
        for operation in OPERATIONS
        if 'vGPUs' in operation
        for case in OPERATIONS[operation]
    },
}


class Cell(NamedTuple):
    operation: str
    case: str
    flavor: str
    device: str

    @property
    def forbidden(self) -> bool:
        return self.flavor == 'COMPAT' and self.operation in FORBIDDEN


def shows(
    operation: str, *cases: str, devices: Collection[str] = DEVICES
) -> Callable:
    """Mark a test that shows an operation, or some cases of it.

    :raises ValueError: the table has no such cell.
    """
    claimed = [
        (operation, case, device)
        for case in cases or ('',)
        for device in devices
    ]
    for _operation, case, device in claimed:
        if case not in OPERATIONS.get(operation, ()) or device not in _devices(
            operation, case
        ):
            raise ValueError(f'no such cell: {operation}, {case}, {device}')
    return _marked(claimed)


def refuses(*operations: str) -> Callable:
    """Mark a test that shows that Nova forbids operations, in each case."""
    return _marked(
        [
            (operation, case, device)
            for operation in operations
            for case in OPERATIONS[operation]
            for device in _devices(operation, case)
        ]
    )


def cells() -> list[Cell]:
    """All of the table, by rows."""
    return [
        Cell(operation, case, flavor, device)
        for operation, cases in OPERATIONS.items()
        for case in cases
        for flavor in FLAVORS
        for device in _devices(operation, case)
    ]


def shown() -> Mapping[Cell, Sequence[str]]:
    """Cell -> the tests that show it, as ``module.method``."""
    flavors = {key: flavor for flavor, key in FLAVORS.items()}
    found = collections.defaultdict(list)
    for test_class, name in _tests():
        for operation, case, device in getattr(
            getattr(test_class, name), 'shows', ()
        ):
            cell = Cell(
                operation, case, flavors[test_class.flavor_key], device
            )
            module = test_class.__module__.removeprefix('functional.')
            found[cell].append(f'{module}.{name}')
    return found


def place(method: str) -> str:
    """Where Nova's compute API refuses a method, as ``file:line``.

    :raises LookupError: it does not.
    """
    lines, first = inspect.getsourcelines(getattr(api.API, method))
    for number, line in enumerate(lines, first):
        if line.strip() == '@block_accelerators()':
            return f'nova/compute/api.py:{number} {line.strip()}'
    raise LookupError(f'Nova lets servers with accelerators {method}')


def _marked(claimed: Sequence[tuple[str, str, str]]) -> Callable:
    """Mark a test; at its end Placement has counted what is held."""

    def mark(test: Callable) -> Callable:
        @functools.wraps(test)
        def counted(self: base.AcceleratorTestCase) -> None:
            test(self)
            self.assert_all_counted()

        counted.shows = [*getattr(test, 'shows', ()), *claimed]
        return counted

    return mark


def _devices(operation: str, case: str) -> Collection[str]:
    return _ONE_KIND.get((operation, case), DEVICES)


def _tests() -> Iterator[tuple[type[base.AcceleratorTestCase], str]]:
    loader = unittest.TestLoader()
    for found in pkgutil.iter_modules(functional.__path__):
        if not found.name.startswith('test_'):
            continue
        module = importlib.import_module(f'functional.{found.name}')
        for _name, value in inspect.getmembers(module, inspect.isclass):
            if value.__module__ == module.__name__ and issubclass(
                value, base.AcceleratorTestCase
            ):
                for name in loader.getTestCaseNames(value):
                    yield value, name
