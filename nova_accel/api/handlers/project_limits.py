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

"""The unified limits of projects, when servers get accelerators.

nova-scheduler has counted a server before
(:mod:`nova_accel.scheduler.unified_limits`), and others may have been counted
at the same time. Therefore the database counts once more, one server after the
other. It does not know Keystone's limits, and it may still have what Placement
has forgotten. So the limits are asked for before, and a refusal is compared
with Placement.

The modules for that are a large part of a process, so they are imported only
if unified limits are on.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from typing import TYPE_CHECKING
from typing import TypeVar

from oslo_log import log as logging

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api.http import caller

if TYPE_CHECKING:
    from oslo_limit import limit

CONF = conf.CONF
LOG = logging.getLogger(__name__)

#: ``nova.limit.utils.UNIFIED_LIMITS_DRIVER``
UNIFIED_LIMITS_DRIVER = 'nova.quota.UnifiedLimitsDriver'

#: The prefix of a resource class in Nova's name of its limit.
_PREFIX = 'class:'

#: Seconds for an answer of Keystone, unless the operator has set another time.
_TIMEOUT_S = 10

_T = TypeVar('_T')


def are_on() -> bool:
    """Whether projects have unified limits."""
    return str(CONF.quota.driver) == UNIFIED_LIMITS_DRIVER


def counted(
    context: caller.Caller,
    project_id: str,
    resource_classes: Collection[str],
    bind: Callable[[Mapping[str, int]], _T],
) -> _T:
    """Give a server accelerators, unless its project would have too many.

    :param project_id: the server's project
    :param bind: gives them, within these limits: resource class -> units. It
        raises OverQuota otherwise
    :raises OverQuota: as ``bind``, and Placement has as much allocated
    :raises ServiceUnavailable: the limits are not known
    """
    try:
        limits = _limits(project_id, resource_classes)
    except exceptions.ServiceUnavailable as unknown:
        try:
            # A server that has them already, here or elsewhere, gets them.
            return bind(dict.fromkeys(resource_classes, -1))
        except exceptions.OverQuota:
            raise unknown from None
    try:
        return bind(limits)
    except exceptions.OverQuota as fault:
        if _is_confirmed(context, project_id, fault.over):
            raise
        LOG.warning(
            'Project %s has accelerators that Placement has not allocated to '
            'it, which do not count: %s',
            project_id,
            fault,
        )
        others = {
            name: limit
            for name, limit in limits.items()
            if name not in fault.over
        }
    return bind(others)


def left(
    context: caller.Caller,
    project_id: str,
    resource_classes: Collection[str],
) -> dict[str, int]:
    """Resource class -> how many more units the project may have, if limited.

    :raises ServiceUnavailable: it is not known
    """
    from keystoneauth1 import exceptions as ks_exc
    from nova import exception

    limits = _limits(project_id, resource_classes)
    try:
        used = _used(context, project_id) if limits else {}
    except (exception.UsagesRetrievalFailed, ks_exc.ClientException) as fault:
        raise exceptions.ServiceUnavailable(
            f'Placement does not tell what project {project_id} has'
        ) from fault
    return {name: limit - used.get(name, 0) for name, limit in limits.items()}


def _limits(
    project_id: str, resource_classes: Collection[str]
) -> dict[str, int]:
    """Resource class -> how many units the project may have, if limited.

    :raises ServiceUnavailable: the limits are not known
    """
    from keystoneauth1 import exceptions as ks_exc
    from nova.limit import utils as limit_utils
    from openstack import exceptions as sdk_exc
    from oslo_limit import exception as limit_exc

    def is_enforced(name: str, limit: int) -> bool:
        # oslo.limit has 0 for no limit, and Keystone -1.
        return limit > 0 or limit_utils.should_enforce(
            limit_exc.ProjectOverLimit(
                project_id, [limit_exc.OverLimitInfo(name, limit, 0, 1)]
            )
        )

    names = [f'{_PREFIX}{name}' for name in sorted(resource_classes)]
    if not names:
        return {}
    try:
        found = _enforcer().calculate_usage(project_id, names)
        return {
            name.removeprefix(_PREFIX): usage.limit
            for name, usage in found.items()
            if is_enforced(name, usage.limit)
        }
    # oslo.limit raises ValueError for missing options.
    except (
        limit_exc.SessionInitError,
        ks_exc.ClientException,
        sdk_exc.SDKException,
        ValueError,
    ) as fault:
        LOG.exception('The limits of accelerators cannot be enforced')
        raise exceptions.ServiceUnavailable(
            f'the limits of project {project_id} are not known: {fault}'
        ) from fault


def _enforcer() -> 'limit.Enforcer':
    from oslo_limit import limit

    # By oslo.limit's default a call of Keystone may wait for ever.
    CONF.set_default('timeout', _TIMEOUT_S, 'oslo_limit')
    return limit.Enforcer(lambda _project_id, names: dict.fromkeys(names, 0))


def _is_confirmed(
    context: caller.Caller, project_id: str, over: Mapping[str, int]
) -> bool:
    """Whether Placement has as much allocated to the project.

    It has the allocations of the server by now. The database may have more,
    until a host gives back what a deleted server has left. If Placement does
    not answer, the database is right.

    :param over: resource class -> the limit that would be exceeded
    """
    from keystoneauth1 import exceptions as ks_exc
    from nova import exception

    try:
        used = _used(context, project_id)
    except (exception.UsagesRetrievalFailed, ks_exc.ClientException):
        LOG.exception(
            'Placement does not tell what project %s has', project_id
        )
        return True
    return any(used.get(name, 0) > limit for name, limit in over.items())


def _used(context: caller.Caller, project_id: str) -> Mapping[str, int]:
    """Resource class -> how many units Placement has allocated to a project.

    :raises UsagesRetrievalFailed, ClientException: it does not tell
    """
    from nova.scheduler.client import report

    used: Mapping[str, int] = (
        report.report_client_singleton().get_usages_counts_for_limits(
            context.for_nova(), project_id
        )
    )
    return used
