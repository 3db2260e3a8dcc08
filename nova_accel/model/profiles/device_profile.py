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

"""Device profiles: an administrator's lists of what servers may ask for.

A profile is a list of groups; a group is a flat mapping of three kinds of
keys (Cyborg's format, "User Requests" in the acceleration service spec)::

    {"resources:FPGA": "1",
     "trait:CUSTOM_FPGA_INTEL_PAC": "required",
     "accel:bitstream_id": "d5ca2f11-3108-4426-a11c-a959987565df"}
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import functools
import re
import uuid

from nova_accel import exceptions
from nova_accel.model import link_sets
from nova_accel.model import naming
from nova_accel.model.cards import card_slice

#: The flavor extra spec with the name of a device profile.
FLAVOR_KEY = 'nova_accel:device_profile'

#: Cyborg's extra spec for it, to which Nova's own client reacts.
CYBORG_FLAVOR_KEY = 'accel:device_profile'

#: The regular expression of the whole name of a device profile.
NAME_PATTERN = r'[a-zA-Z0-9_-]{1,255}'

_NAME = re.compile(NAME_PATTERN)
_CUSTOM_NAME = re.compile(r'CUSTOM_[A-Z0-9_]{1,248}')
_AMOUNT = re.compile(r'[0-9]{1,4}')

#: The ``accel:`` keys that say how the group's device is programmed. A group
#: has at most one of them. All values but ``function_name`` are uuids.
PROPERTIES = frozenset({'bitstream_id', 'function_id', 'function_name'})

#: The ``accel:`` key that says whether hosts fetch the group's bitstream
#: before a server needs it.
PREFETCH = 'prefetch'

#: The ``accel:`` key that says whether all units of a group have to be on one
#: NUMA node.
SINGLE_NUMA_NODE = 'single_numa_node'

#: The ``accel:`` key that says whether units have to be near the guest's NUMA
#: cells.
NUMA_AFFINITY = 'numa_affinity'

#: The ``accel:`` key that says how the units of a group have to be joined.
LINK = 'link'

#: The ``accel:`` key that names the shape of a group's units, on a card that
#: can take several.
SHAPE = 'shape'

_SHAPE = re.compile(card_slice.SHAPE_PATTERN)

#: The values of :data:`LINK`. Nothing that a guest runs cares for root
#: complexes alone.
LINKS = (
    link_sets.Kind.NVLINK,
    link_sets.Kind.PCIE,
    link_sets.Kind.NUMA,
)

_BOOLEANS = {'true': True, 'false': False}

#: A server's request: the name of a device profile, or groups that are in no
#: profile but have the same form.
Asked = str | Sequence[Mapping[str, str]]

#: The device profile's name of an ARQ whose group is in no profile.
NO_PROFILE = ''

#: The maximum number of units of a resource class in one group.
MAX_UNITS = 64


class NumaAffinity(enum.StrEnum):
    """Whether units are on the host's NUMA nodes that have the guest's cells.

    With ``PREFERRED`` they are if such units are free.
    """

    REQUIRED = 'required'
    PREFERRED = 'preferred'


@dataclasses.dataclass(frozen=True)
class Group:
    """One request group, which a single resource provider serves.

    ``link`` is one of :data:`LINKS`. All groups of a profile with the same one
    are joined in one set of devices. None if that does not matter.
    """

    resources: Mapping[str, int]
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    properties: Mapping[str, str] = dataclasses.field(default_factory=dict)
    is_prefetched: bool = False
    is_on_one_numa_node: bool = False
    link: str | None = None
    numa_affinity: NumaAffinity | None = None

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:
        # Its mappings have no hash.
        return hash(
            (
                frozenset(self.resources.items()),
                self.required,
                self.forbidden,
                frozenset(self.properties.items()),
            )
        )

    def units(self) -> Iterator[str]:
        """The resource class of each accelerator request of this group."""
        for resource_class, amount in sorted(self.resources.items()):
            for _unit in range(amount):
                yield resource_class


def requester_id(
    index: int, port_uuid: str = '', part: int | None = None
) -> str:
    """The id of the ``index``-th group, counted from zero, in Nova.

    :param port_uuid: the port that has the profile, empty for the flavor's
        profile
    :param part: the number of a part of the group, None for the whole group
    """
    number = f'{index}' if part is None else f'{index}_{part}'
    return f'device_profile_{number}{port_uuid}'


def set_requester_id(index: int, port_uuid: str = '') -> str:
    """The id of the group of the set that joins units, in Nova.

    :param index: of the first group that is joined
    :param port_uuid: as for :func:`requester_id`
    """
    return f'device_profile_{index}_set{port_uuid}'


def check_name(name: str) -> None:
    """:raises InvalidDeviceProfile: the name is too long or malformed."""
    if not _NAME.fullmatch(name):
        raise exceptions.InvalidDeviceProfile(
            'Device profile name must be of the form '
            f'^[a-zA-Z0-9-_]+$ and at most 255 long: {name!r}'
        )


def checked_groups(
    raw: Sequence[Mapping[str, str | int]],
) -> list[dict[str, str]]:
    """The groups of a client's request, in the form that is stored.

    Values become texts, and blanks around the name in a key are removed. A
    group that names a shape gets the resource class of the shape.

    :raises InvalidDeviceProfile: a key occurs twice, a key or value is wrong,
        or no accelerator could ever serve a group; the text names it
    """
    groups = [_normalized_group(group) for group in raw]
    for number, group in enumerate(parse_groups(groups)):
        if naming.OWNERSHIP_TRAIT in group.forbidden:
            raise exceptions.InvalidDeviceProfile(
                f'group {number} forbids {naming.OWNERSHIP_TRAIT}, which '
                'every accelerator has: leave this key out'
            )
    return groups


def _normalized_group(raw: Mapping[str, str | int]) -> dict[str, str]:
    group: dict[str, str] = {}
    for key, value in raw.items():
        kind, colon, name = key.partition(':')
        key = f'{kind}{colon}{name.strip(" ")}'
        if key in group:
            raise exceptions.InvalidDeviceProfile(
                f'A device profile group has the key {key} twice'
            )
        # For JSON Schema 1.0 is an integer.
        group[key] = value if isinstance(value, str) else str(int(value))
    shape = group.get(f'accel:{SHAPE}')
    if shape is not None:
        group.setdefault(f'resources:{_class_of(shape)}', '1')
    return group


def parse_groups(raw: Sequence[Mapping[str, str]]) -> tuple[Group, ...]:
    """The groups of a profile, checked, in their order.

    :raises InvalidDeviceProfile: a key or value is wrong; the text names it.
    """
    if not raw:
        raise exceptions.InvalidDeviceProfile(
            'A device profile needs at least one group'
        )
    groups = tuple(parse_group(group) for group in raw)
    _check_links(groups)
    return groups


def _check_links(groups: Sequence[Group]) -> None:
    for link in LINKS:
        joined = [group for group in groups if group.link == link]
        amount = sum(sum(group.resources.values()) for group in joined)
        if amount == 1:
            raise exceptions.InvalidDeviceProfile(
                f'accel:{LINK}={link} joins two units or more: let the group '
                'ask for more units, or give another group of the profile '
                f'accel:{LINK}={link}, too'
            )
        if amount > link_sets.MAX_SIZE:
            raise exceptions.InvalidDeviceProfile(
                f'accel:{LINK}={link} joins {link_sets.MAX_SIZE} units at '
                f'most, and the profile asks for {amount}'
            )
        classes = sorted(set().union(*(group.resources for group in joined)))
        if link == link_sets.Kind.NVLINK and len(classes) > 1:
            raise exceptions.InvalidDeviceProfile(
                f'accel:{LINK}={link} joins units of one resource class, and '
                f'the profile asks for {" and ".join(classes)}'
            )


def parse_group(raw: Mapping[str, str]) -> Group:
    """One group of a profile, which may be joined with others of it.

    :raises InvalidDeviceProfile: a key or value is wrong; the text names it.
    """
    resources: dict[str, int] = {}
    traits: dict[str, set[str]] = {'required': set(), 'forbidden': set()}
    accel: dict[str, str] = {}
    for key, value in raw.items():
        kind, colon, name = key.partition(':')
        if not colon or kind not in ('resources', 'trait', 'accel'):
            raise exceptions.InvalidDeviceProfile(
                'Device profile group keys must be of the form '
                f'^(resources:|trait:|accel:): {key}'
            )
        if kind == 'resources':
            resources[_resource_class(name)] = _amount(name, value)
        elif kind == 'trait':
            if value not in traits:
                raise exceptions.InvalidDeviceProfile(
                    f'Unsupported trait value {value}, the value must be one '
                    f"among ['required', 'forbidden'] for {name}"
                )
            traits[value].add(_trait(name))
        else:
            accel[name] = value
    _check_shape(accel, resources)
    if not resources:
        raise exceptions.InvalidDeviceProfile(
            'A device profile group needs a resources: key'
        )
    is_prefetched = _boolean(PREFETCH, accel.pop(PREFETCH, 'false'))
    is_on_one_numa_node = _boolean(
        SINGLE_NUMA_NODE, accel.pop(SINGLE_NUMA_NODE, 'false')
    )
    numa_affinity = _numa_affinity(accel.pop(NUMA_AFFINITY, None))
    link = _link(accel.pop(LINK, None))
    if link is not None and is_on_one_numa_node:
        raise exceptions.InvalidDeviceProfile(
            f'A device profile group can have either accel:{LINK} or '
            f'accel:{SINGLE_NUMA_NODE}; accel:{LINK}='
            f'{link_sets.Kind.NUMA} joins units by their NUMA node'
        )
    properties = _properties(accel)
    if is_prefetched and 'bitstream_id' not in properties:
        raise exceptions.InvalidDeviceProfile(
            f'accel:{PREFETCH} is for a group with accel:bitstream_id'
        )
    return Group(
        resources,
        frozenset(traits['required']),
        frozenset(traits['forbidden']),
        properties,
        is_prefetched,
        is_on_one_numa_node,
        link,
        numa_affinity,
    )


def _class_of(shape: str) -> str:
    if not _SHAPE.fullmatch(shape):
        raise exceptions.InvalidDeviceProfile(
            f'Invalid value {shape!r} of accel:{SHAPE}, it must be '
            f'{card_slice.SHAPE_EXAMPLES}'
        )
    return naming.shape_class(shape)


def _check_shape(accel: dict[str, str], resources: dict[str, int]) -> None:
    """Take the shape out of a group's keys, as its resource class tells it."""
    if SHAPE in accel:
        resource_class = _class_of(accel.pop(SHAPE))
        resources.setdefault(resource_class, 1)
        others = [
            *sorted(resources.keys() - {resource_class}),
            *(
                f'accel:{name}'
                for name in sorted({LINK, *PROPERTIES} & accel.keys())
            ),
        ]
        if others:
            raise exceptions.InvalidDeviceProfile(
                f'A device profile group with accel:{SHAPE} asks for units of '
                f'that shape alone, not for {", ".join(others)}'
            )
        return
    for name in resources:
        if name == naming.CARD_SHARE or naming.is_shape_class(name):
            raise exceptions.InvalidDeviceProfile(
                f'Unsupported resource class {name}, use accel:{SHAPE} with '
                'the name of the shape'
            )


