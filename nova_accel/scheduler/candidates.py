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

"""Ask Placement for the allocation candidates of some groups alone."""

from collections.abc import Sequence
from typing import Any

from keystoneauth1 import exceptions as ks_exc
from nova import context as nova_context
from nova import objects
from nova.scheduler import utils
from nova.scheduler.client import report
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


def ask(
    context: nova_context.RequestContext,
    groups: 'Sequence[objects.RequestGroup]',
    group_policy: str | None = None,
    limit: int | None = None,
    same_subtree: Sequence[Sequence[str]] = (),
) -> list[dict[str, Any]] | None:
    """The candidates that serve the groups, regardless of other groups.

    :param group_policy: needed for two groups or more
    :param same_subtree: the ids of groups whose providers are in one subtree
    :returns: the allocation requests in Placement's form, None if Placement
        gave no answer
    """
    request = utils.ResourceRequest.from_request_groups(
        groups,
        objects.RequestLevelParams(
            same_subtree=[list(ids) for ids in same_subtree]
        ),
        group_policy,
    )
    return _candidates(
        context,
        request,
        limit,
        ', '.join(group.requester_id for group in groups),
    )


def ask_all(
    context: nova_context.RequestContext, request_spec: 'objects.RequestSpec'
) -> list[dict[str, Any]] | None:
    """A candidate for the whole request, as Nova will ask for it.

    :param request_spec: for any host, after the request filters
    :returns: as for :func:`ask`
    """
    return _candidates(
        context,
        utils.resources_from_request_spec(context, request_spec, None),
        1,
        request_spec.instance_uuid,
    )


def _candidates(
    context: nova_context.RequestContext,
    request: utils.ResourceRequest,
    limit: int | None,
    asked: str,
) -> list[dict[str, Any]] | None:
    if limit is not None:
        request._limit = limit
    try:
        answer = report.report_client_singleton().get_allocation_candidates(
            context, request
        )
    except ks_exc.ClientException as error:
        LOG.warning(
            'Placement does not say which providers could serve %s: %s',
            asked,
            error,
        )
        return None
    # The client returns None for some failures, and a tuple of Nones for
    # others.
    if answer is None or answer[0] is None:
        return None
    return answer[0]
