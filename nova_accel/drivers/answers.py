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


"""Check the answers of drivers as they arrive.

An answer goes into the journal, the provider tree and the host's report, which
all devices share. A value that would fail there is refused here, where it
costs only its own device. Each check raises ValueError with a text that says
what is wrong. :mod:`nova_accel.drivers.guard` adds the driver and the device.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sized
import dataclasses
import enum
import functools
import re
import types
import typing
from typing import Any

from nova_accel.drivers import base
from nova_accel.host import pci_function
from nova_accel.model import bounds
from nova_accel.model import naming
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware

#: The longest text in which a region says what it holds, in characters. A file
#: in sysfs has one page.
MAX_TEXT_LENGTH = 4096

#: The most facts that two hosts compare before a live migration of a device.
MAX_FACTS = 32

_FLAGS = ('repeats_programming', 'programs_under_guest', 'tells_contents')

#: Types that are checked first, because a card may have thousands of such
#: values.
_PLAIN = frozenset({str, int, bool, type(None)})

_UUID = re.compile(bounds.UUID)
_PLACEMENT_NAME = re.compile(bounds.PLACEMENT_NAME)


def driver(made: Any) -> base.Driver:
    """The object that an entry point made, checked to be a driver."""
    if not isinstance(made, base.Driver):
        raise ValueError(f'{_shown(made)} is no {base.Driver.__name__}')
    for name in _FLAGS:
        _check(getattr(made, name), bool, name)
    _check(made.kind, str | None, 'kind')
    for name in ('line_keys', 'cleaning_methods'):
        _check(getattr(made, name), frozenset[str], name)
    return made


def text(said: Any) -> str:
    """The text in which a region or a card says what it holds."""
    _check(said, str, 'the answer')
    if len(said) > MAX_TEXT_LENGTH:
        raise ValueError(
            f'the answer has {len(said)} characters, more than '
            f'{MAX_TEXT_LENGTH}'
        )
    return str(said)


def migration_facts(said: Any, count: int) -> tuple[Mapping[str, str], ...]:
    """The facts that both hosts of a live migration must share.

    :param count: of how many devices
    """
    _check(said, tuple[Mapping[str, str], ...], 'the answer')
    if len(said) != count:
        raise ValueError(f'the answer is of {len(said)} devices, not {count}')
    for each in said:
        if len(each) > MAX_FACTS:
            raise ValueError(
                f'the answer has {len(each)} facts, more than {MAX_FACTS}'
            )
    return tuple(
        {text(name): text(value) for name, value in each.items()}
        for each in said
    )


def device(
    found: Any,
    function: pci_function.PciFunction,
    spec: device_spec.DeviceSpec,
) -> hardware.Device | None:
    """The device that a driver found in a function, checked, None if none."""
    if found is None:
        return None
    _check_amounts(found)
    _check(found, hardware.Device, 'the device')
    made: hardware.Device = found
    for name, value, expected in (
        ('name', made.name, function.name),
        ('address', made.address, function.address),
        ('driver', made.driver, spec.driver),
    ):
        if value != expected:
            raise ValueError(
                f'the {name} of the device is {_shown(value)}, not {expected}'
            )
    if made.type not in naming.RESOURCE_CLASSES:
        raise ValueError(f'its type is {_shown(made.type)}')
    _check_contents(made)
    return made


def _check_amounts(found: object) -> None:
    """Check that no one has to look at too much, before anybody does.

    A part of a wrong type is left to :func:`_check`, which says so.
    """
    if type(found) is not hardware.Device:
        return
    parts = _amount(found.regions) + _amount(found.attributes)
    traits: set[object] = set()
    for each in found.deployables if _amount(found.deployables) else ():
        if type(each) is hardware.Deployable:
            parts += 1 + _amount(each.handles) + _amount(each.traits)
            if isinstance(each.traits, frozenset):
                traits |= each.traits
    if parts > bounds.MAX_PARTS:
        raise ValueError(
            f'it has {parts} deployables, regions, attributes, units and '
            f'traits, more than {bounds.MAX_PARTS}'
        )
    if len(traits) > bounds.MAX_TRAITS:
        raise ValueError(
            f'it has {len(traits)} different traits, more than '
            f'{bounds.MAX_TRAITS}'
        )


def _amount(parts: object) -> int:
    return len(parts) if isinstance(parts, Sized) else 0


def _check_contents(made: hardware.Device) -> None:
    """Check that the parts have valid and distinct names."""
    regions = [region.name for region in made.regions]
    deployables = [deployable.name for deployable in made.deployables]
    handles = [handle.uuid for handle in made.handles]
    for what, names in (
        ('region', regions),
        ('deployable', deployables),
        ('attach handle', handles),
    ):
        _check_names(what, names)
    for uuid in handles:
        if not _UUID.fullmatch(uuid):
            raise ValueError(f'{_shown(uuid)} is no uuid of an attach handle')
    known = {None, *regions}
    for deployable in made.deployables:
        if deployable.region not in known:
            raise ValueError(
                f'{deployable.name} is in {deployable.region}, '
                'which is no region of it'
            )
        for name in (deployable.resource_class, *deployable.traits):
            if not _PLACEMENT_NAME.fullmatch(name):
                raise ValueError(f'{_shown(name)} is no name in Placement')


def _check_names(what: str, names: Iterable[str]) -> None:
    """Check that all names are valid and no two are the same."""
    seen: set[str] = set()
    for name in names:
        if not 0 < len(name) <= bounds.MAX_TEXT or not name.isprintable():
            raise ValueError(f'{_shown(name)} is no name of a {what}')
        if name in seen:
            raise ValueError(f'it has two {what}s {name}')
        seen.add(name)


def _check(value: object, annotation: Any, name: str) -> None:
    """Check that a value and its parts are of the annotated type."""
    if annotation in _PLAIN and type(value) is annotation:
        return
    origin, arguments = (
        typing.get_origin(annotation),
        typing.get_args(annotation),
    )
    if origin is types.UnionType or origin is typing.Union:
        if value is not None or type(None) not in arguments:
            (annotation,) = set(arguments) - {type(None)}
            _check(value, annotation, name)
        return
    # Subclasses are refused: True, for one, is an int.
    expected = origin or annotation
    is_one = (
        isinstance(value, expected)
        if expected is Mapping or issubclass(expected, enum.Enum)
        else type(value) is expected
    )
    if not is_one:
        raise ValueError(f'{name} is {_shown(value)}')
    _check_parts(value, arguments, name)


def _check_parts(value: object, arguments: tuple[Any, ...], name: str) -> None:
    """Check that the parts of a value are of the annotated types."""
    if dataclasses.is_dataclass(value):
        kind: Any = type(value)
        for field, its_type in _fields(kind):
            _check(getattr(value, field), its_type, f'{name}.{field}')
    elif isinstance(value, Mapping):
        for key, its_value in value.items():
            _check(key, arguments[0], f'a key of {name}')
            _check(its_value, arguments[1], f'{name}[{key!r}]')
    elif arguments and isinstance(value, Iterable):
        for each in value:
            _check(each, arguments[0], f'a part of {name}')


@functools.cache
def _fields(of: Any) -> tuple[tuple[str, Any], ...]:
    """The names of a dataclass's fields, and their types."""
    return tuple(typing.get_type_hints(of).items())


def _shown(value: object) -> str:
    """The beginning of the value's repr, for error texts."""
    return repr(value)[: bounds.MAX_TEXT]
