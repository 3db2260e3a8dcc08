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

"""``/usage``, and the end of what it tells of."""

import datetime

from oslo_log import log as logging
import webob
import webob.exc

from nova_accel import conf
from nova_accel import exceptions
from nova_accel import reason
from nova_accel.api.compute import occasion
from nova_accel.api.http import caller
from nova_accel.api.http import paging
from nova_accel.api.http import policy
from nova_accel.api.http import request
from nova_accel.api.policies import usage as policies
from nova_accel.db import lease
from nova_accel.db import usage as usage_db
from nova_accel.model import iso_time

CONF = conf.CONF
LOG = logging.getLogger(__name__)

#: As many as ``openstack usage show`` of Nova shows by default.
_SHOWN = datetime.timedelta(days=28)

#: Seconds from one deletion of old periods to the next.
_FORGOTTEN_EACH_S = 600

_TO_FORGET = occasion.Occasion()


def show_usage(req: webob.Request) -> webob.Response:
    context = request.authorize(req)
    arguments = request.query(req)
    end = _time(arguments, 'end') or datetime.datetime.now(datetime.UTC)
    start = _time(arguments, 'start') or end - _SHOWN
    if start >= end:
        raise exceptions.InvalidRequest('start: the time is not before end')
    rows = usage_db.get(
        start,
        end,
        _project(context, arguments.get('project_id')),
        paging.limit_of_whole(),
    )
    paging.check_length(rows, 'ask for one project, or for a shorter time')
    return webob.Response(
        json_body={
            'usage': {
                'start': _to_text(start),
                'end': _to_text(end),
                'held': rows,
            }
        }
    )


def forget_old() -> None:
    """Delete old periods, if it is time to. Does not raise."""
    days = CONF.nova_accel.usage_days
    if not days or not _TO_FORGET.is_due(_FORGOTTEN_EACH_S):
        return
    try:
        if lease.take('usage', _FORGOTTEN_EACH_S):
            usage_db.forget_old(days)
    except Exception as fault:
        LOG.warning(
            'Old periods of usage are not deleted: %s',
            reason.printable(str(fault) or type(fault).__name__),
        )


def _time(arguments: dict[str, str], name: str) -> datetime.datetime | None:
    text = arguments.get(name)
    return None if text is None else iso_time.parse(name, text)


def _to_text(time: datetime.datetime) -> str:
    return time.replace(microsecond=0).isoformat()


def _project(context: caller.Caller, wanted: str | None) -> str | None:
    """The only project to tell of; None for all.

    :raises HTTPForbidden: the caller may not know of the wanted one
    """
    if policy.allows(context, policies.ALL_PROJECTS):
        return wanted
    own: str | None = context.project_id
    if not own or wanted not in (None, own):
        raise webob.exc.HTTPForbidden(
            'Only callers whom the rule '
            f'{policies.ALL_PROJECTS} allows it see the usage of other '
            'projects'
        )
    return own