def _link(value: str | None) -> str | None:
    if value is not None and value not in LINKS:
        raise exceptions.InvalidDeviceProfile(
            f'Invalid value {value!r} of accel:{LINK}, it must be one of '
            + ', '.join(LINKS)
        )
    return value


def _numa_affinity(value: str | None) -> NumaAffinity | None:
    if value is None:
        return None
    try:
        return NumaAffinity(value)
    except ValueError as error:
        raise exceptions.InvalidDeviceProfile(
            f'Invalid value {value!r} of accel:{NUMA_AFFINITY}, it must be '
            + ' or '.join(NumaAffinity)
        ) from error


def _properties(accel: Mapping[str, str]) -> dict[str, str]:
    for name in accel:
        if name not in PROPERTIES:
            known = ', '.join(
                sorted(
                    [
                        *PROPERTIES,
                        LINK,
                        NUMA_AFFINITY,
                        PREFETCH,
                        SHAPE,
                        SINGLE_NUMA_NODE,
                    ]
                )
            )
            raise exceptions.InvalidDeviceProfile(
                f'Unknown device profile group key accel:{name}, the accel: '
                f'keys are {known}'
            )
    if len(accel) > 1:
        raise exceptions.InvalidDeviceProfile(
            'A device profile group can have one of these accel: keys only: '
            + ', '.join(f'accel:{name}' for name in sorted(accel))
        )
    return {name: property_value(name, value) for name, value in accel.items()}


