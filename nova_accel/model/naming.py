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

"""The names that devices get in Placement.

Their forms come from Cyborg's agent-driver specification (device, region and
function traits) and from the libvirt vGPU specification (owner and vGPU type).
"""

import contextlib
import re
import uuid

import os_resource_classes
import os_traits

from nova_accel import exceptions

#: Placement's limit for the names of traits and of resource classes.
MAX_LENGTH = 255

#: Placement's limit for the name of a resource provider.
MAX_PROVIDER_NAME_LENGTH = 200

#: All our providers have this trait and all our groups require it, so that no
#: other owner's provider can serve a device profile.
OWNERSHIP_TRAIT = 'CUSTOM_NOVA_ACCEL'

#: The owner trait that the vGPU specification asks for.
OWNER_TRAIT = os_traits.OWNER_CYBORG

#: Every pool of devices that work only in an active partition of a fabric has
#: this trait, and no other provider has it.
FABRIC_TRAIT = f'{OWNERSHIP_TRAIT}_FABRIC'

#: Placement counts by it what units of different shapes share: their card. A
#: provider has :data:`nova_accel.model.cards.card_slice.WHOLE_CARD` of it.
CARD_SHARE = 'CUSTOM_CARD_SHARE'

_SHAPE_PREFIX = 'CUSTOM_SHAPE_'

#: Device type -> resource class, a standard one where it exists.
RESOURCE_CLASSES = {
    'AICHIP': 'CUSTOM_AICHIP',
    'FPGA': os_resource_classes.FPGA,
    'GPU': os_resource_classes.PGPU,
    'NIC': 'CUSTOM_NIC',
    'QAT': 'CUSTOM_QAT',
    'SSD': 'CUSTOM_SSD',
    'TIME': 'CUSTOM_TIME',
    'VGPU': os_resource_classes.VGPU,
}


def is_same_type(one: str, other: str) -> bool:
    """Whether two types are one; a GPU in parts is a GPU."""
    return one.removeprefix('V') == other.removeprefix('V')


# The form that the functions below make from a uuid. Operators' traits may
# look alike, but have none.
_UUID = r'[0-9A-F]{8}(_[0-9A-F]{4}){3}_[0-9A-F]{12}'
_REGION = re.compile(f'CUSTOM_.+_REGION_{_UUID}')
_FUNCTION = re.compile(f'CUSTOM_.+_FUNCTION_{_UUID}')


def custom_trait(*words: str) -> str:
    """Join words to a custom trait: upper case, other characters to ``_``.

    :raises InvalidName: there is no word, one has no ASCII letter or digit,
        or the trait is too long.
    """
    if not words or not all(_has_ascii_alnum(word) for word in words):
        raise exceptions.InvalidName(f'no trait can be made of {words!r}')
    name: str = os_traits.normalize_name('_'.join(words))
    if len(name) > MAX_LENGTH:
        raise exceptions.InvalidName(
            f'the trait {name} is longer than {MAX_LENGTH} characters'
        )
    return name


def _has_ascii_alnum(word: str) -> bool:
    return any(c.isascii() and c.isalnum() for c in word)


def device_trait(type_: str, vendor: str, product: str) -> str:
    """``CUSTOM_<TYPE>_<VENDOR>_<PRODUCT>``."""
    return custom_trait(type_, vendor, product)


def region_trait(type_: str, vendor: str, region_type_uuid: str) -> str:
    """``CUSTOM_<TYPE>_<VENDOR>_REGION_<TYPE_UUID>``."""
    return custom_trait(type_, vendor, 'REGION', region_type_uuid)


def is_region_trait(trait: str) -> bool:
    """Whether :func:`region_trait` makes this trait from a uuid."""
    return _REGION.fullmatch(trait) is not None


def function_trait(type_: str, vendor: str, function_uuid: str) -> str:
    """``CUSTOM_<TYPE>_<VENDOR>_FUNCTION_<UUID>``."""
    return custom_trait(type_, vendor, 'FUNCTION', function_uuid)


def is_function_trait(trait: str) -> bool:
    """Whether :func:`function_trait` makes this trait from a uuid."""
    return _FUNCTION.fullmatch(trait) is not None


def vgpu_trait(vendor: str, product_id: str, vgpu_type: str) -> str:
    """``CUSTOM_<VENDOR>_<PRODUCT_ID>_<VGPU_TYPE>``, with the type's id."""
    return custom_trait(vendor, product_id, vgpu_type)


def vgpu_traits(
    vendor: str, product_id: str, vgpu_type: str, name: str | None
) -> frozenset[str]:
    """The traits of a vGPU type: one from its id, and Cyborg's own.

    Cyborg's is ``CUSTOM_<VENDOR>_<PRODUCT_ID>_<Virtual_GPU_Type>`` of the
    libvirt vGPU specification. The type ``GRID T4-2B`` gets
    ``CUSTOM_NVIDIA_1EB8_T4_2B``, without the brand, which is the first word.

    :param name: the type's name for people, None if it has none; ignored if no
        trait can be made of it
    :raises InvalidName: no trait can be made of the id.
    """
    traits = {vgpu_trait(vendor, product_id, vgpu_type)}
    words = (name or '').split()
    with contextlib.suppress(exceptions.InvalidName):
        traits.add(
            vgpu_trait(vendor, product_id, ' '.join(words[1:] or words))
        )
    return frozenset(traits)


def shape_class(shape: str) -> str:
    """``CUSTOM_SHAPE_<SHAPE>``: the resource class of units of a shape.

    :raises InvalidName: no name can be made of the shape.
    """
    return custom_trait(
        _SHAPE_PREFIX.removeprefix('CUSTOM_').rstrip('_'), shape
    )


def is_shape_class(resource_class: str) -> bool:
    """Whether :func:`shape_class` makes this name."""
    return resource_class.startswith(_SHAPE_PREFIX)


def link_trait(kind: str, size: int) -> str:
    """``CUSTOM_NOVA_ACCEL_<KIND>_<SIZE>``: gives so many joined devices.

    :param kind: a :class:`nova_accel.model.link_sets.Kind`
    """
    return custom_trait(
        OWNERSHIP_TRAIT.removeprefix('CUSTOM_'), kind, str(size)
    )


def network_trait(physical_network: str) -> str:
    """``CUSTOM_PHYSNET_<NAME>``, the same trait as of Neutron's providers."""
    return custom_trait('PHYSNET', physical_network)


def provider_name(nodename: str, *parts: str) -> str:
    """``<nodename>_accel_<device>``, with further parts joined by ``_``.

    Nova takes providers with names such as ``<nodename>_pci_0000_81_00_0`` and
    ``<nodename>_0000:81:00.0`` for its own devices. The infix keeps ours
    apart.

    :raises InvalidName: the name is longer than Placement allows.
    """
    name = '_'.join((nodename, 'accel', *parts))
    if len(name) > MAX_PROVIDER_NAME_LENGTH:
        raise exceptions.InvalidName(
            f'the resource provider name {name} is longer than '
            f'{MAX_PROVIDER_NAME_LENGTH} characters'
        )
    return name


def is_provider_name(name: str, nodename: str) -> bool:
    """Whether :func:`provider_name` makes this name on the node."""
    return name.startswith(f'{nodename}_accel_')


def derived_uuid(node_uuid: str, *parts: str) -> str:
    """The uuid of an object on a host, the same at every discovery.

    So the database and Placement agree on it without asking each other.
    """
    return str(uuid.uuid5(uuid.UUID(node_uuid), '/'.join(parts)))
