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

"""Unified limits of accelerators: how many of a class a project may have.

nova-api counts the flavor's own resources, and Cyborg's device profiles. It
does not know our profiles, whose groups join the request in nova-scheduler. So
they are counted here, by the same rules. Placement knows the usage.
"""

import collections
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import types

from keystoneauth1 import exceptions as ks_exc
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.compute import vm_states
from nova.limit import utils as limit_utils
from nova.scheduler.client import report
from openstack import exceptions as sdk_exc
from oslo_limit import exception as limit_exc
from oslo_limit import limit
from oslo_log import log as logging

from nova_accel.model.profiles import device_profile
from nova_accel.scheduler import our_group
from nova_accel.scheduler import ownership
from nova_accel.scheduler import scheduled_server

LOG = logging.getLogger(__name__)

#: The prefix of a resource class in Nova's name of its limit.
_PREFIX = 'class:'

#: oslo.limit raises ValueError for missing options.
_NO_ANSWER = (
    exception.UsagesRetrievalFailed,
    limit_exc.SessionInitError,
    ks_exc.ClientException,
    sdk_exc.SDKException,
    ValueError,
)

#: In these states an instance holds no resources of a host.
_HOLDS_NOTHING = frozenset({vm_states.BUILDING, vm_states.SHELVED_OFFLOADED})

_NOTHING: Mapping[str, int] = types.MappingProxyType({})


def enforce(
    ctxt: nova_context.RequestContext,
    request_spec: 'objects.RequestSpec',
    groups: 'Sequence[objects.RequestGroup]',
    promised: Mapping[str, int] = _NOTHING,
) -> None:
    """Refuse a request that would take a project over its limits.

    As in nova-api, a migration is not counted. Until a resize is confirmed,
    the old flavor counts as well as the new one.

    :param groups: the groups of the request that are ours
    :param promised: resource class -> units that count as used, although
        Placement has not allocated them yet
    :raises TooManyInstances: a limit is exceeded; the text names the device
        profile, each class over its limit, the limit, the usage and the wanted
        amount. Nova's own limits raise the same. Users see it after any
        request, while a filter's failure is hidden after a resize or
        unshelving.
    :raises RequestFilterFailed: the limits or the usage are unknown
    """
    if not limit_utils.use_unified_limits():
        return
    wanted = _wanted(request_spec, groups)
    servers = _servers(ctxt, request_spec) if wanted else 0
    if not servers:
        return
    wanted = {name: amount * servers for name, amount in wanted.items()}
    name = ownership.extra_specs(request_spec)[device_profile.FLAVOR_KEY]
    try:
        _enforce(ctxt, request_spec.project_id, wanted, promised)
    except limit_exc.ProjectOverLimit as fault:
        if not limit_utils.should_enforce(fault):
            return
        over = '; '.join(
            f'{info.resource_name}: limit {info.limit}, in use '
            f'{info.current_usage}, wanted {info.delta}'
            for info in fault.over_limit_info_list
        )
        # nova-api answers 403, too. The exception's own code is EC2's 413.
        raise exception.TooManyInstances(
            f'device profile {name}: quota exceeded: {over}',
            code=403,
        ) from fault
    except _NO_ANSWER as fault:
        LOG.exception('The limits of accelerators cannot be enforced')
        raise exception.RequestFilterFailed(
            reason=(
                f'device profile {name}: the limits of project '
                f'{request_spec.project_id}, or its usage, are not known'
            ),
        ) from fault


def _wanted(
    request_spec: 'objects.RequestSpec',
    groups: 'Sequence[objects.RequestGroup]',
) -> dict[str, int]:
    """Limit -> units for one server, of groups that nova-api does not know."""
    if device_profile.FLAVOR_KEY not in ownership.extra_specs(request_spec):
        return {}
    of_ports = tuple(ownership.port_profiles(request_spec))
    wanted: dict[str, int] = collections.defaultdict(int)
    for group in groups:
        # As with Cyborg, groups of ports are not limited.
        if of_ports and group.requester_id.endswith(of_ports):
            continue
        for resource_class, amount in our_group.units_of(group).items():
            wanted[f'{_PREFIX}{resource_class}'] += amount
    return dict(wanted)


def _enforce(
    ctxt: nova_context.RequestContext,
    project_id: str,
    wanted: dict[str, int],
    promised: Mapping[str, int],
) -> None:
    def in_use(
        project_id: str | None, names: Collection[str]
    ) -> dict[str, int]:
        counts = report.report_client_singleton().get_usages_counts_for_limits(
            ctxt, project_id
        )
        # Placement leaves out classes without usage.
        return {
            name: counts.get(resource_class, 0)
            + promised.get(resource_class, 0)
            for name in names
            for resource_class in [name.removeprefix(_PREFIX)]
        }

    limit.Enforcer(in_use).enforce(project_id, wanted)


def _servers(
    ctxt: nova_context.RequestContext, request_spec: 'objects.RequestSpec'
) -> int:
    """How many servers of the request do not have their accelerators yet.

    A server that is being migrated has them on another host. For a server in a
    cell, ``num_instances`` is still the number of the multi-create that made
    it.
    """
    instance = scheduled_server.find(ctxt, request_spec)
    if instance is None:
        return int(request_spec.num_instances)
    is_migrated = (
        instance.vm_state not in _HOLDS_NOTHING
        and instance.flavor.flavorid == request_spec.flavor.flavorid
    )
    return 0 if is_migrated else 1
