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

"""Nova's SchedulerManager with our filter and weigher, and nothing else.

Its hosts are in Placement, and are named to it. So it needs neither Nova's
databases nor other services, and many requests can be scheduled at once on one
answer of Placement.
"""

import collections
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import copy
from typing import Any

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler import filters
from nova.scheduler import host_manager
from nova.scheduler import manager
from nova.scheduler import utils
from nova.scheduler import weights
from nova.scheduler.client import report
from oslo_utils import uuidutils

from nova_accel.scheduler import candidate_filter
from nova_accel.scheduler import our_group
from nova_accel.scheduler import weigher

#: Nova sets these for each request.
_NULL_FIELDS = (
    'force_hosts',
    'force_nodes',
    'ignore_hosts',
    'instance_group',
    'numa_topology',
    'pci_requests',
    'requested_destination',
)

_CELL = uuidutils.generate_uuid()

#: The name of a compute node -> its uuid in Placement.
Hosts = Mapping[str, str]


class Answer:
    """Placement's answer to a request, on which many servers may be claimed.

    :param request_spec: the request with the groups of its accelerators
    """

    def __init__(self, request_spec: 'objects.RequestSpec') -> None:
        context = nova_context.get_admin_context()
        resources = utils.resources_from_request_spec(
            context, request_spec, None
        )
        client = report.report_client_singleton()
        requests, self.summaries, self.version = (
            client.get_allocation_candidates(context, resources)
        )
        self.of_providers: Mapping[str, list[Any]] = collections.defaultdict(
            list
        )
        for request in requests or ():
            for uuid in request['allocations']:
                self.of_providers[uuid].append(request)


class BareScheduler(manager.SchedulerManager):
    """A SchedulerManager whose filter and weigher are ours alone."""

    def __init__(self, hosts: Hosts) -> None:
        self.host_manager = _Hosts(hosts)

    def select(
        self,
        request_spec: 'objects.RequestSpec',
        answer: Answer,
        servers: Sequence[str] = (),
        with_alternates: bool = False,
    ) -> 'list[list[objects.Selection]]':
        """A host for each server, claimed, and its alternates.

        :param servers: their uuids; by default one new server
        :raises NoValidHost: as Nova does
        """
        spec = copy.copy(request_spec)
        spec.requested_resources = [
            _copied(group) for group in request_spec.requested_resources
        ]
        for name in _NULL_FIELDS:
            if name not in spec:
                setattr(spec, name, None)
        servers = servers or [uuidutils.generate_uuid()]
        if not answer.of_providers:
            raise exception.NoValidHost(reason='')
        selected: list[list[objects.Selection]] = self._schedule(
            nova_context.get_admin_context(),
            spec,
            list(servers),
            answer.of_providers,
            answer.summaries,
            answer.version,
            with_alternates,
        )
        return selected


def _copied(group: 'objects.RequestGroup') -> 'objects.RequestGroup':
    copied = group.obj_clone()
    copied.provider_uuids = []
    copied.asked = our_group.to_group(group)
    return copied


class _Hosts(host_manager.HostManager):
    """The hosts, without Nova's databases."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self.enabled_filters = [candidate_filter.AcceleratorFilter()]
        self.filter_handler = filters.HostFilterHandler()
        self.weighers = [weigher.AcceleratorWeigher()]
        self.weight_handler = weights.HostWeightHandler()

    def get_host_states_by_uuids(
        self, _context: Any, uuids: Sequence[str], _request_spec: Any
    ) -> Iterator[host_manager.HostState]:
        for name, uuid in self._hosts.items():
            if uuid in uuids:
                yield _state(name, uuid)


def _state(name: str, uuid: str) -> host_manager.HostState:
    state = host_manager.HostState(name, name, _CELL)
    state.uuid = uuid
    return state