def bitstream_id(group: Mapping[str, str]) -> str | None:
    """The bitstream that a stored group names, if it names one.

    :raises InvalidDeviceProfile: the value is not a uuid.
    """
    value = group.get('accel:bitstream_id')
    return None if value is None else property_value('bitstream_id', value)


def property_value(name: str, value: str) -> str:
    """The checked value of one of :data:`PROPERTIES`, uuids in canonical form.

    :raises InvalidDeviceProfile: the value is not a name or uuid.
    """
    if name == 'function_name' and value.strip():
        return value.strip()
    try:
        return str(uuid.UUID(value))
    except ValueError as error:
        raise exceptions.InvalidDeviceProfile(
            f'Invalid value {value!r} of accel:{name}, it must be '
            + ('a name' if name == 'function_name' else 'a uuid')
        ) from error


def _boolean(name: str, value: str) -> bool:
    if value.lower() not in _BOOLEANS:
        raise exceptions.InvalidDeviceProfile(
            f'Invalid value {value!r} of accel:{name}, it must be true or '
            'false'
        )
    return _BOOLEANS[value.lower()]


def _resource_class(name: str) -> str:
    standard = sorted(set(naming.RESOURCE_CLASSES.values()))
    if name not in standard and not _CUSTOM_NAME.fullmatch(name):
        raise exceptions.InvalidDeviceProfile(
            f'Unsupported resource class {name}, should be one of '
            f'{", ".join(standard)}, or CUSTOM_ and upper-case letters, '
            'digits and _'
        )
    return name


def _amount(name: str, value: str) -> int:
    if not (_AMOUNT.fullmatch(value) and 1 <= int(value) <= MAX_UNITS):
        raise exceptions.InvalidDeviceProfile(
            f'Resources number {value} is invalid for {name}, it must be '
            f'1 to {MAX_UNITS}'
        )
    return int(value)


def _trait(name: str) -> str:
    if not name.startswith('CUSTOM_'):
        raise exceptions.InvalidDeviceProfile(
            f'Unsupported trait name format {name}, should start with CUSTOM_'
        )
    if not _CUSTOM_NAME.fullmatch(name):
        raise exceptions.InvalidDeviceProfile(
            f'Unsupported trait name format {name}, should have upper-case '
            'letters, digits and _ only'
        )
    return name
