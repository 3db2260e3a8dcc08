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

"""The host filter: choose the allocation candidates that Nova claims.

Nova claims a host's first candidate. The filter sorts the candidates of each
host, and returns a host once for each of its best ones, so that Nova tries the
next one if it loses a claim.

Placement answers once for all servers of a multi-create. When the filter sorts
for the next server, the claims of the servers before it are known.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from nova import objects
from nova.scheduler import filters
from nova.scheduler import host_manager
from nova.scheduler import utils

from nova_accel.scheduler import claim_attempts
from nova_accel.scheduler import known_stock
from nova_accel.scheduler import our_group
from nova_accel.scheduler import ownership
from nova_accel.scheduler import request_filter  # noqa: F401 registers itself
from nova_accel.scheduler import truncation


class AcceleratorFilter(filters.BaseHostFilter):
    """Sorts the candidates of hosts, and drops hosts that report no more.

    nova-compute may be down there, or run Nova's own driver again, which
    starts guests without their devices. Placement keeps what such a host
    published last.

    A request without accelerators passes unchanged, and a rebuild as well.
    """

    def filter_all(
        self,
        filter_obj_list: Iterable[host_manager.HostState],
        spec_obj: 'objects.RequestSpec',
    ) -> Iterable[host_manager.HostState]:
        groups = ownership.our_groups(spec_obj)
        if not groups or utils.request_is_rebuild(spec_obj):
            return filter_obj_list
        hosts = list(filter_obj_list)
        request = claim_attempts.request_of(hosts)
        if request is None:
            known = known_stock.current()
            truncation.look(hosts, map(our_group.to_group, groups), known)
            request = claim_attempts.ScheduledRequest(spec_obj, known)
        elif request.has_host:
            # Nova looks for alternates.
            return claim_attempts.distinct(hosts)
        else:
            request.sort_anew()
        return _attempts(request, claim_attempts.distinct(hosts))


def _attempts(
    request: claim_attempts.ScheduledRequest,
    hosts: Sequence[host_manager.HostState],
) -> Iterator[claim_attempts.Attempt]:
    firsts = [
        claim_attempts.Attempt(host, request, request.order.sorted(host))
        for host in hosts
        if not request.is_silent(host)
    ]
    yield from firsts
    yield from claim_attempts.further(firsts)
