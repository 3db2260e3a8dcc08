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

"""Accelerators that a flavor's extra specs ask for without a profile.

The extra specs have the keys of a device profile's group, see
:mod:`nova_accel.model.profiles.device_profile`. A flavor also uses these
keys for resources and traits of the compute node, which are left to Placement.
"""

from collections.abc import Collection
from collections.abc import Mapping
import enum
from typing import Any

from nova_accel import exceptions
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import provider_allocation

#: The key of a flavor or an image that says what PCI tree a guest gets.
PCI_TOPOLOGY = 'nova_accel:pci_topology'

#: How many device profiles a flavor can name, one as an alternative to others.
MAX_ALTERNATIVES = 8

#: The regular expression of the whole value of our key.
PROFILES_PATTERN = (
    f'{device_profile.NAME_PATTERN}'
    f'( *, *{device_profile.NAME_PATTERN}){{0,{MAX_ALTERNATIVES - 1}}}'
)


class PciTopology(enum.StrEnum):
    """The PCI tree of a guest."""

    #: Each device is where libvirt puts it, below one root complex.
    FLAT = 'flat'
    #: The devices that are near to each other on the host are so in the guest.
    HOST = 'host'


def profile(extra_specs: Mapping[str, str]) -> str | None:
    """The flavor's device profile, by our key or Cyborg's.

    Ours may name several, see :func:`alternatives`.
    """
    return extra_specs.get(device_profile.FLAVOR_KEY) or extra_specs.get(
        device_profile.CYBORG_FLAVOR_KEY
    )


def alternatives(value: str) -> tuple[str, ...]:
    """The device profiles that our key names, the best one first.

    :param value: their names, with commas between them
    :raises InvalidDeviceProfile: a name is missing, or there are too many
    """
    names = tuple(dict.fromkeys(name.strip() for name in value.split(',')))
    if not all(names):
        raise exceptions.InvalidDeviceProfile.for_all(
            f'{device_profile.FLAVOR_KEY} is {value!r:.64}: a name is missing'
        )
    if len(names) > MAX_ALTERNATIVES:
        raise exceptions.InvalidDeviceProfile.for_all(
            f'{device_profile.FLAVOR_KEY} names {len(names)} device '
            f'profiles: it can name {MAX_ALTERNATIVES}'
        )
    return names


def profiles(extra_specs: Mapping[str, str]) -> tuple[str, ...]:
    """The device profiles that a flavor names, by our key or Cyborg's.

    There are none if their names are malformed.
    """
    try:
        return alternatives(profile(extra_specs) or '')
    except exceptions.InvalidDeviceProfile:
        return ()


def programming(extra_specs: Mapping[str, str]) -> dict[str, str]:
    """The extra specs that say how a device is to be programmed.

    A key with an empty value is ignored, as in images.
    """
    keys = (f'accel:{name}' for name in sorted(device_profile.PROPERTIES))
    return {
        key: extra_specs[key]
        for key in keys
        if extra_specs.get(key, '').strip()
    }


def group(
    extra_specs: Mapping[str, str], allocated: Collection[str]
) -> dict[str, str]:
    """The group that one provider is to serve, unchecked.

    :param allocated: the resource classes that are allocated from the provider
    :returns: empty if the flavor asks for none of them
    """
    keys = (f'resources:{name}' for name in sorted(allocated))
    resources = {key: extra_specs[key] for key in keys if key in extra_specs}
    if not resources:
        return {}
    return {
        **resources,
        # Other traits are the node's, or a matter of Placement.
        **{
            key: value
            for key, value in extra_specs.items()
            if key.startswith('trait:CUSTOM_')
        },
        **programming(extra_specs),
    }


def get_requested(
    instance_name: str,
    extra_specs: Mapping[str, str],
    allocation: provider_allocation.ProviderAllocation,
) -> device_profile.Asked:
    """The profile's name, or else the group that one provider is to serve.

    :param instance_name: by which an error names the flavor
    :raises InvalidRequest: the flavor asks for nothing of the provider.
    """
    name = profile(extra_specs)
    if name is not None:
        return name
    asked_of_one = group(extra_specs, allocation.resources)
    if not asked_of_one:
        raise exceptions.InvalidRequest(
            f'the flavor of {instance_name} has neither '
            f'{device_profile.FLAVOR_KEY} nor resources: of one of '
            f'{", ".join(sorted(allocation.resources)) or "nothing"}, which '
            f'resource provider {allocation.rp_uuid} has allocated'
        )
    return [asked_of_one]


def pci_topology(
    extra_specs: Mapping[str, str],
    image_properties: Mapping[str, Any],
    default: str,
) -> PciTopology:
    """The PCI tree that a server's guest is to have.

    The flavor comes before the image. An empty value is ignored.

    :raises InvalidRequest: there is no such PCI tree.
    """
    for source, values in (
        ('flavor', extra_specs),
        ('image', image_properties),
    ):
        value = values.get(PCI_TOPOLOGY)
        if value:
            try:
                return PciTopology(value)
            except ValueError:
                raise exceptions.InvalidRequest.for_all(
                    f'{PCI_TOPOLOGY} of the {source} is {value!r:.64}: it '
                    f'can be {" or ".join(PciTopology)}'
                ) from None
    return PciTopology(default)
