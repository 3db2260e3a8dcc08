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

"""The host filter: choose the allocation candidate that Nova claims.

Nova claims a host's first candidate, and gives the host up if that fails.
Concurrent requests get the same candidates from Placement, so each request
shuffles them.

Placement answers once for all servers of a multi-create, and Nova claims a
host's first allocation candidate for each of them. So that the next server
gets the host's next accelerator, candidates with providers that this request
has used come last. Candidates that no longer fit are removed.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import random
from typing import Any

from nova import context as nova_context
from nova import objects
from nova.scheduler import filters
from nova.scheduler import host_manager

from nova_accel.scheduler import candidates
from nova_accel.scheduler import ownership
from nova_accel.scheduler import request_filter  # noqa: F401 registers itself
from nova_accel.scheduler import silence

#: Provider uuid -> resource class -> number of free units.
_Free = Mapping[str, Mapping[str, int]]


class AcceleratorFilter(filters.BaseHostFilter, filters.CandidateFilterMixin):
    """Passes hosts with an allocation candidate that can be claimed.

    Before each further server of a multi-create, Placement is asked what is
    left on the host that got the previous server. For a single server
    Placement is not asked. Hosts that no longer report are left out, which
    takes one statement. A request without accelerators passes unchanged.
    """

    def filter_all(
        self,
        filter_obj_list: Iterable[host_manager.HostState],
        spec_obj: 'objects.RequestSpec',
    ) -> Iterator[host_manager.HostState]:
        silent: Collection[str] = (
            silence.nodenames() if ownership.our_groups(spec_obj) else ()
        )
        yield from super().filter_all(
            (host for host in filter_obj_list if host.nodename not in silent),
            spec_obj,
        )

    def host_passes(
        self,
        host_state: host_manager.HostState,
        spec_obj: 'objects.RequestSpec',
    ) -> bool:
        groups = ownership.our_groups(spec_obj)
        if not groups:
            return True
        random.shuffle(host_state.allocation_candidates)
        claimed = {uuid for group in groups for uuid in group.provider_uuids}
        if not any(
            claimed & candidate['allocations'].keys()
            for candidate in host_state.allocation_candidates
        ):
            return True
        # The servers of one request spread over the devices of a host. Equal
        # candidates stay in their shuffled order.
        host_state.allocation_candidates.sort(
            key=lambda candidate: len(
                claimed & candidate['allocations'].keys()
            )
        )
        free = _free(host_state.uuid, groups[0])
        if free is None:
            return True
        return bool(
            self.filter_candidates(
                host_state, lambda candidate: _fits(candidate, groups, free)
            )
        )


def _free(host_uuid: str, group: 'objects.RequestGroup') -> _Free | None:
    """The free units in the host's tree.

    It is None if Placement does not answer, and empty if the host cannot serve
    the group.
    """
    asked = group.obj_clone()
    asked.in_tree = host_uuid
    answer = candidates.ask(nova_context.get_admin_context(), [asked])
    if answer is None:
        return None
    return {
        uuid: {
            resource_class: amounts['capacity'] - amounts['used']
            for resource_class, amounts in summary['resources'].items()
        }
        for uuid, summary in answer.summaries.items()
    }


def _fits(
    candidate: Mapping[str, Any],
    groups: 'Sequence[objects.RequestGroup]',
    free: _Free,
) -> bool:
    """Whether our groups' providers have the units that a candidate takes."""
    uuids = {
        uuid
        for group in groups
        for uuid in candidate['mappings'][group.requester_id]
    }
    return all(
        amount <= free.get(uuid, {}).get(resource_class, 0)
        for uuid in uuids
        for resource_class, amount in candidate['allocations'][uuid][
            'resources'
        ].items()
    )
