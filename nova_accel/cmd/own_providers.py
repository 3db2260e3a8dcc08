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

from keystoneauth1 import exceptions as ks_exceptions
from nova.scheduler.client import report

from nova_accel import exceptions
from nova_accel.model import naming

_VERSION = '1.22'


def remove(node_uuid: str) -> list[str]:
    """Delete our providers of a host, and none of Nova's.

    :param node_uuid: the uuid of the compute node and of its root provider
    :returns: the names of the providers that are deleted
    :raises Conflict: there are allocations from them; the text names the
        consumers, and nothing is deleted
    :raises ServiceUnavailable: Placement gave no usable answer; repeating the
        call continues
    """
    found: list[dict[str, Any]] = _call(
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
        _call('delete', f'/resource_providers/{provider["uuid"]}')
    return sorted(provider['name'] for provider in found)


def _check_unused(providers: list[dict[str, Any]]) -> None:
    """:raises Conflict: somebody has allocations from them."""
    consumers = {
        consumer
        for provider in providers
        for consumer in _call(
            'get', f'/resource_providers/{provider["uuid"]}/allocations'
        )['allocations']
    }
    if consumers:
        raise exceptions.Conflict(
            'Placement has accelerators of the host allocated to servers or '
            f'migrations: {", ".join(sorted(consumers))}. Migrate or delete '
            'them first'
        )


def _call(method: str, path: str) -> Any:
    client = report.report_client_singleton()
    # Nova's client sends no microversion when it deletes, and needs none.
    version = {'version': _VERSION} if method == 'get' else {}
    try:
        answer = getattr(client, method)(path, **version)
    except ks_exceptions.ClientException as error:
        raise exceptions.ServiceUnavailable(
            f'Placement gave no usable answer: {error}'
        ) from error
    if answer.status_code == 404 and method == 'delete':
        return None
    if answer.status_code == 409:
        raise exceptions.Conflict(
            f'Placement does not delete {path}: {answer.text}'
        )
    if answer.status_code >= 400:
        raise exceptions.ServiceUnavailable(
            f'Placement answered {answer.status_code} to {path}'
        )
    return answer.json() if answer.content else None
