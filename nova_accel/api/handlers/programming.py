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

"""``/programmings``: what FPGA regions were programmed with, and by whom."""

from typing import Any

import webob

from nova_accel.api.http import paging
from nova_accel.api.http import request
from nova_accel.db import programming as programming_db


def list_programmings(req: webob.Request) -> webob.Response:
    """Newest first; a full page has a link to the next."""
    request.authorize(req)
    query = paging.query(req, programming_db.SORT_KEYS)
    return query.answer(
        req,
        'programmings',
        'programmings',
        programming_db.get_all(query.page, **query.filters),
        _to_json,
    )


def _to_json(row: programming_db.ProgrammingRow) -> dict[str, Any]:
    started_at, finished_at = row['started_at'], row['finished_at']
    return {
        'uuid': row['uuid'],
        'hostname': row['hostname'],
        'device_uuid': row['device_uuid'],
        'region': row['region'],
        'bitstream_id': row['bitstream_id'],
        'project_id': row['project_id'],
        'user_id': row['user_id'],
        'instance_uuid': row['instance_uuid'],
        'failure': row['failure'],
        'state': (
            'running'
            if finished_at is None
            else 'succeeded'
            if row['failure'] is None
            else 'failed'
        ),
        'started_at': started_at.isoformat(),
        'finished_at': None
        if finished_at is None
        else finished_at.isoformat(),
        'duration_s': None
        if finished_at is None
        else int((finished_at - started_at).total_seconds()),
    }
