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


"""Placement's allocations from our providers.

Nova's other allocations are left alone. Only what no one needs of one of our
providers is removed, and only what a host's instances hold of them is added.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
from typing import Any

from keystoneauth1 import exceptions as ks_exceptions
from nova import context as nova_context
from nova import exception
from nova.scheduler.client import report

from nova_accel import exceptions
from nova_accel.client import servers
from nova_accel.model.providers import counted

#: Provider uuid -> resource class -> amount.
Resources = counted.Resources

_FAULTS = (ks_exceptions.ClientException, exception.NovaException)

#: The microversion of Placement by which Nova reshapes.
_VERSION = '1.30'


@dataclasses.dataclass(frozen=True)
class Allocated:
    """The allocations of a consumer, at one of its generations.

    ``generation``, ``project_id`` and ``user_id`` are None if it has nothing.
    """

    consumer: str
    resources: Resources
    generation: int | None
    project_id: str | None
    user_id: str | None

    def of(self, rp_uuids: Collection[str]) -> Resources:
        """Its resources from some providers."""
        return {
            rp_uuid: amounts
            for rp_uuid, amounts in self.resources.items()
            if rp_uuid in rp_uuids
        }


def of_consumers(rp_uuids: Collection[str]) -> dict[str, Resources]:
    """Consumer uuid -> its resources from the providers.

    It makes one call for each provider.

    :raises ServiceUnavailable: Placement gave no usable answer.
    """
    client = report.report_client_singleton()
    context = nova_context.get_admin_context()
    found: dict[str, dict[str, Mapping[str, int]]] = {}
    for rp_uuid in rp_uuids:
        try:
            allocations = client.get_allocations_for_resource_provider(
                context, rp_uuid
            ).allocations
        except _FAULTS as error:
            raise _unavailable(error) from error
        for consumer, allocation in allocations.items():
            found.setdefault(consumer, {})[rp_uuid] = allocation['resources']
    return dict(found)


def of_consumer(consumer: str) -> Mapping[str, Mapping[str, Any]]:
    """A consumer's allocations from all providers, as drivers get them.

    :raises ServiceUnavailable: Placement gave no usable answer.
    """
    try:
        found: Mapping[str, Mapping[str, Any]] = (
            report.report_client_singleton().get_allocs_for_consumer(
                nova_context.get_admin_context(), consumer
            )['allocations']
        )
    except _FAULTS as error:
        raise _unavailable(error) from error
    return found


def read(consumer: str) -> Allocated:
    """A consumer's allocations from all providers, to be added to.

    :raises ServiceUnavailable: Placement gave no usable answer.
    """
    try:
        found = report.report_client_singleton().get_allocs_for_consumer(
            nova_context.get_admin_context(), consumer
        )
    except _FAULTS as error:
        raise _unavailable(error) from error
    return Allocated(
        consumer,
        {
            rp_uuid: allocation['resources']
            for rp_uuid, allocation in found['allocations'].items()
        },
        found.get('consumer_generation'),
        found.get('project_id'),
        found.get('user_id'),
    )


def in_tree(rp_uuid: str) -> frozenset[str]:
    """All providers in the tree of a provider.

    :raises ServiceUnavailable: Placement gave no usable answer.
    """
    try:
        return frozenset(
            provider['uuid']
            for provider in (
                report.report_client_singleton().get_providers_in_tree(
                    nova_context.get_admin_context(), rp_uuid
                )
            )
        )
    except _FAULTS as error:
        raise _unavailable(error) from error


def give(
    present: Allocated,
    units: counted.Units,
    owner: servers.Owner,
    node_uuid: str,
) -> None:
    """Allocate units that an instance holds, unless anything has changed.

    They may be reserved. So the allocation and the inventories change in one
    step. An instance without any allocation gets what its flavor asks of the
    node, too: ``nova-manage placement heal_allocations`` would leave alone
    one that has something.

    :param present: what the instance has
    :param node_uuid: the provider of the instance's compute node
    :raises Conflict: others have the units, or something has changed.
    :raises ServiceUnavailable: Placement gave no usable answer.
    """
    resources = {
        rp_uuid: dict(amounts)
        for rp_uuid, amounts in present.resources.items()
    }
    lacking: dict[str, dict[str, int]] = {}
    for place, amount in units.items():
        lacking.setdefault(place.rp_uuid, {})[place.resource_class] = amount
        of_provider = resources.setdefault(place.rp_uuid, {})
        of_provider[place.resource_class] = (
            of_provider.get(place.resource_class, 0) + amount
        )
    if not present.resources:
        counts = _get(f'/resource_providers/{node_uuid}/inventories')
        of_node = {
            resource_class: amount
            for resource_class, amount in owner.resources.items()
            if resource_class in counts['inventories']
        }
        resources |= {node_uuid: of_node} if of_node else {}
    _post(
        '/reshaper',
        {
            'inventories': {
                rp_uuid: _with_room(rp_uuid, amounts)
                for rp_uuid, amounts in lacking.items()
            },
            'allocations': {
                present.consumer: {
                    'allocations': {
                        rp_uuid: {'resources': amounts}
                        for rp_uuid, amounts in resources.items()
                    },
                    'project_id': present.project_id or owner.project_id,
                    'user_id': present.user_id or owner.user_id,
                    'consumer_generation': present.generation,
                }
            },
        },
    )


def _with_room(rp_uuid: str, amounts: Mapping[str, int]) -> dict[str, Any]:
    """A provider's inventories, with units reserved only beyond these.

    :raises Conflict: others have the units.
    :raises ServiceUnavailable: Placement gave no usable answer.
    """
    # In this order: what is allocated later changes the generation.
    found = _get(f'/resource_providers/{rp_uuid}/inventories')
    used = _get(f'/resource_providers/{rp_uuid}/usages')['usages']
    for resource_class, amount in amounts.items():
        inventory = found['inventories'].get(resource_class)
        room = (
            0
            if inventory is None
            else inventory['total'] - used.get(resource_class, 0)
        )
        if inventory is None or room < amount:
            raise exceptions.Conflict(
                f'{max(room, 0)} {resource_class} of provider {rp_uuid} are '
                'not allocated: others have the rest'
            )
        inventory['reserved'] = min(inventory['reserved'], room - amount)
    return {
        'inventories': found['inventories'],
        'resource_provider_generation': found['resource_provider_generation'],
    }


def _get(path: str) -> Any:
    """:raises ServiceUnavailable: Placement gave no usable answer."""
    return _answered(
        lambda client, request_id: client.get(
            path, version=_VERSION, global_request_id=request_id
        )
    ).json()


def _post(path: str, data: Mapping[str, Any]) -> None:
    """
    :raises Conflict: Placement refuses.
    :raises ServiceUnavailable: Placement gave no usable answer.
    """
    _answered(
        lambda client, request_id: client.post(
            path, data, version=_VERSION, global_request_id=request_id
        )
    )


def _answered(ask: Callable[[Any, str], Any]) -> Any:
    try:
        answer = ask(
            report.report_client_singleton(),
            nova_context.get_admin_context().global_id,
        )
    except _FAULTS as error:
        raise _unavailable(error) from error
    if answer.status_code == 409:
        raise exceptions.Conflict(f'Placement refuses: {answer.text}')
    if answer.status_code >= 400:
        raise _unavailable(f'{answer.status_code} {answer.text}')
    return answer


def claim(consumer: str, resources: Resources) -> None:
    """Allocate these resources to a consumer, beside what it has.

    :raises Conflict: Placement refuses, as others have them.
    :raises ServiceUnavailable: Placement gave no usable answer.
    """
    try:
        report.report_client_singleton().add_resources_to_instance_allocation(
            nova_context.get_admin_context(),
            consumer,
            _in_request(resources),
        )
    except exception.AllocationUpdateFailed as error:
        raise exceptions.Conflict(f'Placement refuses: {error}') from error
    except _FAULTS as error:
        raise _unavailable(error) from error


def take_away(consumer: str, resources: Resources) -> None:
    """Remove these resources from a consumer's allocation, and no others.

    :raises ServiceUnavailable: they are not removed.
    """
    try:
        report.report_client_singleton().remove_resources_from_instance_allocation(
            nova_context.get_admin_context(),
            consumer,
            _in_request(resources),
        )
    except _FAULTS as error:
        raise _unavailable(error) from error


def _in_request(resources: Resources) -> dict[str, dict[str, dict[str, int]]]:
    return {
        rp_uuid: {'resources': dict(amounts)}
        for rp_uuid, amounts in resources.items()
    }


def _unavailable(error: object) -> exceptions.ServiceUnavailable:
    return exceptions.ServiceUnavailable(
        f'Placement gave no usable answer: {error}'
    )
