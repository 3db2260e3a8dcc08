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

"""The owner of a request group: ours require our trait, others forbid it.

A group that is not ours, such as a flavor's ``resources:VGPU=1``, must be
served by Nova's own providers, which know what to do with it.
"""

import collections
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from nova import objects
from nova.scheduler import utils
import os_resource_classes

from nova_accel.model import naming
from nova_accel.model.profiles import device_profile

_CLASSES = frozenset(naming.RESOURCE_CLASSES.values())

_PROFILE_KEYS = (device_profile.FLAVOR_KEY, device_profile.CYBORG_FLAVOR_KEY)


def is_ours(group: 'objects.RequestGroup') -> bool:
    return naming.OWNERSHIP_TRAIT in group.required_traits


def our_groups(
    request_spec: 'objects.RequestSpec',
) -> 'list[objects.RequestGroup]':
    """The groups of the request that only our providers can serve.

    The groups of sets of joined devices are not among them.
    """
    return [
        group
        for group in request_spec.requested_resources or ()
        if is_ours(group) and group.resources
    ]


def our_sets(
    request_spec: 'objects.RequestSpec',
) -> 'list[objects.RequestGroup]':
    """The groups of the request for our sets of joined devices."""
    return [
        group
        for group in request_spec.requested_resources or ()
        if is_ours(group) and not group.resources
    ]


def exposed_groups(
    request_spec: 'objects.RequestSpec',
) -> 'list[objects.RequestGroup]':
    """Groups of ports, PCI requests and Cyborg that we could serve, too."""
    return [
        group
        for group in request_spec.requested_resources or ()
        if not is_ours(group) and _could_serve(group)
    ]


class FlavorPart(NamedTuple):
    """An extra spec that makes a group of the flavor, or a part of one.

    The suffix of the unnumbered group is empty.
    """

    prefix: str
    suffix: str
    name: str
    value: str


def flavor_parts(extra_specs: Mapping[str, str]) -> list[FlavorPart]:
    """The extra specs that make the groups of the flavor."""
    found = []
    for key, value in extra_specs.items():
        match = utils.ResourceRequest.XS_KEYPAT.match(key)
        if match:
            found.append(FlavorPart(match[1], match[2] or '', match[3], value))
    return found


def exposed_of_flavor(
    parts: Sequence[FlavorPart],
) -> 'dict[str, objects.RequestGroup]':
    """Suffix -> group, of the flavor's groups that we could serve, too.

    A group has its resources alone.
    """
    groups: dict[str, Any] = collections.defaultdict(objects.RequestGroup)
    for part in parts:
        if part.prefix == utils.ResourceRequest.XS_RES_PREFIX:
            groups[part.suffix].add_resource(part.name, part.value)
    for group in groups.values():
        group.strip_zeros()
    return {
        suffix: group
        for suffix, group in groups.items()
        if _could_serve(group)
    }


def extra_specs(request_spec: 'objects.RequestSpec') -> Mapping[str, str]:
    flavor = request_spec.flavor
    return flavor.extra_specs if 'extra_specs' in flavor else {}


def profile_keys(extra_specs: Mapping[str, str]) -> list[str]:
    """The flavor's extra specs that name a device profile."""
    return [key for key in _PROFILE_KEYS if key in extra_specs]


def port_profiles(request_spec: 'objects.RequestSpec') -> dict[str, str]:
    """Port uuid -> the device profile that Neutron has for the port."""
    if 'requested_networks' not in request_spec:
        return {}
    return {
        network.port_id: network.device_profile
        for network in request_spec.requested_networks
        if network.port_id and network.device_profile
    }


def profile_name(
    request_spec: 'objects.RequestSpec', group: 'objects.RequestGroup'
) -> str:
    """The name of the device profile of one of our groups."""
    for port_uuid, name in port_profiles(request_spec).items():
        if group.requester_id.endswith(port_uuid):
            return name
    names = extra_specs(request_spec)
    [key] = profile_keys(names)
    return names[key]


def add_extra_specs(
    request_spec: 'objects.RequestSpec', added: Mapping[str, str]
) -> None:
    """Change the flavor for this one scheduling.

    The flavor is cloned, and the request is not marked as changed. So neither
    the flavor's owner nor a database ever sees it.
    """
    flavor = request_spec.flavor.obj_clone()
    flavor.extra_specs = {**extra_specs(request_spec), **added}
    flavor.obj_reset_changes()
    request_spec.flavor = flavor
    request_spec.obj_reset_changes(['flavor'])


def _could_serve(group: 'objects.RequestGroup') -> bool:
    """Whether accelerators may have one of the group's resource classes."""
    return any(
        resource_class in _CLASSES
        or resource_class.startswith(os_resource_classes.CUSTOM_NAMESPACE)
        for resource_class in group.resources
    )
