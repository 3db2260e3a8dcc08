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

"""How much is free on each host, for tests of what changes it."""

import sqlalchemy as sa

from nova_accel.db.rows import unit_states
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema


@engine.retried
def free_by_host() -> dict[str, int]:
    """Hostname -> number of free attach handles, where there are any."""
    handles, devices = schema.ATTACH_HANDLES, schema.DEVICES
    query = (
        sa.select(devices.c.hostname, sa.func.count(handles.c.id))
        .select_from(handles.join(schema.DEPLOYABLES).join(devices))
        .where(unit_states.is_free())
        .group_by(devices.c.hostname)
    )
    with engine.reader() as connection:
        return dict(connection.execute(query).tuples().all())
