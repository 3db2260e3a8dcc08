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

Nova's other allocations are left alone. Only an instance's leftover from one
of our providers is removed, on a host where the instance is not.
"""

from collections.abc import Collection
from collections.abc import Mapping
from typing import Any

from keystoneauth1 import exceptions as ks_exceptions
from nova import context as nova_context
from nova import exception
from nova.scheduler.client import report

from nova_accel import exceptions

#: Provider uuid -> resource class -> amount.
Resources = Mapping[str, Mapping[str, int]]

_FAULTS = (ks_exceptions.ClientException, exception.NovaException)


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


def take_away(consumer: str, resources: Resources) -> None:
    """Remove these resources from a consumer's allocation, and no others.

    :raises ServiceUnavailable: they are not removed.
    """
    try:
        report.report_client_singleton().remove_resources_from_instance_allocation(
            nova_context.get_admin_context(),
            consumer,
            {
                rp_uuid: {'resources': dict(amounts)}
                for rp_uuid, amounts in resources.items()
            },
        )
    except _FAULTS as error:
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> exceptions.ServiceUnavailable:
    return exceptions.ServiceUnavailable(
        f'Placement gave no usable answer: {error}'
    )
