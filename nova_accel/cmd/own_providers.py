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

"""Our resource providers that a host has left in Placement."""

from typing import Any

from nova_accel import exceptions
from nova_accel.cmd import placement_call
from nova_accel.model import naming


def remove(node_uuid: str) -> list[str]:
    """Delete our providers of a host, and none of Nova's.

    :param node_uuid: the uuid of the compute node and of its root provider
    :returns: the names of the providers that are deleted
    :raises Conflict: there are allocations from them; the text names the
        consumers, and nothing is deleted
    :raises ServiceUnavailable: Placement gave no usable answer; repeating the
        call continues
    """
    found: list[dict[str, Any]] = placement_call.call(
        'get',
        f'/resource_providers?in_tree={node_uuid}'
        f'&required={naming.OWNERSHIP_TRAIT}',
    )['resource_providers']
    _check_unused(found)
    parents = {provider['parent_provider_uuid'] for provider in found}
    # The providers have two levels; children go first.
    for provider in sorted(
        found, key=lambda provider: provider['uuid'] in parents
    ):
        placement_call.call(
            'delete', f'/resource_providers/{provider["uuid"]}'
        )
    return sorted(provider['name'] for provider in found)


def _check_unused(providers: list[dict[str, Any]]) -> None:
    """:raises Conflict: somebody has allocations from them."""
    consumers = {
        consumer
        for provider in providers
        for consumer in placement_call.allocations(provider['uuid'])
    }
    if consumers:
        raise exceptions.Conflict(
            'Placement has accelerators of the host allocated to servers or '
            f'migrations: {", ".join(sorted(consumers))}. Migrate or delete '
            'them first'
        )
